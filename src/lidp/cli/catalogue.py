"""``lidp catalogue``: list correct and broken mechanisms, and correct and broken training, to try an audit on."""

from __future__ import annotations

import math

import typer

from lidp.mechanisms.catalogue import CATALOGUE, Entry
from lidp.training.catalogue import TRAININGS

DELTA = 1e-5
"""The claimed δ of mechanisms that need one above 0."""

HELP = f"""List the mechanisms and the trainings of the catalogue.

Each mechanism is made to claim ε = 1, at δ = {DELTA:g} if its noise is Gaussian and at δ = 0 otherwise. A training claims what its
accountant states.

"lidp audit-pair catalogue:NAME --epsilon 1" audits one mechanism, "lidp audit-catalogue --epsilon 1" audits all of them, and
"lidp audit catalogue:NAME" audits one training.
"""


def command() -> int:
    typer.echo("Mechanisms:")
    for mechanism in CATALOGUE.values():
        truth = truth_of(mechanism, 1.0, DELTA if mechanism.needs_delta else 0.0)
        typer.echo(f"{mechanism.name:28} {truth:22} {mechanism.about} [{mechanism.reference}]")
    typer.echo("\nTrainings:")
    for training in TRAININGS.values():
        truth = "right" if training.correct else "broken"
        typer.echo(f"{training.name:36} {truth:8} {training.about} [{training.reference}]")
    return 0


def truth_of(entry: Entry, epsilon: float, delta: float) -> str:
    """Return the true ε of a mechanism that claims (ε, δ), and whether the claim is right, in words."""
    truth = entry.truth(epsilon, delta)
    if math.isinf(truth):
        return "not private"
    words = f"{'' if entry.exact else 'at most '}{truth:.3g}"
    return f"{words}, {'right' if entry.correct else 'broken'}"

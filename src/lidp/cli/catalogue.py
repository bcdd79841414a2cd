"""``lidp catalogue``: list correct and broken mechanisms to try an audit on."""

from __future__ import annotations

import math

import typer

from lidp.mechanisms.catalogue import CATALOGUE, Entry

DELTA = 1e-5
"""The claimed δ of mechanisms that need one above 0."""

HELP = f"""List the mechanisms of the catalogue, with the true ε of each.

Each mechanism is made to claim ε = 1, at δ = {DELTA:g} if its noise is Gaussian and at δ = 0 otherwise.

"lidp audit-pair catalogue:NAME --epsilon 1" audits one mechanism, "lidp audit-catalogue --epsilon 1" audits all of them.
"""


def command() -> int:
    for entry in CATALOGUE.values():
        truth = truth_of(entry, 1.0, DELTA if entry.needs_delta else 0.0)
        typer.echo(f"{entry.name:28} {truth:22} {entry.about} [{entry.reference}]")
    return 0


def truth_of(entry: Entry, epsilon: float, delta: float) -> str:
    """Return the true ε of a mechanism that claims (ε, δ), and whether the claim is right, in words."""
    truth = entry.truth(epsilon, delta)
    if math.isinf(truth):
        return "not private"
    words = f"{'' if entry.exact else 'at most '}{truth:.3g}"
    return f"{words}, {'right' if entry.correct else 'broken'}"

"""``lidp catalogue``: mechanisms to try an audit on, right ones and broken ones."""

from __future__ import annotations

import math

import typer

from lidp.mechanisms.catalogue import CATALOGUE, Entry

DELTA = 1e-5
"""for mechanisms that cannot do without"""

HELP = f"""List the mechanisms of the catalogue: the true ε of each when it claims ε = 1 (δ = {DELTA:g} for Gaussian noise, else 0).

"lidp audit catalogue:NAME --epsilon 1" audits one, "lidp audit catalogue --all --epsilon 1" all of them.
"""


def command() -> int:
    for entry in CATALOGUE.values():
        truth = truth_of(entry, 1.0, DELTA if entry.needs_delta else 0.0)
        typer.echo(f"{entry.name:28} {truth:22} {entry.about} [{entry.reference}]")
    return 0


def truth_of(entry: Entry, epsilon: float, delta: float) -> str:
    """What holds of a mechanism that claims (ε, δ), in words."""
    truth = entry.truth(epsilon, delta)
    if math.isinf(truth):
        return "not private"
    words = f"{'' if entry.exact else 'at most '}{truth:.3g}"
    return f"{words}, {'right' if entry.correct else 'broken'}"

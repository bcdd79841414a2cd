"""``lidp audit --pair`` and ``lidp audit catalogue...``: audits that look at outputs only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from lidp.claim import Claim
from lidp.cli.catalogue import DELTA, truth_of
from lidp.cli.targets import find_object
from lidp.cli.watching import Watch
from lidp.engine.audit_pair import audit_pair
from lidp.errors import InvalidArgument
from lidp.mechanisms.catalogue import CATALOGUE, Entry, find
from lidp.pair_target import PairTarget
from lidp.result import AuditResult, Verdict
from lidp.rounding import fixed

CATALOGUE_NAME = "catalogue"


def is_pair(target: str, pair: bool) -> bool:
    """Whether a target is audited by two data sets."""
    return pair or target.partition(":")[0] == CATALOGUE_NAME


def load_pair(target: str, claim: Claim) -> PairTarget:
    """The pair that a text names: ``catalogue:NAME``, or an object in a file or module."""
    if target.startswith(f"{CATALOGUE_NAME}:"):
        entry = find(target.partition(":")[2])
        if entry.needs_delta and not claim.delta:
            raise InvalidArgument(f"{entry.name} adds Gaussian noise, which needs --delta above 0")
        return entry.make(claim.epsilon, claim.delta)
    found = find_object(target)
    if isinstance(found, PairTarget):
        return found
    if isinstance(found, tuple) and len(found) == 3:
        return PairTarget(*found, name=target)
    raise InvalidArgument(f"{target} is a {type(found).__name__}, not a lidp.PairTarget or a tuple (mechanism, d0, d1)")


def refuse(given: Mapping[str, object], what: str) -> None:
    """Options that would mean nothing here; those that were not given are None or False."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InvalidArgument(f"--{name} is {what}")


def audit_catalogue(
    claim: Claim, runs: int, failure_probability: float, seed: int, *, watch: Watch | None
) -> list[tuple[Entry, Claim, AuditResult]]:
    """Audit every mechanism of the catalogue at a claim."""
    found = []
    for entry in CATALOGUE.values():
        own = Claim(claim.epsilon, claim.delta or DELTA) if entry.needs_delta else claim
        target = entry.make(own.epsilon, own.delta)
        options: Any = {"claim": own, "runs": runs, "failure_probability": failure_probability, "seed": seed}
        found.append((entry, own, audit_pair(target, watch=watch, **options)))
    return found


def show_catalogue(found: list[tuple[Entry, Claim, AuditResult]]) -> None:
    """A line for each mechanism."""
    typer.echo(f"{'mechanism':28} {'truth':22} {'verdict':12} {'ε̂':>6} {'runs':>9}")
    for entry, claim, result in found:
        truth = truth_of(entry, claim.epsilon, claim.delta)
        typer.echo(
            f"{entry.name:28} {truth:22} {result.verdict:12} {fixed(result.bound.epsilon, 2):>6} {result.bound.trials:9,}"
        )


def code_of(found: list[tuple[Entry, Claim, AuditResult]]) -> int:
    """1 if a claim was refuted, as for one audit."""
    return 1 if any(result.verdict is Verdict.REFUTED for _, _, result in found) else 0

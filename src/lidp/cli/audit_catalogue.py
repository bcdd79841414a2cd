"""``lidp audit-catalogue``: audit every mechanism of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from lidp.cli.catalogue import DELTA, truth_of
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, ClaimOptions, Quiet, RunOptions
from lidp.cli.watching import watching
from lidp.engine.audit_pair import audit_pair
from lidp.mechanisms.catalogue import CATALOGUE
from lidp.result import Verdict
from lidp.rounding import fixed

HELP = f"""Audit every mechanism of the catalogue, and print a table.

The failure probability is that of each audit, not of the whole table. If --delta is 0, mechanisms with Gaussian noise claim
δ = {DELTA:g}. To audit one mechanism, use "lidp audit-pair catalogue:NAME".

{EXIT_CODES}
"""


@with_option_groups
def command(*, claim: ClaimOptions, runs: RunOptions, quiet: Quiet = False) -> int:
    asked = claim.build(runs.neighbours)
    rows, refuted = [], False
    with watching(quiet=quiet) as watch:
        for entry in CATALOGUE.values():
            tested = replace(asked, delta=asked.delta or DELTA) if entry.needs_delta else asked
            options: Any = {"runs": runs.runs, "failure_probability": runs.failure_probability, "seed": runs.seed}
            result = audit_pair(entry.make(tested.epsilon, tested.delta), claim=tested, watch=watch, **options)
            refuted |= result.verdict is Verdict.REFUTED
            truth = truth_of(entry, tested.epsilon, tested.delta)
            epsilon = fixed(result.bound.epsilon, 2)
            rows.append(f"{entry.name:28} {truth:22} {result.verdict:12} {epsilon:>6} {result.bound.trials:9,}")
    typer.echo(f"{'mechanism':28} {'truth':22} {'verdict':12} {'ε̂':>6} {'runs':>9}")
    for row in rows:
        typer.echo(row)
    return 1 if refuted else 0

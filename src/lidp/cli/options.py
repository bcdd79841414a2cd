"""Options that several commands share, singly and in groups (:mod:`lidp.cli.option_groups`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lidp import checks
from lidp.claim import Claim, Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidArgument

EXIT_CODES = "Exit code: 0 not refuted, 1 refuted, 2 error, 130 interrupted."

Epsilon = Annotated[float, typer.Option(help="Claimed ε.", show_default=False)]
Delta = Annotated[float, typer.Option(help="Claimed δ.")]
NeighboursOption = Annotated[str, typer.Option("--neighbours", help="add-remove or replace-one.")]
FailureProbability = Annotated[float, typer.Option(help="Maximum probability of refuting a true claim.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
StopWhen = Annotated[str | None, typer.Option(help="refuted or never.", show_default="refuted, if the method allows")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]
Store = Annotated[
    Path | None,
    typer.Option(help="File to keep trials in; if it exists, its audit is resumed.", show_default=False),
]


@dataclass(frozen=True)
class ClaimOptions:
    """The claim under audit."""

    epsilon: Epsilon
    delta: Delta = 0.0

    def build(self, neighbours: Neighbours | str) -> Claim:
        """Return the claim about this neighbour relation."""
        return Claim(self.epsilon, self.delta, checks.member(Neighbours, neighbours=neighbours))


@dataclass(frozen=True)
class CanaryOptions:
    """Canaries, trials and statistics of an audit with canaries."""

    design: Annotated[str, typer.Option(help="coin-flip, leave-one-out or replace-one.")] = "coin-flip"
    canaries: Annotated[int, typer.Option(help="Canaries per trial.")] = 64
    neighbours: Annotated[str, typer.Option(help="For coin-flip: add-remove or replace-one.")] = "add-remove"
    trials: Annotated[int, typer.Option(help="Maximum number of trials.")] = 256
    method: Annotated[
        str | None, typer.Option(help="Method (see lidp bound --help).", show_default="depends on design")
    ] = None
    failure_probability: FailureProbability = 0.05
    stop_when: StopWhen = None
    seed: Seed = 0

    def build_design(self) -> Design:
        """Return the design.

        Raises:
            InvalidArgument: if a name is unknown, or the design implies another neighbour relation.
        """
        relation = checks.member(Neighbours, neighbours=self.neighbours)
        if self.design == "coin-flip":
            return CoinFlip(self.canaries, relation)
        if relation is not Neighbours.ADD_REMOVE:
            raise InvalidArgument(f"--neighbours is for --design coin-flip; {self.design} implies the neighbour relation")
        if self.design == "leave-one-out":
            return LeaveOneOut(self.canaries, self.canaries)
        if self.design == "replace-one":
            return ReplaceOne(self.canaries, self.canaries)
        raise InvalidArgument(f"design must be coin-flip, leave-one-out or replace-one, got {self.design!r}")


@dataclass(frozen=True)
class RunOptions:
    """Runs and statistics of an audit of two data sets."""

    neighbours: NeighboursOption = "add-remove"
    runs: Annotated[int, typer.Option(help="Maximum number of runs.")] = 50_000
    failure_probability: FailureProbability = 0.05
    seed: Seed = 0


@dataclass(frozen=True)
class OutputOptions:
    """Where the result of one audit is written."""

    report: Annotated[
        Path | None,
        typer.Option(help="File to write the result to: a page (.html) or JSON.", show_default=False),
    ] = None
    as_json: Json = False
    quiet: Quiet = False

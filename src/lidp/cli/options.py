"""Options that several commands share, singly and in groups (:mod:`lidp.cli.option_groups`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lidp import checks
from lidp.claim import Claim, Neighbours
from lidp.cli.method_imports import Import, find_method, import_methods
from lidp.designs import DEFAULT_CANARIES, CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidArgument
from lidp.stats.method import Method
from lidp.stats.registry import METHODS

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
class CurveOptions:
    """A claimed privacy curve."""

    gaussian_mu: Annotated[float | None, typer.Option(help="Claim the curve of μ-GDP.", show_default=False)] = None
    laplace_scale: Annotated[
        float | None, typer.Option(help="Claim the curve of Laplace noise of this scale.", show_default=False)
    ] = None
    zcdp_rho: Annotated[float | None, typer.Option(help="Claim the curve of ρ-zCDP.", show_default=False)] = None
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Claim DP-SGD; needs the next two options.", show_default=False)
    ] = None
    sampling_rate: Annotated[float | None, typer.Option(help="Its Poisson sampling rate.", show_default=False)] = None
    steps: Annotated[int | None, typer.Option(help="Its number of steps.", show_default=False)] = None

    def build_curve_claim(self, delta: float | None, neighbours: Neighbours | str) -> Claim | None:
        """Return the claim of a curve; None if no option claims one.

        Raises:
            InvalidArgument: if options claim several curves, or one of them is incomplete.
        """
        stated: dict[str, Any] = {"neighbours": neighbours} | ({} if delta is None else {"delta": delta})
        dpsgd: dict[str, Any] = {
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.sampling_rate,
            "steps": self.steps,
        }
        given = [name for name in ("gaussian_mu", "laplace_scale", "zcdp_rho") if getattr(self, name) is not None]
        given += ["noise_multiplier"] if any(value is not None for value in dpsgd.values()) else []
        if len(given) > 1:
            names = " and ".join("--" + name.replace("_", "-") for name in given)
            raise InvalidArgument(f"{names} claim different curves; give one of them")
        if self.gaussian_mu is not None:
            return Claim.gaussian(self.gaussian_mu, **stated)
        if self.laplace_scale is not None:
            return Claim.laplace(self.laplace_scale, **stated)
        if self.zcdp_rho is not None:
            return Claim.zcdp(self.zcdp_rho, **stated)
        missing = [name for name, value in dpsgd.items() if value is None]
        if missing and given:
            raise InvalidArgument(f"a claim of DP-SGD also needs --{missing[0].replace('_', '-')}")
        return Claim.dpsgd(**dpsgd, **stated) if given else None


@dataclass(frozen=True)
class PointOptions:
    """A claimed point (ε, δ), or the δ at which a curve states its ε."""

    epsilon: Annotated[float | None, typer.Option(help="Claimed ε; or claim a curve.", show_default=False)] = None
    delta: Annotated[float | None, typer.Option(help="Claimed δ.", show_default="0; 1e-5 for curves")] = None


@dataclass(frozen=True)
class ClaimOptions(CurveOptions, PointOptions):
    """The claim under audit: a point (ε, δ), or a privacy curve."""

    def build(self, neighbours: Neighbours | str) -> Claim:
        """Return the claim about this neighbour relation."""
        claim = self.build_curve_claim(self.delta, neighbours)
        if claim is None and self.epsilon is None:
            raise InvalidArgument("no claim: give --epsilon, or a curve such as --gaussian-mu or --noise-multiplier")
        if claim is None:
            delta = 0.0 if self.delta is None else self.delta
            return Claim(self.epsilon or 0.0, delta, checks.member(Neighbours, neighbours=neighbours))
        if self.epsilon is not None:
            raise InvalidArgument("--epsilon claims a point, the other options a curve, which states its own ε; give one")
        return claim


IndependentCanaries = Annotated[
    bool,
    typer.Option(
        "--independent-canaries",
        help="Claim also that canaries of a run do not interfere.",
    ),
]


@dataclass(frozen=True)
class CanaryOptions:
    """Canaries, trials and statistics of an audit with canaries."""

    design: Annotated[str, typer.Option(help="coin-flip, leave-one-out or replace-one.")] = "coin-flip"
    canaries: Annotated[int, typer.Option(help="Canaries per trial.")] = DEFAULT_CANARIES
    neighbours: Annotated[str, typer.Option(help="For coin-flip: add-remove or replace-one.")] = "add-remove"
    trials: Annotated[int, typer.Option(help="Maximum number of trials.")] = 256
    method: Annotated[
        str | None, typer.Option(help="Method (see lidp bound --help).", show_default="depends on design")
    ] = None
    modules: Import = None
    independent_canaries: IndependentCanaries = False
    failure_probability: FailureProbability = 0.05
    stop_when: StopWhen = None
    seed: Seed = 0

    def build_method(self) -> Method | str | None:
        """Return the method, one of lidp's by its name; None if the audit shall choose.

        Raises:
            InvalidArgument: if there is no such method, or it cannot be made without parameters.
        """
        classes = import_methods(self.modules)
        if self.method is None or self.method in METHODS:
            return self.method
        kind = find_method(self.method, classes)
        try:
            return kind()
        except TypeError as error:
            raise InvalidArgument(
                f"--method {self.method} needs parameters ({error}); give them defaults, or audit with lidp.audit(method=...)"
            ) from error

    @property
    def leaves_number_to_target(self) -> bool:
        """Whether the target may suggest the number of canaries."""
        return False

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
class TargetCanaryOptions(CanaryOptions):
    """The options of an audit whose target may suggest a number of canaries."""

    canaries: Annotated[
        int | None, typer.Option(help="Canaries per trial.", show_default=f"as the target suggests, or {DEFAULT_CANARIES}")
    ] = None  # type: ignore[assignment]  # build_design fills the number in

    def build_design(self) -> Design:
        """See :class:`CanaryOptions`."""
        if self.canaries is None:
            return replace(self, canaries=DEFAULT_CANARIES).build_design()
        return super().build_design()

    @property
    def leaves_number_to_target(self) -> bool:
        """Whether the target may suggest the number of canaries, which it does for coin flips."""
        return self.canaries is None and self.design == "coin-flip"


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
        typer.Option(help="File to write the result to: .html, .md, .json, .xml or .svg.", show_default=False),
    ] = None
    as_json: Json = False
    quiet: Quiet = False

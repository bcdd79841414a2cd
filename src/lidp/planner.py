"""The budget planner: simulate audits of a Gaussian mechanism of the suspected ε to see how many models they need."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp import checks
from lidp._runtime.json_objects import object_from_json
from lidp.claim import Claim, Neighbours
from lidp.curves.gaussian import gaussian_epsilon, sigma_for
from lidp.designs import CoinFlip, Design, LeaveOneOut, design_from_json
from lidp.errors import InvalidArgument
from lidp.rounding import counted
from lidp.simulated_audits import SimulatedAudit, race
from lidp.stats.registry import default_method

_MOST_MODELS = 8_192
_MOST_SCORES = 2_000_000  # scores per simulated audit, at most
_USUAL_CANARIES = (16, 64, 256)
_AVERAGED = 50  # simulated audits whose bounds are averaged


@dataclass(frozen=True)
class PlanRow:
    """One way to spend a budget of models.

    ``models`` is the number that reaches the desired power, None if no simulated number does. ``epsilon`` and ``power`` are the
    expected bound and the probability of a refutation with ``at_models`` models.
    """

    design: Design
    method: str
    models: int | None
    at_models: int
    epsilon: float
    power: float
    simulated: int
    """the largest number of models that was simulated"""


@dataclass(frozen=True)
class BudgetPlan:
    """The rows that the planner compared, and its recommendation: the row that needs the fewest models."""

    claim: Claim
    suspect: float
    power: float
    failure_probability: float
    dimension: int | None
    rows: tuple[PlanRow, ...]
    seconds_per_model: float | None = None
    price_per_hour: float | None = None
    """price of one worker (a machine, a graphics card, a core) per hour"""
    workers: int | None = None
    """workers that run at the same time"""

    @property
    def recommended(self) -> PlanRow | None:
        """The row with the fewest models, None if no row reaches the power."""
        able = [row for row in self.rows if row.models is not None]
        return min(able, key=lambda row: row.models or 0) if able else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON. The schema is ``budget-plan`` of :mod:`lidp.schemas`."""

        def plain(row: PlanRow) -> dict[str, Any]:
            return {
                "design": type(row.design).__name__,
                "canaries": row.design.canaries,
                "held_out": row.design.held_out,
                "method": row.method,
                "models": row.models,
                "at_models": row.at_models,
                "epsilon": row.epsilon,
                "power": row.power,
                "simulated": row.simulated,
                "seconds": None if row.models is None else self.seconds(row.models),
                "machine_hours": self.machine_hours(row),
                "wall_clock_seconds": self.wall_clock_seconds(row),
                "cost": self.cost(row),
            }

        best = self.recommended
        return {
            "claim": self.claim.epsilon,
            "delta": self.claim.delta,
            "neighbours": str(self.claim.neighbours),
            "curve": None if self.claim.curve is None else self.claim.curve.to_json(),
            "suspect": self.suspect,
            "power": self.power,
            "failure_probability": self.failure_probability,
            "dimension": self.dimension,
            "seconds_per_model": self.seconds_per_model,
            "price_per_hour": self.price_per_hour,
            "workers": self.workers,
            "rows": [plain(row) for row in self.rows],
            "recommended": None if best is None else plain(best),
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return JSON that :meth:`from_json` turns back into an equal plan."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> BudgetPlan:
        """Return the plan that :meth:`to_json` described.

        Raises:
            InvalidArgument: if the text describes no plan.
        """
        plain = object_from_json(text, "a budget plan")
        try:
            claim = Claim(plain["claim"], plain["delta"], plain["neighbours"], plain["curve"])
            rows = tuple(_row_from_plain(row, claim.neighbours) for row in plain["rows"])
            kept = ("dimension", "seconds_per_model", "price_per_hour", "workers")
            numbers: dict[str, Any] = {name: float(plain[name]) for name in ("suspect", "power", "failure_probability")}
            return cls(claim, rows=rows, **numbers, **{name: plain[name] for name in kept})
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise InvalidArgument(f"this is not a budget plan: {problem}") from None

    def seconds(self, models: int) -> float | None:
        """Return the seconds that ``models`` models take on one worker."""
        return None if self.seconds_per_model is None else models * self.seconds_per_model

    def machine_hours(self, row: PlanRow) -> float | None:
        """Return models × time in hours: the total working time of all workers."""
        seconds = None if row.models is None else self.seconds(row.models)
        return None if seconds is None else seconds / 3600

    def wall_clock_seconds(self, row: PlanRow) -> float | None:
        """Return the elapsed seconds with all workers running trials; the models of one trial are trained one after the other."""
        if row.models is None or self.seconds_per_model is None:
            return None
        per_trial = row.design.models_per_trial
        rounds = math.ceil(row.models / per_trial / (self.workers or 1))
        return rounds * per_trial * self.seconds_per_model

    def cost(self, row: PlanRow) -> float | None:
        """Return models × time × price, without the cost of idle workers."""
        hours = self.machine_hours(row)
        return None if hours is None or self.price_per_hour is None else hours * self.price_per_hour

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the plan as texts, for terminals and notebooks."""
        header = ["design", "canaries", "method", f"models for {self.power:.0%}", "at models", "ε̂", "power"]
        rows = [
            [
                row.design.label.replace("-", " "),
                str(row.design.canaries),
                row.method,
                f"{row.models:,}" if row.models is not None else f"> {row.simulated:,}",
                f"{row.at_models:,}",
                f"{row.epsilon:.2f}",
                f"{row.power:.0%}",
            ]
            for row in self.rows
        ]
        return header, rows

    @property
    def title(self) -> str:
        """What is planned, as a title."""
        return f"refuting ε = {self.claim.epsilon:g} if the truth is {self.suspect:g}"

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import card, paragraph, table

        header, rows = self.table()
        return card(self.title, table(rows, header=header), paragraph(self.sentence()))

    def sentence(self) -> str:
        """Return the recommendation in words."""
        best = self.recommended
        wish = (
            f"to refute ε = {self.claim.epsilon:g} with {self.power:.0%} probability if the truth is ε = {self.suspect:g}"
        )
        if best is None:
            return f"no budget suffices {wish}; suspect a larger ε, allow more canaries, or accept a larger failure probability"
        layout = "coin flips" if best.design.has_coins else best.design.label
        cost = self.seconds(best.models or 0)
        time = f", about {_duration(cost)} of training" if cost is not None else ""
        size = f"{counted(best.models or 0, 'models')} with {counted(best.design.canaries, 'canaries')}"
        chosen = f"{size} by {layout} and {best.method}"
        return f"{wish}: {chosen}{time}{self._on_workers(best)}"

    def _on_workers(self, row: PlanRow) -> str:
        """Return the time and price of a row in words, if workers and prices are given."""
        wall, hours, cost = self.wall_clock_seconds(row), self.machine_hours(row), self.cost(row)
        words = ""
        if wall is not None and self.workers is not None:
            words += f", {_duration(wall)} with {counted(self.workers, 'workers')} at once"
        if cost is not None:
            words += f", {hours:,.1f} machine hours at {self.price_per_hour:,.2f} = {cost:,.2f}"
        return words


def plan(
    claim: Claim,
    *,
    suspect: float | None = None,
    noise_ratio: float | None = None,
    models: int | None = None,
    canaries: int | None = None,
    dimension: int | None = None,
    power: float = 0.8,
    failure_probability: float = 0.05,
    seconds_per_model: float | None = None,
    price_per_hour: float | None = None,
    workers: int | None = None,
    repeats: int = 100,
    seed: int = 0,
) -> BudgetPlan:
    """Return how many models refute the claim with the given power if the mechanism is Gaussian and leaks more than claimed.

    Give either ``suspect`` or ``noise_ratio``. A claim of a curve other than a Gaussian one is replaced by the Gaussian curve that
    resembles it.

    Args:
        claim: what is claimed.
        suspect: the suspected true ε, larger than the claim's.
        noise_ratio: the suspected noise divided by the claimed noise, below 1. The claim is then that of the whole curve of a
            Gaussian mechanism with the claimed ε.
        models: also report what to expect from this number of models.
        canaries: the number of canaries per trial; if left out, several numbers are compared.
        dimension: the dimension of the canaries, which determines how much they interfere; None for no interference.
        power: the desired probability of refuting the claim.
        failure_probability: β of the planned audits.
        seconds_per_model: training time of one model, for the total time.
        price_per_hour: price of one worker, for the cost: models × time × price.
        workers: machines, graphics cards or cores that run at the same time, for the elapsed time.
        repeats: simulated audits per row; the standard error of the power is at most 1/sqrt(4·repeats).
        seed: the seed of the simulation.
    """
    claim, suspect = _suspicion(claim, suspect, noise_ratio)
    power = checks.probability(power=power)
    repeats = checks.count(repeats=repeats)
    if suspect <= claim.epsilon:
        raise InvalidArgument(
            f"suspect must be above the claim's ε of {claim.epsilon:g}, or there is nothing to refute, got {suspect:g}"
        )
    if claim.neighbours is not Neighbours.ADD_REMOVE:
        raise InvalidArgument("the planner simulates add-remove neighbours; plan for those, the budget is about the same")
    if models is not None:
        models = checks.count(models=models)
    if seconds_per_model is not None:
        checks.positive(seconds_per_model=seconds_per_model)
    if price_per_hour is not None:
        price_per_hour = checks.non_negative(price_per_hour=price_per_hour)
    if workers is not None:
        workers = checks.count(workers=workers)
    if seconds_per_model is None and (price_per_hour is not None or workers is not None):
        raise InvalidArgument("price_per_hour and workers need seconds_per_model: cost is models × time × price")
    sigma = sigma_for(suspect, claim.delta)
    sizes = (checks.count(canaries=canaries),) if canaries is not None else _USUAL_CANARIES
    designs: list[Design] = [CoinFlip(size) for size in sizes]
    designs += [LeaveOneOut(size, size) for size in sizes if size <= 16 or canaries is not None]
    rows: list[PlanRow] = []
    enough = _MOST_MODELS
    for design in designs:
        row = _row(design, claim, sigma, models, dimension, power, failure_probability, repeats, seed, enough)
        rows.append(row)
        # Stop simulating designs that need many times the models of the best one.
        enough = min(enough, max(models or 0, 4 * row.models if row.models else enough))
    costs = (seconds_per_model, price_per_hour, workers)
    return BudgetPlan(claim, suspect, power, failure_probability, dimension, tuple(rows), *costs)


def _until_out_of_reach(audits: Sequence[SimulatedAudit], most: int, most_losers: float) -> list[float]:
    """Return at which trial each audit refutes the claim, up to the audit that puts the desired power out of reach."""
    needed: list[float] = []
    for audit in audits:
        needed.append(audit.trials_to_refute(most))
        if np.isinf(needed).sum() > most_losers:
            break
    return needed


def _row_from_plain(plain: Mapping[str, Any], neighbours: Neighbours) -> PlanRow:
    """Return the row that :meth:`BudgetPlan.to_dict` described."""
    sizes = {"canaries": plain["canaries"]}
    if plain["design"] == CoinFlip.__name__:
        design: Design = CoinFlip(**sizes, neighbours=neighbours)
    else:
        design = design_from_json({"kind": plain["design"], **sizes, "held_out": plain["held_out"]})
    names = ("method", "models", "at_models", "epsilon", "power", "simulated")
    return PlanRow(design, **{name: plain[name] for name in names})


def _suspicion(claim: Claim, suspect: float | None, noise_ratio: float | None) -> tuple[Claim, float]:
    """Return the claim to simulate, about a point or a Gaussian curve, and the suspected ε."""
    if (suspect is None) == (noise_ratio is None):
        raise InvalidArgument(
            "give either suspect (--suspect), an ε, or noise_ratio (--noise-ratio), the suspected noise over the claimed noise"
        )
    if claim.curve is not None:
        claim = Claim.gaussian(claim.curve.scale, delta=claim.delta, neighbours=claim.neighbours)
    if noise_ratio is None:
        return claim, checks.positive(suspect=suspect)
    ratio = checks.probability(noise_ratio=noise_ratio)
    mu = claim.curve.scale if claim.curve is not None else 1 / sigma_for(claim.epsilon, claim.delta)
    return Claim.gaussian(mu, delta=claim.delta, neighbours=claim.neighbours), gaussian_epsilon(mu / ratio, claim.delta)


def _row(
    design: Design,
    claim: Claim,
    sigma: float,
    models: int | None,
    dimension: int | None,
    power: float,
    failure_probability: float,
    repeats: int,
    seed: int,
    enough: int,
) -> PlanRow:
    """Simulate audits until the claim is refuted, or until ``enough`` models are spent, when another row is better."""
    per_trial = design.models_per_trial
    most = max(1, min(enough // per_trial, _MOST_SCORES // design.canaries))
    at = None if models is None else min(most, max(1, models // per_trial))
    if not design.has_coins:
        repeats = max(1, repeats // 4)  # for comparison only: slow to simulate, and never the best so far
    audits = [
        SimulatedAudit(design, claim, sigma, dimension, failure_probability, seed + repeat) for repeat in range(repeats)
    ]
    winners = math.ceil(power * repeats)
    needed = (
        race(audits, most=most, winners=winners, watched=at or 0)
        if design.has_coins
        else _until_out_of_reach(audits, most, (1 - power) * repeats)
    )
    takes = None
    if np.isfinite(needed).sum() >= winners:
        takes = int(np.sort(needed)[winners - 1])
    at = at or takes or most
    audits = audits[: min(_AVERAGED, len(needed))]
    epsilons = [audit.epsilon_after(at) for audit in audits]
    return PlanRow(
        design,
        default_method(design, claim).name,
        None if takes is None else takes * per_trial,
        at * per_trial,
        float(np.mean(epsilons)),
        float(np.mean(np.array(needed) <= at)),
        most * per_trial,
    )


def _duration(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return counted(round(seconds), "seconds")

"""The budget planner: how many models it takes, by simulating the audit of a Gaussian mechanism of the suspected ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Claim, Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.errors import InvalidArgument
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.scores import Scores
from lidp.stats.gaussian_curve import sigma_for
from lidp.stats.registry import default_method

Floats = NDArray[np.float64]

_MOST_MODELS = 8_192
_MOST_SCORES = 2_000_000  # a trial budget ends where simulating it would take this many scores
_USUAL_CANARIES = (16, 64, 256)


@dataclass(frozen=True)
class PlanRow:
    """One way to spend models.

    ``models`` is what the wished-for power takes, None if it is beyond what was simulated. ``epsilon`` and ``power`` are the
    expected bound and the chance to refute at ``at_models`` models.
    """

    design: Design
    method: str
    models: int | None
    at_models: int
    epsilon: float
    power: float
    simulated: int
    """models up to which audits were simulated"""


@dataclass(frozen=True)
class BudgetPlan:
    """What the planner found, and what it recommends: the row that refutes with the fewest models."""

    claim: Claim
    suspect: float
    power: float
    failure_probability: float
    dimension: int | None
    rows: tuple[PlanRow, ...]
    seconds_per_model: float | None = None
    price_per_hour: float | None = None
    """of one worker: a machine, a graphics card, a core"""
    workers: int | None = None
    """how many work at once"""

    @property
    def recommended(self) -> PlanRow | None:
        """The row with the fewest models, None if no row reaches the power."""
        able = [row for row in self.rows if row.models is not None]
        return min(able, key=lambda row: row.models or 0) if able else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""

        def plain(row: PlanRow) -> dict[str, Any]:
            return {
                "design": type(row.design).__name__,
                "canaries": row.design.canaries,
                "method": row.method,
                "models": row.models,
                "at_models": row.at_models,
                "epsilon": row.epsilon,
                "power": row.power,
                "seconds": None if row.models is None else self.seconds(row.models),
                "machine_hours": self.machine_hours(row),
                "wall_clock_seconds": self.wall_clock_seconds(row),
                "cost": self.cost(row),
            }

        best = self.recommended
        return {
            "claim": self.claim.epsilon,
            "delta": self.claim.delta,
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

    def seconds(self, models: int) -> float | None:
        """What so many models cost on one worker."""
        return None if self.seconds_per_model is None else models * self.seconds_per_model

    def machine_hours(self, row: PlanRow) -> float | None:
        """Models × time: what a row keeps workers busy for, all together."""
        seconds = None if row.models is None else self.seconds(row.models)
        return None if seconds is None else seconds / 3600

    def wall_clock_seconds(self, row: PlanRow) -> float | None:
        """How long a row takes if so many workers run trials at once; the models of one trial are trained in turn."""
        if row.models is None or self.seconds_per_model is None:
            return None
        per_trial = row.design.models_per_trial
        rounds = math.ceil(row.models / per_trial / (self.workers or 1))
        return rounds * per_trial * self.seconds_per_model

    def cost(self, row: PlanRow) -> float | None:
        """Models × time × price. Workers that are paid for while they wait come on top."""
        hours = self.machine_hours(row)
        return None if hours is None or self.price_per_hour is None else hours * self.price_per_hour

    def sentence(self) -> str:
        """The recommendation in words."""
        best = self.recommended
        wish = (
            f"to refute ε = {self.claim.epsilon:g} with {self.power:.0%} probability if the truth is ε = {self.suspect:g}"
        )
        if best is None:
            return (
                f"none of these suffices {wish}; suspect more, allow more canaries, or accept a larger failure probability"
            )
        layout = "coin flips" if best.design.has_coins else best.design.label
        cost = self.seconds(best.models or 0)
        time = f", about {_duration(cost)} of training" if cost is not None else ""
        chosen = f"{best.models:,} models with {best.design.canaries} canaries by {layout} and {best.method}"
        return f"{wish}: {chosen}{time}{self._on_workers(best)}"

    def _on_workers(self, row: PlanRow) -> str:
        """Time and price of a row in words, as far as they were asked for."""
        wall, hours, cost = self.wall_clock_seconds(row), self.machine_hours(row), self.cost(row)
        told = ""
        if wall is not None and self.workers is not None:
            told += f", {_duration(wall)} with {self.workers:,} workers at once"
        if cost is not None:
            told += f", {hours:,.1f} machine hours at {self.price_per_hour:,.2f} = {cost:,.2f}"
        return told


def plan(
    claim: Claim,
    *,
    suspect: float,
    models: int | None = None,
    canaries: int | None = None,
    dimension: int | None = None,
    power: float = 0.8,
    failure_probability: float = 0.05,
    seconds_per_model: float | None = None,
    price_per_hour: float | None = None,
    workers: int | None = None,
    repeats: int = 200,
    seed: int = 0,
) -> BudgetPlan:
    """How many models refute the claim with the given power, if the truth is a Gaussian mechanism of ε = ``suspect``.

    Args:
        claim: what is claimed.
        suspect: the ε that one fears, larger than the claim's.
        models: report what so many models can be expected to reach, too.
        canaries: only this number of canaries; otherwise several are compared.
        dimension: of the space the canaries live in, for the interference between them; None for none.
        power: the probability with which the claim is to be refuted.
        failure_probability: β of the audits that are planned.
        seconds_per_model: for the time it takes.
        price_per_hour: of one worker, for the cost: models × time × price.
        workers: machines, cards or cores that work at once, for the time on the clock.
        repeats: simulated audits per way; the power is known to about 1/sqrt(4·repeats).
        seed: of the simulation.
    """
    suspect = checks.positive(suspect=suspect)
    power = checks.probability(power=power)
    repeats = checks.count(repeats=repeats)
    if suspect <= claim.epsilon:
        raise InvalidArgument(
            f"suspect must be above the claim's ε of {claim.epsilon:g}, or nothing is wrong, got {suspect:g}"
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
        # Ways that take many times the models of the best one are not simulated to their end.
        enough = min(enough, max(models or 0, 4 * row.models if row.models else enough))
    costs = (seconds_per_model, price_per_hour, workers)
    return BudgetPlan(claim, suspect, power, failure_probability, dimension, tuple(rows), *costs)


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
    """Simulate audits until the claim falls, or until so many models are spent that another row is better."""
    per_trial = design.models_per_trial
    most = max(1, min(enough // per_trial, _MOST_SCORES // design.canaries))
    at = None if models is None else min(most, max(1, models // per_trial))
    if not design.has_coins:
        repeats = max(1, repeats // 4)  # for comparison: slower to simulate, and it has never been the best
    needed = np.full(repeats, np.inf)
    for repeat in range(repeats):
        needed[repeat] = _trials_to_refute(design, claim, sigma, most, dimension, failure_probability, seed + repeat)
    takes = None
    if np.mean(np.isfinite(needed)) >= power:
        takes = int(np.sort(needed)[math.ceil(power * repeats) - 1])
    at = at or takes or most
    epsilons = []
    for repeat in range(min(repeats, 50)):
        scores = _scores(design, sigma, at, dimension, seed + repeat)
        found = default_method(scores.design, claim.epsilon).bound(
            scores, delta=claim.delta, failure_probability=failure_probability
        )
        epsilons.append(found.epsilon)
    return PlanRow(
        design,
        default_method(design).name,
        None if takes is None else takes * per_trial,
        at * per_trial,
        float(np.mean(epsilons)),
        float(np.mean(needed <= at)),
        most * per_trial,
    )


def _trials_to_refute(
    design: Design,
    claim: Claim,
    sigma: float,
    most: int,
    dimension: int | None,
    failure_probability: float,
    seed: int,
) -> float:
    """The trial at which the claim falls in one simulated audit; infinite if it does not within ``most``."""
    trials = min(8, most)
    while True:
        scores = _scores(design, sigma, trials, dimension, seed)
        found = default_method(scores.design, claim.epsilon).bound(
            scores, delta=claim.delta, failure_probability=failure_probability
        )
        fell = next((seen for seen, epsilon in found.path if epsilon > claim.epsilon), None)
        if fell is not None:
            return fell
        if trials == most:
            return math.inf
        # A trial's scores depend on the seed and its number only, so a longer audit begins like the shorter one.
        trials = min(4 * trials, most)


def _scores(design: Design, sigma: float, trials: int, dimension: int | None, seed: int) -> Scores:
    if dimension is not None:
        return simulate_gaussian(design, trials=trials, sigma=sigma, dimension=dimension, seed=seed)
    # One stream per purpose, read trial by trial: the first trials are the same however many follow.
    streams = np.random.default_rng([seed, design.canaries]).spawn(2)
    if design.has_coins:
        coins = streams[0].integers(0, 2, (trials, design.canaries))
        return Scores(scores=coins + sigma * streams[1].standard_normal(coins.shape), coins=coins)
    inserted = 1 + sigma * streams[0].standard_normal((trials, design.canaries))
    return Scores(inserted=inserted, held_out=sigma * streams[1].standard_normal((trials, design.held_out)))


def _duration(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"

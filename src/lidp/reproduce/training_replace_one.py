"""The paper's Section 6 by the design of its Appendix B.2, replace-one: Fashion-MNIST, a linear model, one model per trial.

The noise is that of the paper's published code, which calibrates it for add/remove neighbours by Rényi accounting although
canaries take the places of records. The claim that is audited is what this noise gives under replace-one neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import lidp
from lidp.claim import Neighbours
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.tables import Row, group, select
from lidp.reproduce.training_runs import CANARIES, STEPS, Run, TrainedModels, data_of
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.reproduce.training_trials import JUDGED, MANY, ORDERS, TRIALS, bounds_table, factors

_PAIR = "fmnist-linear"
_NOMINAL = (8.0, 4.0)
_TRIALS = {Scale.SMOKE: 8, Scale.PAPER: 1000}
_BATCH_SIZE = 100


@dataclass(frozen=True)
class ReplaceOneRun(Run):
    """An audit in which canaries replace records; inserted and held-out canaries are scored on the same model."""

    neighbours: str = Neighbours.REPLACE_ONE.value

    @property
    def columns(self) -> Row:
        return super().columns | {"models_per_trial": self.design.models_per_trial}

    @property
    def design(self) -> lidp.Design:
        return lidp.ReplaceOne(self.canaries, self.canaries)

    @property
    def claim(self) -> lidp.Claim:
        """What the noise for the nominal ε under add/remove neighbours gives under replace-one neighbours."""
        records = len(data_of(self.schedule))
        steps = max(1, round(self.schedule.epochs * records / _BATCH_SIZE))
        epsilon = _replace_one_epsilon(self.nominal, min(1.0, _BATCH_SIZE / records), steps, self.schedule.accountant)
        return lidp.Claim(epsilon, setting.DELTA, Neighbours.REPLACE_ONE)


@functools.cache
def _replace_one_epsilon(nominal: float, rate: float, steps: int, accountant: str) -> float:
    from lidp.training.accounting import calibrate, epsilon_of_noise

    sigma = calibrate(nominal, delta=setting.DELTA, rate=rate, steps=steps, accountant=accountant).sigma
    return epsilon_of_noise(
        sigma, delta=setting.DELTA, rate=rate, steps=steps, accountant=accountant, neighbours=Neighbours.REPLACE_ONE
    )


def _runs(scale: Scale) -> dict[Run, int]:
    """Return the runs of all cells: gradients first, whose pilot models are few."""
    return {
        ReplaceOneRun(_PAIR, SCHEDULES[_PAIR][scale], canary, nominal, canaries, step): _TRIALS[scale]
        for canary in reversed(CANARIES)
        for nominal in _NOMINAL
        for canaries in (MANY, 1)
        for step in STEPS[:2]
    }


@experiment(
    "fmnist-replace-one",
    "rows of Table 1 by replace-one neighbours, one model per trial: fmnist-linear, K = 16 against K = 1, ε = 4 and 8",
    partial(bounds_table, trials=TRIALS),
    TrainedModels("fmnist-replace-one", _runs, (Scale.SMOKE, Scale.PAPER), first_stages=(8,)),
)
def fmnist_replace_one(table: Sequence[Row]) -> Iterator[Finding]:
    """State ε̂ of both numbers of canaries and the factors of Table 1 for finished cells, and name the cells that are missing."""
    finished = group(select(table, **JUDGED), "canary", "nominal_epsilon")
    for canary in reversed(CANARIES):
        for nominal in sorted(_NOMINAL):
            yield from _cell_findings(canary, nominal, finished.get((canary, nominal), []))


def _cell_findings(canary: str, nominal: float, rows: Sequence[Row]) -> Iterator[Finding]:
    """State the bounds and factors of one kind of canary at one ε, at the largest number of trials that both K have reached."""
    bounds = {(row["method"], row["trials"]): row for row in rows}
    common = [n for method, n in bounds if method == setting.SINGLE and (ORDERS[0], n) in bounds]
    planned = _TRIALS[Scale.PAPER]
    which = f"{canary}, ε = {nominal:g}"
    if not common:
        yield Finding(f"{which}: trials finished", 0.0, note=f"missing; {planned:,} are planned")
        return
    n = max(common)
    reached = "" if n >= planned else f"; so far {n:,} of {planned:,} trials"
    for method in (setting.SINGLE, *ORDERS):
        if (method, n) in bounds:
            row = bounds[method, n]
            yield Finding(f"{which}, n = {n:,}: ε̂, {method}", row["epsilon_hat"], note=f"{row['models']:,} models{reached}")
    for row in factors(rows):
        ours = None if row["factor"] == "" else float(row["factor"])
        statement = f"{which}, n = {n:,}: times fewer trials than one canary, {row['method']}"
        yield Finding(statement, ours, row["paper"], note=reached.removeprefix("; "))

"""How large ε̂ of the coin wager gets with about a hundred trained linear models, pilots included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.tables import Row, average, group, select
from lidp.reproduce.training_runs import GRADIENT_PILOTS, Run, TrainedModels
from lidp.reproduce.training_schedules import SCHEDULES

MEASURED = (16, 32, 48, 64, 96, 128)
"""Numbers of trained models, pilots included, at which the bound is computed."""
_PAIR = "fmnist-linear"


@dataclass(frozen=True)
class Budget:
    """The size of the data, a nominal ε, the models to train, the canaries, and what ε̂ should be at least."""

    records: int
    nominal: float
    models: int
    canary: str
    canaries: int
    seeds: int
    at_least: float | None = None


BUDGETS = (
    Budget(60_000, 8.0, 128, "random-gradient", 64, 3, at_least=0.75),
    Budget(6_000, 4.0, 96, "random-gradient", 64, 5, at_least=1.2),
    Budget(6_000, 4.0, 96, "dirac-gradient", 64, 5),
    Budget(6_000, 4.0, 96, "dirac-gradient", 256, 5),
)


def _runs(scale: Scale) -> dict[Run, int]:
    runs = {}
    for budget in BUDGETS:
        schedule = replace(SCHEDULES[_PAIR][Scale.PAPER], tested=1_000, records=budget.records)
        # At scale smoke, fewer steps on the same data.
        changes: Row = {"accountant": "pld"} if scale is Scale.PAPER else {"epochs": 100 / budget.records}
        for seed in range(budget.seeds if scale is Scale.PAPER else 1):
            run = Run(_PAIR, replace(schedule, **changes), budget.canary, budget.nominal, budget.canaries, "flip", seed)
            runs[run] = budget.models - GRADIENT_PILOTS
    return runs


def _table(runs: Sequence[Row]) -> list[Row]:
    """Return the mean ε̂ over seeds at numbers of models that all seeds have reached."""
    columns = ("records", "nominal_epsilon", "canary", "canaries")
    rows = [
        row | {"models": models} | setting.bet("coin wager", row["scores"][: models - GRADIENT_PILOTS])
        for seeds in group(select(runs, score="centred"), *columns).values()
        for models in MEASURED
        if models - GRADIENT_PILOTS <= min(row["scores"].trials for row in seeds)
        for row in seeds
    ]
    return average(rows, *columns, "models")


@experiment(
    "fmnist-wagers",
    "ε̂ of the coin wager with 96 and 128 trained models, pilots included: fmnist-linear, gradient canaries",
    _table,
    TrainedModels("fmnist-wagers", _runs, scales=(Scale.SMOKE, Scale.PAPER)),
)
def fmnist_wagers(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare ε̂ with the goal of each budget."""
    for budget in BUDGETS:
        wanted = {name: getattr(budget, name) for name in ("records", "canary", "canaries", "models")}
        for row in select(table, **wanted):
            statement = f"{budget.records:,} records, ε = {budget.nominal:g}, {budget.canary}, K = {budget.canaries}, "
            statement += f"{budget.models} models: ε̂"
            note = f"standard error {row['standard_error']:.3f}, {row['repetitions']} seeds"
            yield Finding(statement, row["epsilon_hat"], at_least=budget.at_least, note=note)

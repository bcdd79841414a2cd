"""How large ε̂ of the coin wager gets with a hundred trained models, pilots included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Row, Scale
from lidp.reproduce.sweeps import select
from lidp.reproduce.training_pairs import FMNIST_LINEAR
from lidp.reproduce.training_runs import GRADIENT_PILOTS, FinishedRun, Run, TrainedModels
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager

MEASURED = (16, 32, 48, 64, 96, 128)
"""Numbers of trained models, pilots included, at which the bound is computed."""


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


class Wagers(TrainedModels):
    """ε̂ of the coin wager with about a hundred models of the paper's linear model, for gradient canaries."""

    name = "fmnist-wagers"
    about = "ε̂ of the coin wager with 96 and 128 trained models, pilots included: fmnist-linear, gradient canaries"
    scales = (Scale.SMOKE, Scale.PAPER)

    def runs(self, scale: Scale) -> dict[Run, int]:
        runs = {}
        for budget in BUDGETS:
            schedule = replace(FMNIST_LINEAR.schedules[Scale.PAPER], tested=1_000, records=budget.records)
            schedule = replace(schedule, accountant="pld" if scale is Scale.PAPER else "rdp")
            if scale is Scale.SMOKE:  # fewer steps on the same data
                schedule = replace(schedule, epochs=100 / budget.records)
            for seed in range(budget.seeds if scale is Scale.PAPER else 1):
                run = Run(FMNIST_LINEAR.name, schedule, budget.canary, budget.nominal, budget.canaries, "flip", seed)
                runs[run] = budget.models - GRADIENT_PILOTS
        return runs

    def table(self, rows: Sequence[FinishedRun]) -> list[Row]:
        scores: dict[tuple[Any, ...], list[Scores]] = defaultdict(list)
        for row in rows:
            run = row.run
            scores[run.schedule.records, run.nominal, run.canary, run.canaries].append(row.scores["centred"])
        table = []
        for key, seeds in sorted(scores.items()):
            for models in MEASURED:
                trials = models - GRADIENT_PILOTS
                if trials > min(one.trials for one in seeds):
                    continue
                options = {"delta": setting.DELTA, "failure_probability": setting.BETA}
                bounds = [CoinWager().bound(one[:trials], **options).epsilon for one in seeds]
                settings = dict(zip(("records", "nominal_epsilon", "canary", "canaries"), key, strict=True))
                table.append(settings | {"models": models} | setting.mean_columns(bounds))
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        return [
            Finding(
                f"{budget.records:,} records, ε = {budget.nominal:g}, {budget.canary}, K = {budget.canaries}, "
                f"{budget.models} models: ε̂",
                row["epsilon_hat"],
                at_least=budget.at_least,
                note=f"standard error {row['standard_error']:.3f}, {row['repetitions']} seeds",
            )
            for budget in BUDGETS
            for row in select(
                table, records=budget.records, canary=budget.canary, canaries=budget.canaries, models=budget.models
            )
        ]

"""How far a coin wager comes with a hundred trained models, pilots included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Finding, Row, Scale
from lidp.reproduce.training_pairs import FMNIST_LINEAR
from lidp.reproduce.training_runs import GRADIENT_PILOTS, Run, TrainedModels, scores_of
from lidp.stats.coin_wager import CoinWager

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = (16, 32, 48, 64, 96, 128)
"""Models trained, pilots included, at which the bound is read; those up to the pilots have none."""
_TOGETHER = 16


@dataclass(frozen=True)
class Setting:
    """A size of the data, a nominal ε, the models to spend, and how many canaries of which kind."""

    records: int
    nominal: float
    models: int
    canary: str
    canaries: int
    seeds: int


SETTINGS = (
    Setting(60_000, 8.0, 128, "random-gradient", 64, 3),
    Setting(6_000, 4.0, 96, "random-gradient", 64, 5),
    Setting(6_000, 4.0, 96, "dirac-gradient", 64, 5),
    Setting(6_000, 4.0, 96, "dirac-gradient", 256, 5),
)
_WANTED = {(60_000, "random-gradient", 64): 0.75, (6_000, "random-gradient", 64): 1.2}


class Wagers(TrainedModels):
    """ε̂ of the coin wager with about a hundred models of the paper's linear model, for gradient canaries."""

    name = "fmnist-wagers"
    about = "ε̂ of the coin wager with 96 and 128 trained models, pilots included: fmnist-linear, gradient canaries"
    scales = (Scale.SMOKE, Scale.PAPER)

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:  # nothing depends on other cells
        cells = []
        for place in SETTINGS:
            schedule = replace(FMNIST_LINEAR.schedules[Scale.PAPER], tested=1_000, records=place.records)
            schedule = replace(schedule, accountant="pld" if scale is Scale.PAPER else "rdp")
            if scale is Scale.SMOKE:  # fewer steps, of the same data
                schedule = replace(schedule, epochs=100 / place.records)
            for seed in range(place.seeds if scale is Scale.PAPER else 1):
                run = Run(FMNIST_LINEAR.name, schedule, place.canary, place.nominal, place.canaries, "flip", seed)
                cells += run.cells(place.models - GRADIENT_PILOTS, _TOGETHER)
        return cells

    def table(self, rows: Sequence[Row]) -> list[Row]:
        runs: dict[tuple[Any, ...], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            key = (row["schedule"]["records"], row["nominal"], row["canary"], row["canaries"])
            runs[key][row["seed"]].append(row)
        table = []
        for (records, nominal, canary, canaries), seeds in sorted(runs.items()):
            scores = [scores_of(own, "centred") for own in seeds.values()]
            for models in MEASURED:
                trials = models - GRADIENT_PILOTS
                if not 0 < trials <= min(one.trials for one in scores):
                    continue
                options = {"delta": setting.DELTA, "failure_probability": setting.BETA}
                bounds = [CoinWager().bound(one[:trials], **options).epsilon for one in scores]
                mean, error = setting.mean_and_error(bounds)
                table.append(
                    {
                        "records": records,
                        "nominal_epsilon": nominal,
                        "canary": canary,
                        "canaries": canaries,
                        "models": models,
                        "epsilon_hat": mean,
                        "standard_error": error,
                        "repetitions": len(bounds),
                    }
                )
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        found = []
        for place in SETTINGS:
            for row in table:
                here = (row["records"], row["canary"], row["canaries"])
                if here == (place.records, place.canary, place.canaries) and row["models"] == place.models:
                    statement = (
                        f"{place.records:,} records, ε = {place.nominal:g}, {place.canary}, K = {place.canaries}, "
                        f"{place.models} models: ε̂"
                    )
                    note = f"standard error {row['standard_error']:.3f}, {row['repetitions']} seeds"
                    found.append(Finding(statement, row["epsilon_hat"], at_least=_WANTED.get(here), note=note))
        return found

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.training_figures import wagers_figure

        return wagers_figure(table)

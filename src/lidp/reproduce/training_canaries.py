"""ε̂ and test accuracy of trained models against the number of canaries K."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Experiment, Finding, Row, Scale, Source
from lidp.reproduce.sweeps import SINGLE, look_up
from lidp.reproduce.training_pairs import FMNIST_LINEAR
from lidp.reproduce.training_runs import CANARIES, STEPS, Run, TrainedModels
from lidp.reproduce.training_trials import TOGETHER, bounds_table, nominal_epsilons

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POWERS = {Scale.SMOKE: (1, 4), Scale.REDUCED: (1, 4, 16, 64), Scale.PAPER: (1, 2, 4, 8, 16, 32, 64)}
TRIALS = {Scale.SMOKE: 8, Scale.REDUCED: 250, Scale.PAPER: 1000}


class TrainingCanaries(TrainedModels):
    """ε̂ against K on Fashion-MNIST with a linear model, at one number of trials."""

    name = "fmnist-canaries"
    about = "ε̂ against the number of canaries K for trained models: fmnist-linear"

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:  # nothing depends on other cells
        return [
            cell
            for nominal in nominal_epsilons(scale)
            for canaries in reversed(POWERS[scale])
            for canary in CANARIES
            for step in STEPS
            for cell in Run(FMNIST_LINEAR.name, FMNIST_LINEAR.schedules[scale], canary, nominal, canaries, step).cells(
                TRIALS[scale], TOGETHER[scale]
            )
        ]

    def table(self, rows: Sequence[Row]) -> list[Row]:
        return bounds_table(rows, sorted(set(TRIALS.values())))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        found = []
        for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
            trials = max(row["trials"] for row in table)
            common = {
                "canary": canary,
                "nominal_epsilon": nominal,
                "score": "centred",
                "candidates": "tail",
                "trials": trials,
            }
            bounds = {
                row["canaries"]: row["epsilon_hat"]
                for row in table
                if all(row[name] == value for name, value in common.items()) and row["method"] == "2nd-order Wilson"
            }
            alone = look_up(table, **common, method=SINGLE)
            if not bounds or alone is None:
                continue
            root = min(bounds, key=lambda canaries: abs(canaries - trials**0.5))
            best = max(bounds, key=lambda canaries: bounds[canaries])
            note = f"K = {root}: {bounds[root]:.2f}; best K = {best}: {bounds[best]:.2f}; one canary: {alone['epsilon_hat']:.2f}"
            statement = f"{canary}, ε = {nominal:g}, n = {trials:,}: ε̂ at K nearest √n over the best"
            shown = bounds[best] > 0
            share = bounds[root] / bounds[best] if shown else None
            found.append(Finding(statement, share, at_least=0.75 if shown else None, note=note))
        return found

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.training_figures import canaries_figure

        return canaries_figure(table)


class Utility(Experiment):
    """Test accuracy against K, of the same models."""

    name = "utility"
    about = "test accuracy against the number of canaries K: fmnist-linear"
    scales = TrainedModels.scales

    @property
    def sources(self) -> tuple[Source, ...]:
        return (TrainingCanaries(),)

    def table(self, rows: Sequence[Row]) -> list[Row]:
        found = defaultdict(list)
        for row in rows:
            found[row["canary"], row["nominal"], row["canaries"]].append(row["accuracy"])
        table = []
        for (canary, nominal, canaries), values in sorted(found.items()):
            mean, error = setting.mean_and_error(values)
            place = {"canary": canary, "nominal_epsilon": nominal, "canaries": canaries}
            table.append(place | {"accuracy": mean, "standard_error": error})
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        found = []
        most = max(row["canaries"] for row in table)
        for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
            values = [row["accuracy"] for row in table if (row["canary"], row["nominal_epsilon"]) == (canary, nominal)]
            statement = (
                f"{canary}, ε = {nominal:g}: points of test accuracy between the best and the worst K, up to K = {most}"
            )
            note = f"accuracies {100 * min(values):.1f} to {100 * max(values):.1f} %"
            found.append(Finding(statement, 100 * (max(values) - min(values)), at_most=1.0, note=note))
        return found

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.training_figures import utility_figure

        return utility_figure(table)

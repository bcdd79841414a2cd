"""ε̂ and test accuracy of trained models against the number of canaries K."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from lidp.reproduce import setting
from lidp.reproduce.experiment import Experiment, Finding, Row, Scale, Source
from lidp.reproduce.sweeps import SINGLE, select
from lidp.reproduce.training_pairs import FMNIST_LINEAR
from lidp.reproduce.training_runs import CANARIES, STEPS, FinishedRun, Run, TrainedModels
from lidp.reproduce.training_trials import JUDGED, bounds_table, nominal_epsilons

COUNTS = {Scale.SMOKE: (1, 4), Scale.REDUCED: (1, 4, 16, 64), Scale.PAPER: (1, 2, 4, 8, 16, 32, 64)}
TRIALS = {Scale.SMOKE: 8, Scale.REDUCED: 250, Scale.PAPER: 1000}
BLOCKS = {Scale.SMOKE: 4, Scale.REDUCED: 40, Scale.PAPER: 25}
"""Trials whose mean accuracy is one observation."""


class TrainingCanaries(TrainedModels):
    """ε̂ against K on Fashion-MNIST with a linear model, at one number of trials."""

    name = "fmnist-canaries"
    about = "ε̂ against the number of canaries K for trained models: fmnist-linear"

    def runs(self, scale: Scale) -> dict[Run, int]:
        schedule = FMNIST_LINEAR.schedules[scale]
        return {
            Run(FMNIST_LINEAR.name, schedule, canary, nominal, canaries, step): TRIALS[scale]
            for nominal in nominal_epsilons(scale)
            for canaries in reversed(COUNTS[scale])
            for canary in CANARIES
            for step in STEPS
        }

    def table(self, rows: Sequence[FinishedRun]) -> list[Row]:
        return bounds_table(rows, sorted(set(TRIALS.values())))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        findings = []
        trials = max(row["trials"] for row in table)
        for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
            rows = select(table, canary=canary, nominal_epsilon=nominal, trials=trials, **JUDGED)
            bounds = {row["canaries"]: row["epsilon_hat"] for row in select(rows, method="2nd-order Wilson")}
            alone = select(rows, method=SINGLE)
            if not bounds or not alone:
                continue
            root = min(bounds, key=lambda canaries: abs(canaries - trials**0.5))
            best = max(bounds, key=lambda canaries: bounds[canaries])
            note = f"K = {root}: {bounds[root]:.2f}; best K = {best}: {bounds[best]:.2f}; one canary: {alone[0]['epsilon_hat']:.2f}"
            statement = f"{canary}, ε = {nominal:g}, n = {trials:,}: ε̂ at K nearest √n over the best"
            positive = bounds[best] > 0
            share = bounds[root] / bounds[best] if positive else None
            findings.append(Finding(statement, share, at_least=0.75 if positive else None, note=note))
        return findings


class Utility(Experiment):
    """Test accuracy of the same models against K."""

    name = "utility"
    about = "test accuracy against the number of canaries K: fmnist-linear"
    scales = TrainedModels.scales

    @property
    def sources(self) -> tuple[Source, ...]:
        return (TrainingCanaries(),)

    def table(self, rows: Sequence[FinishedRun]) -> list[Row]:
        accuracies: dict[tuple[str, float, int], list[float]] = defaultdict(list)
        for row in rows:
            accuracies[row.run.canary, row.run.nominal, row.run.canaries] += _block_means(row)
        table = []
        for (canary, nominal, canaries), values in sorted(accuracies.items()):
            mean, error = setting.mean_and_error(values)
            settings = {"canary": canary, "nominal_epsilon": nominal, "canaries": canaries}
            table.append(settings | {"accuracy": mean, "standard_error": error})
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        findings = []
        most = max(row["canaries"] for row in table)
        for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
            values = [row["accuracy"] for row in select(table, canary=canary, nominal_epsilon=nominal)]
            statement = (
                f"{canary}, ε = {nominal:g}: points of test accuracy between the best and the worst K, up to K = {most}"
            )
            note = f"accuracies {100 * min(values):.1f} to {100 * max(values):.1f} %"
            findings.append(Finding(statement, 100 * (max(values) - min(values)), at_most=1.0, note=note))
        return findings


def _block_means(finished: FinishedRun) -> list[float]:
    """Return the mean accuracies of blocks of trials."""
    schedules = FMNIST_LINEAR.schedules.items()
    size = next(BLOCKS[scale] for scale, schedule in schedules if schedule == finished.run.schedule)
    values = finished.accuracies
    return [float(np.mean(np.ravel(values[first : first + size]))) for first in range(0, len(values), size)]

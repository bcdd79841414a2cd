"""ε̂ and test accuracy of trained models against the number of canaries K: Fashion-MNIST, a linear model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.setting import SINGLE
from lidp.reproduce.tables import Row, group, mean_and_error, select, sorted_groups
from lidp.reproduce.training_runs import CANARIES, STEPS, Run, TrainedModels
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.reproduce.training_trials import JUDGED, bounds_table, nominal_epsilons

_PAIR = "fmnist-linear"
COUNTS = {Scale.SMOKE: (1, 4), Scale.REDUCED: (1, 4, 16, 64), Scale.PAPER: (1, 2, 4, 8, 16, 32, 64)}
TRIALS = {Scale.SMOKE: 8, Scale.REDUCED: 250, Scale.PAPER: 1000}
BLOCKS = {Scale.SMOKE: 4, Scale.REDUCED: 40, Scale.PAPER: 25}
"""Trials whose mean accuracy is one observation."""


def _runs(scale: Scale) -> dict[Run, int]:
    return {
        Run(_PAIR, SCHEDULES[_PAIR][scale], canary, nominal, canaries, step): TRIALS[scale]
        for nominal in nominal_epsilons(scale)
        for canaries in reversed(COUNTS[scale])
        for canary in CANARIES
        for step in STEPS
    }


_SOURCE = TrainedModels("fmnist-canaries", _runs)


@experiment(
    "fmnist-canaries",
    "ε̂ against the number of canaries K for trained models: fmnist-linear",
    partial(bounds_table, trials=tuple(TRIALS.values())),
    _SOURCE,
)
def fmnist_canaries(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare ε̂ at K = √n with that at the best K."""
    trials = max(row["trials"] for row in table)
    for (canary, nominal), rows in group(table, "canary", "nominal_epsilon").items():
        judged = select(rows, trials=trials, **JUDGED)
        bounds = {row["canaries"]: row["epsilon_hat"] for row in select(judged, method="2nd-order Wilson")}
        alone = select(judged, method=SINGLE)
        if bounds and alone:
            root = min(bounds, key=lambda canaries: abs(canaries - trials**0.5))
            best = max(bounds, key=lambda canaries: bounds[canaries])
            note = f"K = {root}: {bounds[root]:.2f}; best K = {best}: {bounds[best]:.2f}; "
            note += f"one canary: {alone[0]['epsilon_hat']:.2f}"
            statement = f"{canary}, ε = {nominal:g}, n = {trials:,}: ε̂ at K nearest √n over the best"
            share, least = (bounds[root] / bounds[best], 0.75) if bounds[best] > 0 else (None, None)
            yield Finding(statement, share, at_least=least, note=note)


def _utility_table(runs: Sequence[Row]) -> list[Row]:
    """Return the mean test accuracy of the models at each K."""
    table = []
    for line, steps in sorted_groups(select(runs, score="centred"), "canary", "nominal_epsilon", "canaries"):
        mean, error = mean_and_error([accuracy for step in steps for accuracy in _block_means(step)])
        table.append(line | {"accuracy": mean, "standard_error": error})
    return table


def _block_means(run: Row) -> list[float]:
    """Return the mean accuracies of blocks of trials."""
    size = next(BLOCKS[scale] for scale, schedule in SCHEDULES[_PAIR].items() if schedule.records == run["records"])
    values = run["accuracies"]
    return [float(np.mean(np.ravel(values[first : first + size]))) for first in range(0, len(values), size)]


@experiment("utility", "test accuracy against the number of canaries K: fmnist-linear", _utility_table, _SOURCE)
def utility(table: Sequence[Row]) -> Iterator[Finding]:
    """State how much test accuracy depends on K."""
    most = max(row["canaries"] for row in table)
    for (canary, nominal), rows in group(table, "canary", "nominal_epsilon").items():
        values = [row["accuracy"] for row in rows]
        statement = f"{canary}, ε = {nominal:g}: points of test accuracy between the best and the worst K, up to K = {most}"
        note = f"accuracies {100 * min(values):.1f} to {100 * max(values):.1f} %"
        yield Finding(statement, 100 * (max(values) - min(values)), at_most=1.0, note=note)

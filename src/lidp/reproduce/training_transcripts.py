"""ε̂ from all steps of a training, against the claimed curve: how many models show what the paper shows with 1,000 trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lidp
from lidp.reproduce import setting
from lidp.reproduce.experiment import Experiment, Finding, Scale, seed_of
from lidp.reproduce.tables import Row, average, group, select
from lidp.reproduce.training_runs import Run, TrainedModels, data_of
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.trials.executors import Executor

CURVE, POINT, INTERVAL = "all steps, curve", "all steps, point", "final model, 2nd-order Wilson, K = 16"
MEASURED = (1, 2, 4, 8, 16)
"""Numbers of models at which the bounds are computed."""
TRIALS = (125, 250, 500, 1000)
"""The paper's numbers of trials."""
_MANY = 16
_REPETITIONS = 10


@dataclass(frozen=True)
class TranscriptRun(Run):
    """An audit of all steps, with gradients along one coordinate, against the whole curve of the claimed noise."""

    true_noise: float = 1.0

    @property
    def columns(self) -> Row:
        return super().columns | {"noise": self.true_noise}

    @property
    def design(self) -> lidp.Design:
        return lidp.CoinFlip(self.canaries)

    @property
    def pilots(self) -> int:
        return 0

    @property
    def target(self) -> lidp.Target:
        from lidp.training import find_preset, training_target

        options = {name: getattr(self.schedule, name) for name in ("epochs", "learning_rate", "accountant")}
        return training_target(
            data_of(self.schedule),
            self.claim,
            training=find_preset(self.schedule.preset).training(**options),
            canary=self.canary,
            canaries=self.canaries,
            scores="transcript",
            true_noise=self.true_noise,
        ).target

    def audit(self, folder: Path, trials: int, executor: Executor, watch: Any = None) -> list[Row]:
        """Run the audit, or resume it, as far as the executor goes, and return a row with its bounds."""
        result = lidp.audit(
            self.target, claim=self.claim, design=self.design, trials=trials, seed=self.audit_seed, stop_when="never",
            store=folder / self.file_name, executor=executor, watch=watch,
        )  # fmt: skip
        return self._rows(result)

    def _rows(self, result: lidp.AuditResult) -> list[Row]:
        """Return one row: the bounds after every number of models, the steps, and the noise that the claim requires."""
        paths = {CURVE: result.bound.path, POINT: () if result.bound.point is None else result.bound.point.path}
        accuracies = [note.metadata["scores_accuracy"] for note in result.notes]
        facts = {"paths": paths, "fell_at": result.bound.fell_at, "accuracy": float(np.mean(accuracies))}
        return [self.columns | facts | {"scores": result.scores}]


def _runs(scale: Scale, pair: str, cells: Sequence[tuple[float, int, float]], seeds: int) -> dict[Run, int]:
    schedule = SCHEDULES[pair][scale]
    return {
        TranscriptRun(pair, schedule, "dirac-gradient", nominal, canaries, "flip", seed, noise): max(MEASURED)
        if scale is Scale.PAPER
        else 4
        for seed in range(seeds if scale is Scale.PAPER else 1)
        for nominal, canaries, noise in cells
    }


def _table(runs: Sequence[Row], pair: str) -> list[Row]:
    """Return the mean bounds after each number of models, and what intervals on final models can show at most."""
    kind = ("pair", "nominal_epsilon", "noise", "canaries", "method")
    rows = [
        row | {"method": method, "models": models, "epsilon": _bound_after(path, models)}
        for same in group(runs, *kind[:-1]).values()
        for row in same
        for method, path in row["paths"].items()
        for models in MEASURED
        if models <= min(other["scores"].trials for other in same)
    ]
    nominals = sorted({row["nominal_epsilon"] for row in runs})
    predicted = [row for nominal in nominals for row in predict_interval(pair, nominal)]
    return average([*rows, *predicted], *kind, "models")


def _bound_after(path: Sequence[tuple[int, float]], models: int) -> float:
    return max((epsilon for at, epsilon in path if at <= models), default=0.0)


def predict_interval(pair: str, nominal: float) -> list[Row]:
    """Return ε̂ of the paper's interval on final models of correct training, if the parameters moved by noise and canaries alone.

    Scores of inserted canaries are then q √T / σ standard deviations above those of held-out ones, and independent. A trained
    model also moves by its data, so that real scores show no more. A trial is one model, as in replace-one, and as many trials
    again tune the threshold.
    """
    from lidp.training import calibrate, find_preset

    schedule = SCHEDULES[pair][Scale.PAPER]
    records = _RECORDS[pair]
    rate = find_preset(schedule.preset).batch_size / records
    steps = round(schedule.epochs / rate)
    sigma = calibrate(nominal, delta=setting.DELTA, rate=rate, steps=steps, accountant=schedule.accountant).sigma
    apart = rate * steps**0.5 / sigma
    common: Row = {"pair": pair, "nominal_epsilon": nominal, "noise": 1.0, "canaries": _MANY, "method": INTERVAL}
    rows = []
    for repetition in range(_REPETITIONS):
        rng = np.random.default_rng(seed_of({"pair": pair, "nominal": nominal, "repetition": repetition}))
        for n in TRIALS:
            tuning, measured = (
                lidp.Scores(inserted=apart + rng.standard_normal((n, _MANY)), held_out=rng.standard_normal((n, _MANY)))
                for _ in range(2)
            )
            wanted = {"method": "2nd-order Wilson", "candidates": "tail"}
            (bound,) = select(setting.measure(measured, setting.tune(tuning)), **wanted)
            rows.append(common | {"models": 2 * n, "epsilon": bound["epsilon"]})
    return rows


_RECORDS = {"fmnist-linear": 60_000, "cifar10-features": 50_000}


def _findings(table: Sequence[Row]) -> Iterator[Finding]:
    """State what 1,000 trials can show, and how many models show as much by all steps."""
    for (nominal,), rows in group(table, "nominal_epsilon").items():
        interval = {row["models"]: row["epsilon_hat"] for row in select(rows, method=INTERVAL)}
        most = max(interval)
        goal = interval[most]
        statement = f"ε = {nominal:g}: ε̂ of {TRIALS[-1]:,} trials with K = {_MANY}, 2nd-order Wilson, at most"
        yield Finding(statement, goal, note=f"{most:,} models, tuning counted")
        for (noise, canaries, method), same in group(rows, "noise", "canaries", "method").items():
            if method != INTERVAL:
                yield from _models_findings(f"ε = {nominal:g}, noise x {noise:g}, K = {canaries}, {method}", same, goal)


def _models_findings(which: str, rows: Sequence[Row], goal: float) -> Iterator[Finding]:
    """State the smallest measured number of models whose mean bound reaches the goal."""
    curve = {row["models"]: row["epsilon_hat"] for row in rows}
    last = max(curve)
    note = f"{curve[last]:.2f} with {last} models, standard error {rows[-1]['standard_error']:.2f}"
    needed = min((models for models, epsilon in curve.items() if epsilon >= goal), default=None)
    yield Finding(f"{which}: models for as much", None if needed is None else float(needed), note=note)


def _experiment(name: str, pair: str, about: str, cells: Sequence[tuple[float, int, float]], seeds: int) -> Experiment:
    runs = partial(_runs, pair=pair, cells=cells, seeds=seeds)
    source = TrainedModels(name, runs, (Scale.SMOKE, Scale.PAPER), first_stages=(4,))
    return Experiment(name, about, partial(_table, pair=pair), (source,), _findings)


fmnist_transcripts = _experiment(
    "fmnist-transcripts",
    "fmnist-linear",
    "models whose steps show what the paper shows with 1,000 trials: fmnist-linear, ε = 4 and 8",
    [(8.0, 64, 1.0), (8.0, 16, 1.0), (4.0, 64, 1.0), (4.0, 16, 1.0)],
    seeds=3,
)
cifar10_transcripts = _experiment(
    "cifar10-transcripts",
    "cifar10-features",
    "an audit of all steps on a third data set: CIFAR-10, a small network on random features, ε = 8, correct and too little noise",
    [(8.0, 64, 1.0), (8.0, 64, 0.8)],
    seeds=3,
)

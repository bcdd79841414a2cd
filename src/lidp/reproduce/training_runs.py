"""Audit trained models with :func:`lidp.audit`: one store per run, from which all statistics are computed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import lidp
from lidp.arrays import Floats
from lidp.designs.trial_record import TrialRecord
from lidp.reproduce import setting
from lidp.reproduce.experiment import Scale, Session, Source, seed_of
from lidp.reproduce.tables import Row
from lidp.reproduce.training_schedules import Schedule
from lidp.stats.registry import point_method
from lidp.streams import Purpose, stream
from lidp.trials.executors import Executor, Processes
from lidp.trials.setup import Setup

SCORES = ("centred", "raw")
"""Scores relative to pilot models, and the paper's plain inner product or loss."""
CANARIES = ("tail-example", "random-gradient")
"""The paper's two kinds: data poisoning and random gradients."""
STEPS = ("tune", "measure", "flip")
"""Leave-one-out trials to tune thresholds on, others to compute bounds on, and coin-flip trials."""
GRADIENT_PILOTS = 4
"""Pilot models, trained without noise, for canaries that are gradients."""


@dataclass(frozen=True)
class Run:
    """An audit of trained models: what is trained, at which ε, with how many canaries of which kind, for which step."""

    pair: str
    schedule: Schedule
    canary: str
    nominal: float
    canaries: int
    step: str
    seed: int = 0

    @property
    def columns(self) -> Row:
        """The columns of tables that describe it."""
        names = {"pair": self.pair, "records": self.schedule.records, "canary": self.canary}
        return names | {"nominal_epsilon": self.nominal, "canaries": self.canaries}

    @property
    def claim(self) -> lidp.Claim:
        """The claim that the noise is calibrated for."""
        return lidp.Claim(epsilon=self.nominal, delta=setting.DELTA)

    @property
    def design(self) -> lidp.Design:
        """Which canaries are inserted."""
        return lidp.CoinFlip(self.canaries) if self.step == "flip" else lidp.LeaveOneOut(self.canaries, self.canaries)

    @property
    def pilots(self) -> int:
        """Models trained before the first trial."""
        return GRADIENT_PILOTS if "gradient" in self.canary else self.schedule.references

    @property
    def audit_seed(self) -> int:
        """The seed of its audit, different for different runs."""
        return seed_of(asdict(self))

    @property
    def file_name(self) -> str:
        """The name of its store."""
        return f"{self.canary}-epsilon-{self.nominal:g}-canaries-{self.canaries}-{self.step}-{self.audit_seed:016x}.db"

    def audit(self, folder: Path, trials: int, executor: Executor, watch: Any = None) -> FinishedRun:
        """Run the audit, or resume it, as far as the executor goes, and return its finished trials."""
        result = lidp.audit(
            _target(replace(self, step="")),
            claim=self.claim,
            design=self.design,
            trials=trials,
            method=point_method(self.design, self.claim),  # as in the paper; its bounds are computed later, from the scores
            seed=self.audit_seed,
            stop_when="never",
            store=folder / self.file_name,
            executor=executor,
            watch=watch,
        )
        return FinishedRun.of(self, result)

    def recall(self, folder: Path) -> FinishedRun | None:
        """Return the finished trials of its store, None if there are none."""
        store = folder / self.file_name
        if not store.exists():
            return None
        try:
            result = lidp.result_of(store)
        except lidp.AuditFailed:  # no trial is finished
            return None
        return FinishedRun.of(self, result)


@dataclass(frozen=True)
class FinishedRun:
    """The finished trials of a run."""

    run: Run
    scores: dict[str, lidp.Scores]
    """by kind: centred and raw"""
    accuracies: list[list[float]]
    """for each trial the test accuracy of each of its models"""

    @property
    def trials(self) -> int:
        """Number of finished trials."""
        return len(self.accuracies)

    @classmethod
    def of(cls, run: Run, result: lidp.AuditResult) -> FinishedRun:
        """Take the scores of an audit, and the raw scores and accuracies that its trials noted.

        Raises:
            AuditFailed: if a trial failed, which training does only for want of memory or disk space.
        """
        for note in result.notes:
            if note.failures:
                reason = next(iter(note.failures.values())).strip().splitlines()[-1]
                raise lidp.AuditFailed(
                    f"trial {note.index} of {run.file_name} failed ({reason}); delete that file and run again"
                )
        # Trials are left out because of the deadline, which does not depend on scores.
        centred = result.scores.as_planned()
        arrays: dict[str, Any] = centred.to_arrays()
        arms = [name for name in ("inserted", "held_out", "scores") if name in arrays]
        raw: dict[str, Any] = {
            name: np.array([json.loads(note.metadata[f"{name}_raw"]) for note in result.notes]) for name in arms
        }
        accuracies = [[note.metadata[f"{name}_accuracy"] for name in arms] for note in result.notes]
        return cls(run, {"centred": centred, "raw": lidp.Scores(**arrays | raw)}, accuracies)


@dataclass(frozen=True)
class TrainedModels(Source):
    """Audits of trained models. Its cells are trials, and its rows are finished runs."""

    name: str
    runs: Callable[[Scale], dict[Run, int]]
    """returns the runs in the order in which they are computed, with the number of trials of each"""
    stages: Mapping[Scale, Sequence[int]] = field(default_factory=dict)
    """numbers of trials that all runs reach before any run goes on to the next"""
    scales: tuple[Scale, ...] = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)
    code = (
        "streams.py", "designs/*.py", "trials/trial.py", "_compiled/*.py", "canaries/*.py", "data/*.py", "training/*.py",
        "reproduce/training_runs.py",
    )  # fmt: skip

    def compute(self, session: Session) -> tuple[list[Any], int]:
        runs = self.runs(session.scale)
        planned = sum(runs.values())
        folder = session.store.path.parent / "runs"
        finished = {run: kept for run in runs if (kept := run.recall(folder)) is not None}
        for stage in (*self.stages.get(session.scale, ()), max(runs.values())):
            for run, trials in runs.items():
                done = finished[run].trials if run in finished else 0
                if session.is_over() or done >= min(stage, trials):
                    continue
                others = sum(one.trials for one in finished.values()) - done
                # A trial draws from its random streams alone: running it again after a process died changes nothing.
                executor = _StageExecutor(session.workers, retry=True, stage=stage, is_over=session.is_over)
                watch = functools.partial(self._report, session, others, planned)
                try:
                    finished[run] = run.audit(folder, trials, executor, watch)
                except lidp.AuditFailed:
                    if not session.is_over():  # else no trial was finished before the deadline
                        raise
        rows = [finished[run] for run in runs if run in finished]
        return rows, planned - sum(one.trials for one in rows)

    def _report(self, session: Session, others: int, planned: int, progress: lidp.Progress) -> None:
        session.report(self.name, others + progress.done, planned)


@dataclass(frozen=True, kw_only=True)
class _StageExecutor(Processes):
    """Runs trials in worker processes: those with numbers below ``stage``, and until time is over."""

    stage: int
    is_over: Callable[[], bool]

    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        results: Any = super().run(setup, [index for index in indices if index < self.stage])
        with closing(results):
            for records in results:
                yield records
                if self.is_over():
                    break


@dataclass(frozen=True)
class _BothScores:
    """Score canaries relative to pilot models, and note the paper's raw scores with the trial, all as 32-bit numbers.

    All canaries of an arm are scored at once. Both arms have equally many, so that rounding does not tell the arms apart.
    """

    centred: Any
    raw: Any
    auxiliary: ClassVar[int] = 0
    sequential: ClassVar[bool] = False

    def score_trial(self, context: Any, prepared: Any) -> Floats:
        scores = [kind.many(context.output, context.tested, prepared) for kind in (self.centred, self.raw)]
        centred, raw = (np.asarray(values, dtype=np.float32).astype(np.float64) for values in scores)
        context.notes["raw"] = json.dumps(raw.tolist())
        return centred


@dataclass(frozen=True)
class _SharedPilots:
    """Train the same pilot models for all steps of a run."""

    pilots: Any
    seed: int

    def __call__(self, dataset: Any, _rng: np.random.Generator) -> lidp.Prepared:
        prepared: lidp.Prepared = self.pilots(dataset, stream(self.seed, trial=0, purpose=Purpose.PREPARATION))
        return prepared


@functools.lru_cache(maxsize=2)
def _data(preset: str, classes: int, records: int, tested: int) -> Any:
    from lidp.data import synthetic_purchases
    from lidp.training import find_preset

    data = synthetic_purchases(classes=classes) if classes else find_preset(preset).load(None)
    data = data.first(records) if records else data
    return replace(data, test_x=data.test_x[:tested], test_y=data.test_y[:tested])


@functools.lru_cache(maxsize=16)  # all of a scale
def _target(run: Run) -> lidp.Target:
    """Return the target of a run without a step: it is the same for all steps."""
    from lidp.training import find_preset, training_target

    schedule, preset = run.schedule, find_preset(run.schedule.preset)
    options = {name: getattr(schedule, name) for name in ("epochs", "learning_rate", "accountant")}
    target = training_target(
        _data(schedule.preset, schedule.classes, schedule.records, schedule.tested),
        run.claim,
        training=preset.training(**options),
        canary=run.canary,
        canaries=run.canaries,
        pilots=run.pilots,
        tail=preset.tail,
        scale=preset.scale,
    ).target
    both = _BothScores(replace(target.score, centred=True), replace(target.score, centred=False))
    return replace(target, score=both, prepare=_SharedPilots(target.prepare, run.audit_seed))

"""Audit trained models with :func:`lidp.audit`: one store per run, from which all statistics are computed."""

from __future__ import annotations

import base64
import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import lidp
from lidp.claim import Claim
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.errors import AuditFailed
from lidp.reproduce import setting
from lidp.reproduce.experiment import Computed, Experiment, Scale, Session, Source, seed_of
from lidp.scores import Scores
from lidp.streams import Purpose, stream
from lidp.target import Prepared, Target

SCORES = ("centred", "raw")
"""Scores relative to pilot models, and the paper's plain inner product or loss."""
CANARIES = ("tail-example", "random-gradient")
"""The paper's two kinds: data poisoning and random gradients."""
STEPS = ("tune", "measure", "flip")
"""Leave-one-out trials to tune thresholds on, others to compute bounds on, and coin-flip trials."""
GRADIENT_PILOTS = 4
"""Pilot models, trained without noise, for canaries that are gradients."""


@dataclass(frozen=True)
class Schedule:
    """Data, model and training of one data set and model of the paper at one scale. Zero records mean all of them."""

    preset: str
    records: int
    epochs: float
    learning_rate: float
    references: int
    """pilot models for canaries that are examples; the paper's reference models"""
    tested: int
    """test examples that the accuracy is measured on"""
    classes: int = 0
    """classes of synthetic purchases; 0 for real data"""
    accountant: str = "rdp"
    """as in the paper"""


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
    def design(self) -> Design:
        """Which canaries are inserted."""
        return CoinFlip(self.canaries) if self.step == "flip" else LeaveOneOut(self.canaries, self.canaries)

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

    def audit(self, store: Path, trials: int, *, workers: int = 1, watch: Any = None) -> FinishedRun:
        """Run the audit, or resume it, and return its finished trials."""
        result = lidp.audit(
            _target(replace(self, step="")),
            claim=Claim(epsilon=self.nominal, delta=setting.DELTA),
            design=self.design,
            trials=trials,
            seed=self.audit_seed,
            stop_when="never",
            workers=workers,
            store=store,
            retry=True,  # a trial draws from its random streams alone: running it again changes nothing
            watch=watch,
        )
        return FinishedRun.of(self, result)

    def recall(self, store: Path) -> FinishedRun | None:
        """Return the finished trials of a store, None if there are none."""
        if not store.exists():
            return None
        try:
            result = lidp.result_of(store)
        except AuditFailed:  # no trial is finished
            return None
        return FinishedRun.of(self, result)


@dataclass(frozen=True)
class FinishedRun:
    """The finished trials of a run."""

    run: Run
    scores: dict[str, Scores]
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
                raise AuditFailed(
                    f"trial {note.index} of {run.file_name} failed ({reason}); delete that file and run again"
                )
        # Trials are left out because of the deadline, which does not depend on scores.
        centred = result.scores.as_planned()
        arrays: dict[str, Any] = centred.to_arrays()
        noted = [note.metadata for note in result.notes]
        arms: list[str] = [name for name in ("inserted", "held_out", "scores") if name in arrays]
        raw: dict[str, Any] = {name: np.array([_unpack(metadata[f"{name}_raw"]) for metadata in noted]) for name in arms}
        accuracies = [[metadata[f"{name}_accuracy"] for name in arms] for metadata in noted]
        return cls(run, {"centred": centred, "raw": Scores(**arrays | raw)}, accuracies)


class TrainedModels(Source, Experiment):
    """An experiment on trained models, which is its own source. Its cells are trials."""

    code = (
        "streams.py", "designs/*.py", "designs/*.py", "trials/trial.py", "_compiled/*.py", "canaries/*.py", "data/*.py",
        "training/*.py", "reproduce/training_runs.py",
    )  # fmt: skip
    scales: ClassVar[tuple[Scale, ...]] = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self,)

    @abstractmethod
    def runs(self, scale: Scale) -> dict[Run, int]:
        """Return the runs in the order in which they are computed, with the number of trials of each."""

    def stages(self, scale: Scale) -> Sequence[int]:
        """Return the numbers of trials that all runs reach before any run goes on to the next, the largest last."""
        return (max(self.runs(scale).values()),)

    def compute(self, session: Session) -> Computed:
        runs = self.runs(session.scale)
        folder = session.store.path.parent / "runs"
        recalled = {run: run.recall(folder / run.file_name) for run in runs}
        finished = {run: kept for run, kept in recalled.items() if kept is not None}
        for stage in self.stages(session.scale):
            for run, trials in runs.items():
                limit = stage
                while (done := finished[run].trials if run in finished else 0) < min(stage, trials):
                    if session.is_over():
                        break
                    others = sum(one.trials for one in finished.values()) - done
                    watch = _Watch(self.name, session, others, sum(runs.values()), math.inf if limit >= trials else limit)
                    kept = watch.audit(run, folder / run.file_name, trials)
                    finished |= {} if kept is None else {run: kept}
                    limit += session.workers  # a worker that was stopped may have left a gap before later trials
        rows = [finished[run] for run in runs if run in finished]
        return Computed(rows, sum(runs.values()) - sum(one.trials for one in rows))


@dataclass
class _Watch:
    """Report the progress of a run, and stop it at a number of trials or at the deadline of the session."""

    name: str
    session: Session
    others: int
    """finished trials of other runs"""
    planned: int
    """trials of all runs"""
    limit: float
    """finished trials at which the run is stopped"""
    stops: bool = False

    def __call__(self, progress: lidp.Progress) -> None:
        self.session.report(self.name, self.others + progress.done, self.planned)
        self.stops = self.session.is_over() or progress.done >= self.limit
        if self.stops:
            raise KeyboardInterrupt  # which an audit takes as a request to save its trials and stop

    def audit(self, run: Run, store: Path, trials: int) -> FinishedRun | None:
        """Audit until the run is stopped; return its finished trials, None if there are none."""
        try:
            return run.audit(store, trials, workers=self.session.workers, watch=self)
        except lidp.AuditInterrupted as interrupt:
            if not self.stops:
                raise
            return None if interrupt.result is None else FinishedRun.of(run, interrupt.result)


@dataclass(frozen=True)
class _BothScores:
    """Score canaries relative to pilot models, and note the paper's raw scores with the trial, all as 32-bit numbers.

    All canaries of an arm are scored at once. Both arms have equally many, so that rounding does not tell the arms apart.
    """

    centred: Any
    raw: Any
    auxiliary: ClassVar[int] = 0
    sequential: ClassVar[bool] = False

    def score_trial(self, context: Any, prepared: Any) -> NDArray[np.float64]:
        context.notes["raw"] = _pack(self.raw.many(context.output, context.tested, prepared))
        return _unpack(_pack(self.centred.many(context.output, context.tested, prepared)))


@dataclass(frozen=True)
class _SharedPilots:
    """Train the same pilot models for all steps of a run."""

    pilots: Any
    seed: int

    def __call__(self, dataset: Any, _rng: np.random.Generator) -> Prepared:
        prepared: Prepared = self.pilots(dataset, stream(self.seed, trial=0, purpose=Purpose.PREPARATION))
        return prepared


@functools.lru_cache(maxsize=2)
def _data(preset: str, classes: int, records: int, tested: int) -> Any:
    from lidp.data import synthetic_purchases
    from lidp.training import find_preset

    data = synthetic_purchases(classes=classes) if classes else find_preset(preset).load(None)
    data = data.first(records) if records else data
    return replace(data, test_x=data.test_x[:tested], test_y=data.test_y[:tested])


@functools.lru_cache(maxsize=16)  # all of a scale
def _target(run: Run) -> Target:
    """Return the target of a run without a step: it is the same for all steps."""
    from lidp.training import find_preset, training_target

    schedule, preset = run.schedule, find_preset(run.schedule.preset)
    target = training_target(
        _data(schedule.preset, schedule.classes, schedule.records, schedule.tested),
        Claim(epsilon=run.nominal, delta=setting.DELTA),
        training=preset.training(
            epochs=schedule.epochs, learning_rate=schedule.learning_rate, accountant=schedule.accountant
        ),
        canary=run.canary,
        canaries=run.canaries,
        pilots=run.pilots,
        tail=preset.tail,
        scale=preset.scale,
    ).target
    both = _BothScores(replace(target.score, centred=True), replace(target.score, centred=False))
    return replace(target, score=both, prepare=_SharedPilots(target.prepare, run.audit_seed))


def _pack(array: NDArray[np.floating]) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def _unpack(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)

"""Audit trained models with :func:`lidp.audit`: one store per run, from which all statistics are computed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
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
STAGES = (125, 250, 500)
"""Numbers of trials that all runs reach before any run goes on: however far time allows, runs can be compared."""
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
        trained = {"pair": self.pair, "records": self.schedule.records, "nominal_epsilon": self.nominal, "seed": self.seed}
        return trained | {"canary": self.canary, "canaries": self.canaries, "step": self.step, "pilots": self.pilots}

    @property
    def claim(self) -> lidp.Claim:
        """The claim that the noise is calibrated for."""
        return lidp.Claim(epsilon=self.nominal, delta=setting.DELTA)

    @property
    def design(self) -> lidp.Design:
        """Which canaries are inserted."""
        return lidp.CoinFlip(self.canaries) if self.step == "flip" else lidp.LeaveOneOut(self.canaries, self.canaries)

    @property
    def target(self) -> lidp.Target:
        """What is audited: the same for all steps."""
        return _target(replace(self, step=""))

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

    def audit(self, folder: Path, trials: int, executor: Executor, watch: Any = None) -> list[Row]:
        """Run the audit, or resume it, as far as the executor goes, and return the rows of its finished trials."""
        result = lidp.audit(
            self.target,
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
        return self._rows(result)

    def recall(self, folder: Path) -> list[Row]:
        """Return the rows of the finished trials in its store; none if there is no store or no finished trial."""
        store = folder / self.file_name
        try:
            return self._rows(lidp.result_of(store)) if store.exists() else []
        except lidp.AuditFailed:  # no trial is finished
            return []

    def _rows(self, result: lidp.AuditResult) -> list[Row]:
        """Return a row with the centred scores of an audit, and one with the raw scores that its trials noted.

        Both have the test accuracies of the models, trial by trial.

        Raises:
            AuditFailed: if a trial failed, which training does only for want of memory or disk space.
        """
        for note in result.notes:
            if note.failures:
                reason = next(iter(note.failures.values())).strip().splitlines()[-1]
                raise lidp.AuditFailed(
                    f"trial {note.index} of {self.file_name} failed ({reason}); delete that file and run again"
                )
        # Trials are left out because of the deadline, which does not depend on scores.
        centred = result.scores.as_planned()
        arrays: dict[str, Any] = centred.to_arrays()
        arms = [name for name in ("inserted", "held_out", "scores") if name in arrays]
        raw: dict[str, Any] = {
            name: np.array([json.loads(note.metadata[f"{name}_raw"]) for note in result.notes]) for name in arms
        }
        accuracies = [[note.metadata[f"{name}_accuracy"] for name in arms] for note in result.notes]
        both = {"centred": centred, "raw": lidp.Scores(**arrays | raw)}
        return [self.columns | {"score": kind, "scores": both[kind], "accuracies": accuracies} for kind in SCORES]


@dataclass(frozen=True)
class TrainedModels(Source):
    """Audits of trained models. Its cells are trials; its rows hold the scores of a run, of either kind."""

    name: str
    runs: Callable[[Scale], Mapping[Run, int]]
    """returns the runs in the order in which they are computed, with the number of trials of each"""
    scales: tuple[Scale, ...] = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)
    first_stages: tuple[int, ...] = ()
    """numbers of trials that all runs reach before those of ``STAGES``"""
    code = (
        "streams.py", "designs/*.py", "trials/trial.py", "_compiled/*.py", "canaries/*.py", "data/*.py", "training/*.py",
        "reproduce/training_runs.py",
    )  # fmt: skip

    def compute(self, session: Session) -> tuple[list[Row], int]:
        runs = self.runs(session.scale)
        folder = session.store.path.parent / "runs"
        finished = {run: run.recall(folder) for run in runs}
        for stage in (*self.first_stages, *STAGES, max(runs.values())):
            for run, trials in runs.items():
                if _trials(finished[run]) >= min(stage, trials) or session.is_over():
                    continue
                # A trial draws from its random streams alone: running it again after a process died changes nothing.
                executor = _StageExecutor(session.workers, retry=True, stage=stage, is_over=session.is_over)
                others = sum(_trials(rows) for other, rows in finished.items() if other != run)
                watch = functools.partial(self._report, session, others, sum(runs.values()))
                try:
                    finished[run] = run.audit(folder, trials, executor, watch)
                except lidp.AuditFailed:
                    if not session.is_over():  # else no trial was finished before the deadline
                        raise
        done = sum(map(_trials, finished.values()))
        return [row for run in runs for row in finished[run]], sum(runs.values()) - done

    def _report(self, session: Session, others: int, planned: int, progress: lidp.Progress) -> None:
        session.report(self.name, others + progress.done, planned)


def _trials(rows: Sequence[Row]) -> int:
    """Return the number of finished trials of a run, from its rows."""
    return rows[0]["scores"].trials if rows else 0


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


def data_of(schedule: Schedule) -> Any:
    """Return the data set of a schedule."""
    return _data(schedule.preset, schedule.classes, schedule.records, schedule.tested)


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
        data_of(schedule),
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

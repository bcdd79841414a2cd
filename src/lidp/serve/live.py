"""``LiveAudit``: follow one audit, and say at each look how far it is and what it shows so far."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lidp.designs.trial_record import TrialRecord
from lidp.engine.follower import MOST_TRIALS, Follower
from lidp.engine.pace import Pace
from lidp.engine.plan import AuditPlan
from lidp.engine.progress import seconds_left
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import AuditFailed, MethodNotApplicable
from lidp.report.figure_data import BoundPath, ScoreDistributions, claim_words
from lidp.report.trial_facts import last_line
from lidp.result import AuditResult, Verdict
from lidp.serve.listing import State
from lidp.stats.storable import Storable
from lidp.store import is_locked

MOST_REASONS = 20
_LONGEST_REASON = 200
_MOST_COUNTED = 1000  # different reasons; a mechanism may name each of its outputs in one
_MOST_SCORES = 100_000
_LEAST_SECONDS = 0.5  # between two readings of the store, however many pages are open


@dataclass(frozen=True)
class FailedTrial:
    """One of the last trials in which a run failed, with the whole reason."""

    number: int
    reason: str


@dataclass(frozen=True)
class Snapshot:
    """How far an audit is, and what its trials show so far.

    Attributes:
        plan: the settings of the audit.
        state: whether it is being run.
        reading: whether further trials wait in the store, which the next look reads.
        done: finished rows: trials, or runs for two data sets.
        rate: finished rows per second; None if there is no estimate.
        quiet_seconds: seconds since a row finished, while the audit is running.
        verdict: the verdict so far; None if there is none yet.
        bound: the bound so far; None for methods that give none before the end.
        models: all models trained so far, those of the preparation included.
        planned_models: the same at the end of the budget.
        trial_seconds: the total time of all trials, over all workers.
        failed_trials: the number of trials in which a run failed.
        reasons: why runs failed, with the number of trials, the most frequent reason first.
        examples: the last failed trials.
        path: the bound by number of trials.
        scores: the distributions of the last scores.
        problem: why there is no result, if the audit has come to its end without one.
        result: the result, once the audit has ended.
    """

    plan: AuditPlan
    state: State
    reading: bool
    done: int
    rate: float | None
    quiet_seconds: float
    verdict: Verdict | None
    bound: EpsilonBound | None
    models: int
    planned_models: int
    trial_seconds: float
    failed_trials: int
    reasons: tuple[tuple[str, int], ...]
    examples: tuple[FailedTrial, ...]
    path: BoundPath | None
    scores: ScoreDistributions | None
    problem: str = ""
    result: AuditResult | None = None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest of the budget takes at this rate; None if there is no estimate."""
        return seconds_left(self.done, self.plan.rows, self.rate)


class LiveAudit:
    """One audit that somebody looks at. Several threads may look; the store is read at most twice per second.

    Raises:
        StoreError: if the store cannot be read, or was replaced by another. So does :meth:`look`.
        ClassNotImported: if its method is a user's own.
    """

    def __init__(self, path: Path, *, methods: Iterable[type[Storable]] = ()) -> None:
        self._follower = Follower(path, methods=methods)
        self._mutex = threading.Lock()
        self._pace = Pace()
        self._reasons: Counter[str] = Counter()
        self._examples: deque[FailedTrial] = deque(maxlen=MOST_REASONS)
        self._trial_seconds = 0.0
        self._failed = 0
        self._could_refute_at = 1  # rows at which to ask next whether the trials could refute anything; 0: they can
        self._looked = 0.0
        self._last: Snapshot | None = None

    def look(self) -> Snapshot:
        """Read new trials, and return how the audit stands now."""
        with self._mutex:
            now = time.monotonic()
            if self._last is None or self._last.reading or now - self._looked >= _LEAST_SECONDS:
                self._last = self._read(now)
                self._looked = time.monotonic()
            return self._last

    def result(self) -> AuditResult:
        """Return the result so far, of all trials that are in the store now.

        Raises:
            AuditFailed: if there is none yet.
        """
        with self._mutex:
            while records := self._follower.update():
                self._count(records)
            self._last = None
            return self._follower.result()

    def _read(self, now: float) -> Snapshot:
        locked = is_locked(self._follower.path)  # before reading: what a process wrote before it ended is read
        before = self._follower.ledger.finished_rows
        records = self._follower.update()
        finished = self._follower.ledger.finished_rows
        self._count(records)
        reading = len(records) >= MOST_TRIALS
        if reading or not locked:
            self._pace.forget()  # these trials did not finish just now
        else:
            self._pace.arrived(now, finished - before, [record.seconds for record in records])
        state = State.ENDED if self._follower.ended else State.RUNNING if locked else State.PAUSED
        last = self._last
        if records or last is None or last.reading or state is not last.state:
            return self._evaluate(now, state, reading=reading)
        return replace(last, rate=self._pace.per_second(), quiet_seconds=self._pace.quiet_seconds(now))

    def _count(self, records: Iterable[TrialRecord]) -> None:
        for record in records:
            note = self._follower.ledger.scorer.note(record)
            self._trial_seconds += note.seconds
            if not note.failures:
                continue
            reason = next(iter(note.failures.values()))
            self._failed += 1
            self._examples.append(FailedTrial(record.index, reason))
            shown = " ".join(last_line(reason).split())[:_LONGEST_REASON]
            if shown in self._reasons or len(self._reasons) < _MOST_COUNTED:
                self._reasons[shown] += 1

    def _evaluate(self, now: float, state: State, *, reading: bool) -> Snapshot:
        follower, plan = self._follower, self._follower.plan
        done = follower.ledger.finished_rows
        result, problem = self._end(state, reading=reading)
        bound = follower.ledger.bound_so_far() if result is None else result.bound
        verdict = self._verdict(bound) if result is None else result.verdict
        scores = None if reading else follower.ledger.last_scores(max(1, _MOST_SCORES // plan.design.canaries))
        return Snapshot(
            plan=plan,
            state=state,
            reading=reading,
            done=done,
            rate=self._pace.per_second(),
            quiet_seconds=self._pace.quiet_seconds(now),
            verdict=verdict,
            bound=bound,
            models=done * plan.design.models_per_trial + follower.preparation_models,
            planned_models=plan.rows * plan.design.models_per_trial + follower.preparation_models,
            trial_seconds=self._trial_seconds,
            failed_trials=self._failed,
            reasons=tuple(self._reasons.most_common(MOST_REASONS)),
            examples=tuple(reversed(self._examples)),
            path=None if bound is None else _path(bound, plan, refuted=verdict is Verdict.REFUTED),
            scores=None if scores is None else ScoreDistributions.of(scores),
            problem=problem,
            result=result,
        )

    def _end(self, state: State, *, reading: bool) -> tuple[AuditResult | None, str]:
        """Return the result of an audit that has ended, or why there is none."""
        if state is not State.ENDED or reading:
            return None, ""
        if self._last is not None and self._last.result is not None:
            return self._last.result, ""
        try:
            return self._follower.result(), ""
        except (AuditFailed, MethodNotApplicable) as error:
            return None, str(error)

    def _verdict(self, bound: EpsilonBound | None) -> Verdict | None:
        """Return the verdict so far of a method that has one before the end."""
        if bound is None:
            return None
        if bound.refutes(self._follower.plan.claim):
            return Verdict.REFUTED
        rows = bound.trials
        if self._could_refute_at and rows >= self._could_refute_at:
            # Asking takes longer with more trials; once the answer is yes, it stays yes.
            self._could_refute_at = 0 if self._follower.could_refute() else 2 * rows
        return None if self._could_refute_at else Verdict.NOT_REFUTED


def _path(bound: EpsilonBound, plan: AuditPlan, *, refuted: bool) -> BoundPath:
    words = claim_words(plan.claim, (bound.epsilon, bound.epsilon_point))
    anytime = plan.method.anytime
    return BoundPath.of_bound(bound, plan.claim, planned=plan.rows, anytime=anytime, refuted=refuted, claim_text=words)

"""``Ledger``: the finished trials of an audit, the bets on them, and the row at which the audit stops."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from lidp.arrays import Floats
from lidp.designs.trial_record import TrialRecord
from lidp.engine.plan import AuditPlan
from lidp.engine.score_log import ScoreLog
from lidp.engine.scorer import Scorer
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import AuditFailed
from lidp.scores import Scores
from lidp.stats.method import AnytimeMethod
from lidp.stats.registry import with_point
from lidp.trial_notes import TrialNotes


class Ledger:
    """The evidence of an audit so far.

    Trials may finish in any order. They are scored and bet on in the order of their numbers, up to the first one that is
    missing, so the result does not depend on where and when they ran.
    """

    def __init__(
        self, plan: AuditPlan, scorer: Scorer, keep_predictions: Callable[[dict[int, Floats]], None] | None = None
    ) -> None:
        self._keep_predictions = keep_predictions
        self.plan = plan
        self.scorer = scorer
        self.failed_trials = 0
        self.transcripts: list[TrialRecord] = []  # bet-on trials with evidence about their steps
        self._waiting: dict[int, TrialRecord] = {}
        self._notes = TrialNotes()
        self._scores = ScoreLog()
        self._stopped_at_row: int | None = None
        curve = plan.claim.curve
        self._least_refuting_epsilon = plan.claim.epsilon if curve is None else curve.epsilon(plan.claim.delta)
        self._run = (
            plan.method.begin(delta=plan.claim.delta, failure_probability=plan.failure_probability)
            if isinstance(plan.method, AnytimeMethod)
            else None
        )

    @property
    def bet_trials(self) -> int:
        """The number of trials that have been scored and bet on; they are the first ones."""
        return len(self._notes)

    @property
    def waiting(self) -> int:
        """The number of finished trials that wait for an earlier one."""
        return len(self._waiting)

    @property
    def finished_rows(self) -> int:
        """The number of finished rows of scores, including those after a missing trial."""
        rows = self.plan.design.rows
        return rows(self.bet_trials) + sum(rows(index + 1) - rows(index) for index in self._waiting)

    @property
    def stopped(self) -> bool:
        """Whether the claim is refuted and the plan stops at a refutation."""
        return self._stopped_at_row is not None

    @property
    def epsilon(self) -> float | None:
        """The bound so far; None for methods that give none before the end."""
        return None if self._run is None else self._run.epsilon

    def has(self, index: int) -> bool:
        """Return whether a trial has been added."""
        return index < self.bet_trials or index in self._waiting

    def bound_so_far(self) -> EpsilonBound | None:
        """Return the bound on the trials bet on so far, without one on the point beside that on a curve.

        Return None if there is no trial yet, or the method gives no bound before the end.
        """
        return None if self._run is None or not self._scores.rows else self._run.bound()

    def last_scores(self, rows: int) -> Scores | None:
        """Return the last ``rows`` rows of scores that were bet on, fewer if there are not as many; None if there are none."""
        return self._scores.last(rows)

    def missing(self) -> Sequence[int]:
        """Return the numbers of the trials that are not finished; as a range where possible, which takes no memory."""
        if not self._waiting:
            return range(self.bet_trials, self.plan.trials)
        return [index for index in range(self.bet_trials, self.plan.trials) if index not in self._waiting]

    def whole_trials(self) -> Iterator[int]:
        """Yield the numbers of the finished trials in which no run failed."""
        waiting = (index for index, record in sorted(self._waiting.items()) if not record.failures)
        return chain((index for index in range(self.bet_trials) if index not in self._notes.failures), waiting)

    def add(self, records: Sequence[TrialRecord]) -> None:
        """Add finished trials, and bet on all trials up to the first missing one."""
        self._waiting.update({record.index: record for record in records})
        self.failed_trials += sum(bool(record.failures) for record in records)
        ready = []
        index = self.bet_trials
        while index in self._waiting and index < self.plan.trials and self.scorer.can_score(self._waiting[index]):
            ready.append(self._waiting.pop(index))
            index += 1
        step = 1 if self.scorer.learns else max(1, len(ready))
        for start in range(0, len(ready), step):
            self._bet_on(ready[start : start + step])

    def _bet_on(self, records: Sequence[TrialRecord]) -> None:
        self._notes.extend(self.scorer.note(record) for record in records)
        self.transcripts.extend(record for record in records if record.evidence)
        if self.stopped:
            return  # the result ends at the row that refuted the claim
        scores = self.scorer.score(records)
        if self._keep_predictions is not None:
            # Before the bet and before the predictor learns: whatever happens next, no other prediction is made for these trials.
            self._keep_predictions(self.scorer.take_predictions())
        self._scores.append(scores)
        if self._run is not None:
            may_be_refuted = self._run.update(scores) >= self._least_refuting_epsilon
            if may_be_refuted and self.plan.stop_when == "refuted":
                self._stopped_at_row = self._run.bound().refuted_after(self.plan.claim)
        if self.scorer.learns:
            beyond = 0 if self._stopped_at_row is None else self.plan.design.rows(self.bet_trials) - self._stopped_at_row
            self.scorer.learn(records[-1], scores.trials - beyond)

    def scores(self) -> Scores:
        """Return the scores of the result: up to the row that refuted the claim, marked if fewer than planned.

        Raises:
            AuditFailed: if there are none, or they hold no outcome at all.
        """
        if not self._scores.rows:
            raise AuditFailed("no trial is finished, so there is no result yet")
        scores = self._scores.all()
        if self._stopped_at_row is not None:
            scores = scores[: self._stopped_at_row]
        self.scorer.require_outcomes(scores.trials)
        return scores.stopped() if scores.trials < self.plan.rows else scores

    def bound(self, scores: Scores) -> EpsilonBound:
        """Return the bound from the scores that :meth:`scores` returned."""
        plan = self.plan
        if not plan.method.anytime:
            scores = scores.as_planned()  # the verdict marks the bound as provisional
        if self._run is not None and not self.stopped:
            bound = self._run.bound()  # on the same trials, which arrived in several parts
        else:
            bound = plan.method.bound(scores, delta=plan.claim.delta, failure_probability=plan.failure_probability)
        return with_point(bound, plan.method, scores, claim=plan.claim)

    def notes(self, rows: int) -> TrialNotes:
        """Return the notes of the trials of the first ``rows`` rows."""
        used = bisect_left(range(len(self._notes) + 1), rows, key=self.plan.design.rows)
        return self._notes.first(used)

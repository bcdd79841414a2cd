"""``Scorer``: convert the records of finished trials into scores, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lidp._runtime.tracebacks import describe_failure
from lidp.arrays import Floats
from lidp.designs import Design
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed
from lidp.scores import Scores
from lidp.trial_notes import TrialNote


class Scorer(Protocol):
    """The part of an audit that scores trials. It gets every record once, in the order of their numbers."""

    @property
    def learns(self) -> bool:
        """Whether scores depend on earlier trials, so that the ledger scores, bets and learns one trial at a time."""

    def can_score(self, record: TrialRecord) -> bool:
        """Return whether a record can be scored: the classifier of a stored audit may not be available."""

    def score(self, records: Sequence[TrialRecord]) -> Scores:
        """Return the scores of the next records."""

    def learn(self, record: TrialRecord, rows: int) -> None:
        """Learn from the first ``rows`` rows of the record that was scored last."""

    def take_predictions(self) -> dict[int, Floats]:
        """Return the predictions by trial since the last call, to be stored."""

    def note(self, record: TrialRecord) -> TrialNote:
        """Return the facts about a trial other than its scores, for the result."""

    def require_outcomes(self, rows: int) -> None:
        """Raise ``AuditFailed`` if the first ``rows`` rows hold no outcome at all, which would look like privacy."""

    def explain(self, scores: Scores) -> str:
        """Return in words where the leak shows; empty if the scorer does not know."""


class CanaryScorer:
    """The scorer of audits with canaries: the records hold the scores, and nothing is learned."""

    learns = False

    def __init__(self, design: Design, *, sequential: bool) -> None:
        self.design = design
        self.sequential = sequential
        self._trials = 0
        self._any_outcome = False
        self._any_score = False
        self._first_failure = ""
        self._first_problem = ""

    def can_score(self, record: TrialRecord) -> bool:
        """See :class:`Scorer`."""
        return True

    def score(self, records: Sequence[TrialRecord]) -> Scores:
        """See :class:`Scorer`."""
        for record in records:
            if self._any_outcome and self._any_score:
                break
            self._look_at(record)
        self._trials += len(records)
        return Scores.of_block(**self.design.score_arrays(records), sequential=self.sequential)

    def _look_at(self, record: TrialRecord) -> None:
        reason = record.failure
        if record.lost:
            self._first_failure = self._first_failure or reason
            return
        self._any_outcome = True
        self._any_score = self._any_score or not reason
        self._first_problem = self._first_problem or reason

    def learn(self, record: TrialRecord, rows: int) -> None:
        """See :class:`Scorer`."""

    def take_predictions(self) -> dict[int, Floats]:
        """See :class:`Scorer`."""
        return {}

    def note(self, record: TrialRecord) -> TrialNote:
        """See :class:`Scorer`."""
        return TrialNote(record.index, record.seconds, record.attempts, record.failures, record.metadata)

    def require_outcomes(self, rows: int) -> None:
        """See :class:`Scorer`. A score that fails for every canary is an error of the auditor, not privacy of the mechanism."""
        if not self._any_outcome:
            all_of_them = "the only trial failed" if self._trials == 1 else f"all {self._trials:,} trials failed, the first"
            raise AuditFailed(f"{all_of_them} with: {describe_failure(self._first_failure)}")
        if not self._any_score:
            raise AuditFailed(f"no canary could be scored, the first because: {describe_failure(self._first_problem)}")

    def explain(self, scores: Scores) -> str:
        """See :class:`Scorer`."""
        return ""


StoredPredictions = Mapping[int, Floats]

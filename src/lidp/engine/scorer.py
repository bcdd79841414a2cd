"""``Scorer``: turns the records of finished trials into scores, in the order of the trials' numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lidp.designs import Design
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed
from lidp.result import TrialNote
from lidp.scores import Scores

Floats = NDArray[np.float64]


class Scorer(Protocol):
    """What the ledger needs of a kind of audit. Records come in the order of their numbers, each of them once."""

    @property
    def learns(self) -> bool:
        """Whether scores depend on earlier trials, so that trials are scored, bet on and learned from one by one."""

    def can_score(self, record: TrialRecord) -> bool:
        """Return whether a record can be scored here: the predictor of a stored audit may not be at hand."""

    def score(self, records: Sequence[TrialRecord]) -> Scores:
        """Return the scores of the next records."""

    def learn(self, record: TrialRecord, rows: int) -> None:
        """Learn from the first ``rows`` rows of the record that was scored and bet on last."""

    def take_predictions(self) -> dict[int, Floats]:
        """Return the predictions, by trial, that were made since the last call and have to be stored."""

    def note(self, record: TrialRecord) -> TrialNote:
        """Return what the result tells of a trial besides its scores."""

    def require_outcomes(self, rows: int) -> None:
        """Raise ``AuditFailed`` if the first ``rows`` rows say nothing at all, which would look like privacy."""

    def explain(self, scores: Scores) -> str:
        """Return in words where the leak shows, as far as the scorer knows; empty if it does not."""


class CanaryScorer:
    """The scorer of audits with canaries: trials carry their scores, nothing is learned."""

    learns = False

    def __init__(self, design: Design, *, sequential: bool) -> None:
        self.design = design
        self.sequential = sequential
        self._trials = 0
        self._any_outcome = False
        self._any_score = False
        self._first_failure = ""
        self._first_trouble = ""

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
        if record.lost:
            self._first_failure = self._first_failure or _last_line(next(iter(record.failures.values())))
            return
        self._any_outcome = True
        for name, array in record.arrays.items():
            if name == "coins" or name in record.failures:
                continue
            if len(array) > int(record.metadata.get(f"{name}_unscored", 0)):
                self._any_score = True
            self._first_trouble = self._first_trouble or str(record.metadata.get(f"{name}_unscored_because", ""))

    def learn(self, record: TrialRecord, rows: int) -> None:
        """See :class:`Scorer`."""

    def take_predictions(self) -> dict[int, Floats]:
        """See :class:`Scorer`."""
        return {}

    def note(self, record: TrialRecord) -> TrialNote:
        """See :class:`Scorer`."""
        return TrialNote(record.index, record.seconds, record.attempts, record.failures, record.metadata)

    def require_outcomes(self, rows: int) -> None:
        """See :class:`Scorer`. A score that works for no canary at all is the auditor's mistake, not the mechanism's privacy."""
        if not self._any_outcome:
            raise AuditFailed(f"all {self._trials:,} trials failed, the first with: {self._first_failure}")
        if not self._any_score:
            raise AuditFailed(f"no canary could be scored, the first because: {_last_line(self._first_trouble)}")

    def explain(self, scores: Scores) -> str:
        """See :class:`Scorer`."""
        return ""


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


StoredPredictions = Mapping[int, Floats]

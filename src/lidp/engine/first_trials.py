"""``FirstTrials``: end an audit whose first trials all fail, instead of spending its whole budget on failures."""

from __future__ import annotations

from collections.abc import Iterable

from lidp._runtime.tracebacks import describe_failure, last_lines
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed

MOST_FIRST_FAILURES = 8
"""Trials that may fail before one succeeds. A target of which every second trial fails has that many once in 256 audits."""


class FirstTrials:
    """Counts failed trials until the first trial that has a score.

    Guarantee: an audit that ends here gives no verdict, so its claim is not refuted. All finished trials are kept, with their
    numbers and coins: resuming goes on with the next trial, and the bets are the same as if the audit had never ended.
    """

    def __init__(self) -> None:
        self._any_score = False
        self._resumed = False
        self._failed = 0
        self._first_reason = ""

    def recall(self, records: Iterable[TrialRecord]) -> None:
        """Note the trials of an earlier session. Their failures do not count: whoever resumes wants to see further trials."""
        for record in records:
            self._resumed = True
            self._any_score = self._any_score or not record.failure

    def look_at(self, records: Iterable[TrialRecord]) -> None:
        """Note finished trials.

        Raises:
            AuditFailed: if ``MOST_FIRST_FAILURES`` trials have failed, and none has succeeded.
        """
        for record in () if self._any_score else records:
            reason = record.failure
            if not reason:
                self._any_score = True
                return
            self._failed += 1
            self._first_reason = self._first_reason or reason
        if not self._any_score and self._failed >= MOST_FIRST_FAILURES:
            raise self._error()

    def _error(self) -> AuditFailed:
        which = "next" if self._resumed else "first"
        error = AuditFailed(
            f"the {which} {self._failed:,} trials all failed, so the audit stopped without a verdict; the first of them with: "
            f"{describe_failure(self._first_reason)}. Mend the target and begin a new audit; resume only if later trials may work"
        )
        if lines := last_lines(self._first_reason):
            error.add_note(lines)
        return error

"""``Setup``: what executors know of the trials that they run, and the reason of those that took too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lidp.designs import Design
from lidp.designs.trial_record import TrialRecord


class Setup(Protocol):
    """All that the trials of an audit share. Executors send it to where trials run, and call :meth:`run` there."""

    @property
    def target(self) -> Any:
        """What is audited."""

    @property
    def design(self) -> Design:
        """The design of the audit."""

    @property
    def seed(self) -> int:
        """The seed of the audit."""

    @property
    def has_preparation(self) -> bool:
        """Whether a preparation step has run before the first trial."""

    def run(self, indices: Sequence[int]) -> list[TrialRecord]:
        """Run the trials of these numbers. What a mechanism raises is recorded, not raised."""

    def lost_record(self, index: int, reason: str, *, seconds: float, attempts: int = 1) -> TrialRecord:
        """Return the record of a trial whose process did not come back."""


def describe_time_limit(seconds: float) -> str:
    """Return the reason why a trial that took longer has failed."""
    return f"passed the time limit of {seconds:g} s"

"""The interface of executors: what runs the trials of an audit. An executor never changes what a trial computes."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from lidp.designs.trial_record import TrialRecord
from lidp.trials.child_processes import run_in_fresh_process
from lidp.trials.setup import Setup

Work = Callable[[], Any]

_TRIALS_PER_CALL = 64


class Executor(ABC):
    """Runs trials and yields their records.

    An executor of your own inherits from this class and needs to define :meth:`run` only, with
    ``setup.run`` for the trials themselves. The other members have defaults for an executor that runs
    trials in the process that called it, one after the other. One that runs them in other processes should also set
    ``separate_processes`` and ``several`` and, if these processes are not forked on this machine, define :meth:`run_work`:
    mechanisms are then probed for randomness that is the same in every process (see :mod:`lidp.trials.probe`).

    Attributes:
        yields_while_waiting: whether :meth:`run` yields an empty list about every 0.2 seconds while it waits for trials to finish,
            so that the caller can save and report what is finished. If it does not, a thread of the caller does so.
        separate_processes: whether trials run in processes other than the one that called :meth:`run`.
        time_limit: seconds after which a trial is recorded as failed; None if there is no limit.
    """

    yields_while_waiting: ClassVar[bool] = False
    separate_processes: ClassVar[bool] = False
    time_limit: float | None = None

    @property
    def several(self) -> bool:
        """Whether trials run in more than one process."""
        return False

    @abstractmethod
    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        """Run the trials with these numbers and yield their records, each exactly once, in any order and grouping.

        Closing the iterator stops the trials that are running.
        """

    def prepare(self, work: Work) -> Any:
        """Return ``work()``, the result of the target's preparation step; by default it runs in this process."""
        return work()

    def run_work(self, work: Work, time_limit: float | None = None) -> Any:
        """Return ``work()``, called in a fresh process of the kind that trials run in; by default one forked from this process.

        Raises:
            AuditFailed: if the process dies or exceeds the time limit (in seconds).
        """
        return run_in_fresh_process(work, time_limit)

    def session(self) -> AbstractContextManager[Any]:
        """Return a context in which several calls of :meth:`run_work` and :meth:`run` share what is costly to set up."""
        return contextlib.nullcontext()


def group_trials(setup: Setup, indices: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the trials in groups of the size that one call of ``setup.run`` should get.

    That is one trial, or several if the mechanism has ``run_many``.
    """
    size = _TRIALS_PER_CALL if hasattr(setup.target.mechanism, "run_many") else 1
    for start in range(0, len(indices), size):
        yield indices[start : start + size]

"""Run trials in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lidp._runtime.workers import use_one_core
from lidp.designs.trial_record import TrialRecord
from lidp.trials.executor import Executor, group_trials
from lidp.trials.setup import Setup


@dataclass(frozen=True)
class Serial(Executor):
    """Runs one trial after the other in this process. A mechanism that kills it ends the audit; with a store it can be resumed.

    Linear algebra uses one core, as in worker processes. To use more cores, use more workers.
    """

    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        with use_one_core():
            for group in group_trials(setup, indices):
                yield setup.run(group)

"""The local executors, and the choice between them."""

from __future__ import annotations

from lidp import checks
from lidp.errors import InvalidArgument
from lidp.trials.executor import Executor
from lidp.trials.processes import Processes
from lidp.trials.serial import Serial

__all__ = ["Executor", "Processes", "Serial", "choose_executor"]


def choose_executor(workers: int, time_limit: float | None, retry: bool, executor: Executor | None = None) -> Executor:
    """Return the executor that is given; else :class:`Serial` for one worker without a time limit, else :class:`Processes`.

    Raises:
        InvalidArgument: if ``executor`` does not inherit from :class:`Executor`, or there is not at least one worker.
    """
    if executor is not None:
        if not isinstance(executor, Executor):
            raise InvalidArgument(
                f"executor must inherit from lidp.trials.executor.Executor, got {type(executor).__name__}; define run() in a "
                "subclass of it"
            )
        return executor
    workers = checks.count(workers=workers)
    if workers == 1 and time_limit is None:
        return Serial()
    return Processes(workers, time_limit, retry)

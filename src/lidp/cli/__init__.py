"""The command ``lidp``. One file per subcommand."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from typing import Any, NoReturn

from lidp._runtime.interrupts import STOP_SIGNALS
from lidp.cli.output import end_of_results
from lidp.cli.standard_streams import Outlet, prepare_streams

_BAD_INPUT = 2
_OBJECTS_PER_SEARCH = 50_000  # new objects before garbage is searched for; imports make many, and no garbage

_leave = os._exit


def main() -> None:
    """Run the command and end the process: with 0, 1 (a claim was refuted, and nothing else), 2 or 130."""
    gc.set_threshold(_OBJECTS_PER_SEARCH)
    ending = _Ending()
    os._exit = ending.leave  # user code calls this from now on
    results = prepare_streams()
    for number in STOP_SIGNALS:  # SIGTERM and SIGHUP save finished trials, as Ctrl-C does
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)
    code = _flush(_run(sys.argv[1:]), results)
    end_of_results()
    ending.finish(code)


class _Ending:
    """Ends the process with the exit code of the command, whatever user code does.

    If a target or one of its exit handlers calls ``os._exit`` in this process, its exit code is ignored: it is no verdict. In
    other processes, such as workers, ``os._exit`` works as usual.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._code: int | None = None

    def leave(self, status: int) -> NoReturn:
        """End the process in place of ``os._exit``."""
        if os.getpid() != self._process:
            _leave(status)
        if self._code is None:
            _say(f"the target ended the process by os._exit({status}); with --workers 2 that is a failed run")
        _leave(_BAD_INPUT if self._code is None else self._code)

    def finish(self, code: int) -> NoReturn:
        """End the process with the code of the command; exit handlers run, a last search for garbage does not."""
        self._code = code
        gc.freeze()  # that search takes as long as importing numba, if numba was imported
        sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command with some arguments and return its exit code."""
    from lidp.cli.app import run as run_app

    return run_app(arguments)


def _run(arguments: list[str]) -> int:
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001  # an installation that cannot be imported, for one
        _say(f"this should not have happened: {type(error).__name__}: {error}")
        return _BAD_INPUT


def _flush(code: int, results: Outlet | None) -> int:
    """Flush stdout and return the exit code: 2 if output could not be written, unless its reader closed the pipe."""
    error: Exception | None = None
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as failure:  # AttributeError: stdout was replaced by another object
        error = failure
    if results is not None and results.error is not None:
        error = results.error
    if error is None or isinstance(error, BrokenPipeError):
        return code
    _say(f"cannot write the result: {getattr(error, 'strerror', None) or error}")
    return _BAD_INPUT


def _say(message: Any) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"lidp: {message}\n")
        sys.stderr.flush()

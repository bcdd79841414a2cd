"""Wait for events instead of seconds, so that tests pass on a machine that is busy with other work."""

import contextlib
import time
from pathlib import Path

PATIENCE = 600.0
"""Seconds after which a wait is given up. Only tests that hang get there."""
_POLL_SECONDS = 0.02


def wait_until(condition, what):
    """Call a function until it returns something true, and return that; ``what`` says what is waited for."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE:g} s in vain until {what}")
        time.sleep(_POLL_SECONDS)
    return value


def processes_with(text):
    """Return the ids of the processes that have this text on their command line; dead ones have no command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if text.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def wait_until_gone(text):
    """Wait until no process has this text on its command line."""
    wait_until(lambda: not processes_with(text), f"no process has {text!r} on its command line")

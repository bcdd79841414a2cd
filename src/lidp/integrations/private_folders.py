"""Temporary folders for training data: for this user's eyes only, and gone even if the process is killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lidp._runtime.interrupts import defer_signals
from lidp.errors import AuditFailed

ROOM = "make room there, or set TMPDIR to a folder that has some"
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_REMOVE_WHEN_ORPHANED = """
trap '' HUP INT TERM
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1"
    [ -e "$1" ] || exit 0
    sleep 1
done
"""
"""For sh: wait until the other end of stdin is closed, then remove a folder; programs that end with the owner may still write."""


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user can look into, and remove it at the end, with all that is in it.

    If this process is killed, a process that waits for its end removes the folder. Nobody but this process holds the other end of
    the pipe that it waits at, and it is in a session of its own, so that what kills a group of processes leaves it alone.

    Raises:
        AuditFailed: if the folder cannot be made, or its path has characters that mean something to a shell.
    """
    place = tempfile.gettempdir()
    if not _SAFE.fullmatch(place):
        raise AuditFailed(
            f"the folder for temporary files, {place!r}, has characters in its name that a shell would not take as they are; "
            "set TMPDIR to a folder whose path has only letters, digits and _@%+=:,./-"
        )
    with contextlib.ExitStack() as stack:
        with defer_signals():  # one that came in the middle would leave the folder behind
            try:
                folder = tempfile.mkdtemp(prefix="lidp-")  # of mode 0700
                # What a program leaves there and nobody can delete changes nothing about its losses.
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
                stack.enter_context(_remover(folder))
            except Exception as error:
                raise AuditFailed(f"making a temporary folder failed: {type(error).__name__}: {error}; {ROOM}") from error
        yield Path(folder)


@contextlib.contextmanager
def _remover(folder: str) -> Iterator[None]:
    """Run a process that removes a folder when this one is gone."""
    remover = subprocess.Popen(  # noqa: S603  # a fixed script; the path is an argument and not part of it
        ["/bin/sh", "-c", _REMOVE_WHEN_ORPHANED, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # faster than the other
        remover.stdin.close()  # type: ignore[union-attr]  # a pipe, as was asked for
        remover.wait()


def create_private(path: Path, flags: int = os.O_EXCL) -> int:
    """Open a new file for writing that only this user can read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o600)

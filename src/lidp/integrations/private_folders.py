"""Temporary folders for training data, which only this user can read, and which are removed even if the process is killed."""

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

FREE_SPACE_REMEDY = "free some space there, or set TMPDIR to a folder that has enough"
_SHELL_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_REMOVE_WHEN_ORPHANED = """
trap '' HUP INT TERM
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1"
    [ -e "$1" ] || exit 0
    sleep 1
done
"""
"""Script for sh: wait until the other end of stdin is closed, then remove a folder.

It retries, because programs of the ended process may still write to the folder for a moment.
"""


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it with its contents after the block.

    If this process is killed, a watching process removes the folder. The watching process waits on a pipe whose other end only
    this process holds. It runs in a separate session, so that signals to the process group do not reach it.

    Raises:
        AuditFailed: if the folder cannot be created, or its path has characters that are special in a shell.
    """
    parent = tempfile.gettempdir()
    if not _SHELL_SAFE.fullmatch(parent):
        raise AuditFailed(
            f"the path of the folder for temporary files, {parent!r}, has characters that are special in a shell; "
            "set TMPDIR to a folder whose path has only letters, digits and _@%+=:,./-"
        )
    with contextlib.ExitStack() as stack:
        with defer_signals():  # a signal in the middle would leave the folder behind
            try:
                folder = tempfile.mkdtemp(prefix="lidp-")  # of mode 0700
                # Files of a program that cannot be deleted do not affect its losses, so that errors are ignored.
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
                stack.enter_context(_remove_when_killed(folder))
            except Exception as error:
                raise AuditFailed(
                    f"creating a temporary folder failed: {type(error).__name__}: {error}; {FREE_SPACE_REMEDY}"
                ) from error
        yield Path(folder)


@contextlib.contextmanager
def _remove_when_killed(folder: str) -> Iterator[None]:
    """Run a process that removes a folder when this process has ended."""
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
        shutil.rmtree(folder, ignore_errors=True)  # faster than waiting for the other process
        remover.stdin.close()  # type: ignore[union-attr]  # stdin=PIPE
        remover.wait()


def create_private(path: Path, flags: int = os.O_EXCL) -> int:
    """Create a file that only this user can read, and return its descriptor for writing."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o600)

"""The standard streams of the command: always there, and never the cause of a wrong exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Outlet(io.RawIOBase):
    """A file descriptor to write to that never raises: after the first error it drops everything and keeps that error.

    Whoever prints thus does its work to the end when nobody reads any more, and leaves nothing in buffers for Python to fail on
    at exit.
    """

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor

    def write(self, data: ReadableBuffer) -> int:
        """Write some of the data, and return how many bytes are dealt with."""
        if self.error is None:
            try:
                return os.write(self._descriptor, data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether this is a terminal."""
        return os.isatty(self._descriptor)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor


def prepare_streams() -> Outlet | None:
    """Open streams that are missing, let stdout and stderr outlive their readers, and return the outlet of stdout.

    A stream that was closed leads nowhere from now on. Otherwise the next file to be opened, such as a store, would get its
    descriptor, and what a program prints would be written into that file.

    Return None if stdout is not a stream of this kind, such as the console of Windows.
    """
    for descriptor in range(3):
        if not _is_open(descriptor):
            _open_nowhere(descriptor)
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stderr, _ = _outliving(sys.stderr, 2)
    sys.stdout, outlet = _outliving(sys.stdout, 1)
    return outlet


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _open_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere == descriptor:
        os.set_inheritable(descriptor, True)
    else:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _nowhere(mode: str) -> TextIO:
    return open(os.devnull, mode, encoding="utf-8", errors="replace")  # type: ignore[return-value]  # noqa: PTH123


def _outliving(stream: TextIO | None, descriptor: int) -> tuple[TextIO, Outlet | None]:
    """Return a stream to the same place that outlives its reader, with its outlet."""
    if stream is None:
        return _nowhere("w"), None
    if not isinstance(stream, io.TextIOWrapper) or (os.name == "nt" and stream.isatty()):
        return stream, None
    outlet = Outlet(descriptor)
    wrapped = io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors="replace",  # ε on a terminal that cannot show it
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return wrapped, outlet

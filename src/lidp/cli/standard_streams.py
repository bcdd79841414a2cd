"""Prepare the standard streams, so that a closed or failing stream never changes the exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Outlet(io.RawIOBase):
    """A writable file descriptor that never raises: after the first error it drops all output and remembers the error.

    A command thus finishes its work when nobody reads its output any more, and leaves nothing in buffers on which Python would
    fail at exit.
    """

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor

    def write(self, data: ReadableBuffer) -> int:
        """Write some of the data, and return how many bytes were written or dropped."""
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
    """Open streams that are missing, make stdout and stderr safe to write to without a reader, and return the outlet of stdout.

    A closed stream is replaced by the null device. Otherwise the next file to be opened, such as a store, would get its
    descriptor, and printed text would be written into that file.

    Return None if stdout is another kind of stream, such as the console of Windows.
    """
    for descriptor in range(3):
        if not _is_open(descriptor):
            _open_null(descriptor)
    sys.stdin = sys.stdin or _null_stream("r")
    sys.stderr, _ = _safe_stream(sys.stderr, 2)
    sys.stdout, outlet = _safe_stream(sys.stdout, 1)
    return outlet


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _open_null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null == descriptor:
        os.set_inheritable(descriptor, True)
    else:
        os.dup2(null, descriptor)
        os.close(null)


def _null_stream(mode: str) -> TextIO:
    return open(os.devnull, mode, encoding="utf-8", errors="replace")  # type: ignore[return-value]  # noqa: PTH123


def _safe_stream(stream: TextIO | None, descriptor: int) -> tuple[TextIO, Outlet | None]:
    """Return a stream to the same descriptor that is safe to write to without a reader, and its outlet."""
    if stream is None:
        return _null_stream("w"), None
    if not isinstance(stream, io.TextIOWrapper) or (os.name == "nt" and stream.isatty()):
        return stream, None
    outlet = Outlet(descriptor)
    wrapped = io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors="replace",  # a terminal may not be able to show ε
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return wrapped, outlet

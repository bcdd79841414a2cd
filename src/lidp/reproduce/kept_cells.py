"""Finished cells on disk, so that nothing is computed twice."""

from __future__ import annotations

import errno
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import lidp
from lidp.errors import InvalidArgument
from lidp.reproduce.experiment import Cell, Row, Scale, Source

_PATIENCE = 2.0  # seconds that the workers of a killed run may take to be gone


class KeptCells:
    """Finished cells in a file, a line each, in the order in which they were finished."""

    def __init__(self, path: Path, source: Source, scale: Scale) -> None:
        self.path = path
        self.rows: dict[str, list[Row]] = {}
        header = {"experiment": source.name, "scale": str(scale), "lidp": lidp.__version__}
        header["source"] = source_digest([source])
        try:
            self.file = path.open("a+b")
        except OSError as error:
            raise InvalidArgument(f"{path}: cannot be written to: {error.strerror}") from None
        try:
            self._lock()
            self._read(header)
        except BaseException:
            self.file.close()
            raise

    def add(self, cell: Cell, rows: list[Row]) -> None:
        """Keep a finished cell."""
        self.rows[cell.key] = rows
        self._write({"cell": cell.key, "rows": rows})

    def close(self) -> None:
        """Let another run have the folder."""
        self.file.close()

    def _read(self, header: Row) -> None:
        path = self.path
        self.file.seek(0)
        content = self.file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self.file.truncate(len(whole))  # the last line, which a kill cut short
        if not whole:
            self._write(header)
            return
        try:
            first, *lines = [json.loads(line) for line in whole.decode("utf-8").splitlines()]
            self.rows = {line["cell"]: line["rows"] for line in lines}
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument(f"{path} cannot be read; delete it, or choose another folder") from None
        if first != header:
            changed = [name for name in header if not isinstance(first, dict) or first.get(name) != header[name]]
            raise InvalidArgument(
                f"{path} holds cells of another {' and '.join(changed)}; choose another folder, or delete it to begin anew"
            )

    def _write(self, line: Row) -> None:
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()

    def _lock(self) -> None:
        """Two runs must not share a folder. Where files cannot be locked, that is left to the user."""
        try:
            import fcntl
        except ImportError:
            return
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    return
                if time.monotonic() > end:
                    raise InvalidArgument(f"{self.path} is being written to by another run; wait for it") from None
                time.sleep(0.1)
            else:
                return


def source_digest(sources: Sequence[Source]) -> str:
    """A digest of the code that cells are computed with."""
    root = Path(lidp.__file__).parent
    patterns = dict.fromkeys(pattern for source in sources for pattern in source.code)
    files = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]

"""``ScoreLog``: the rows of scores that an audit has bet on, in memory while they are few and in a temporary file afterwards."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lidp.scores import Scores

MOST_BYTES = 16 * 2**20
"""Scores that are kept in memory, in bytes."""
_MOST_BLOCKS = 256


class ScoreLog:
    """Scores in the order of their rows. Its memory is bounded, as long as a file for temporary data can be written."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.rows = 0
        self._most_bytes = most_bytes
        self._blocks: list[Scores] = []  # the last ones, after those in the file
        self._bytes = 0
        self._file: _ScoreFile | None = None

    def append(self, scores: Scores) -> None:
        """Add further rows."""
        self._blocks.append(scores)
        self.rows += scores.trials
        self._bytes += sum(array.nbytes for array in scores.stored_arrays())
        if len(self._blocks) > _MOST_BLOCKS:
            self._blocks = [Scores.join(self._blocks)]
        if self._bytes > self._most_bytes:
            self._move_to_file()

    def all(self) -> Scores:
        """Return all rows. There must be some."""
        self._blocks = [Scores.join(self._blocks)] if self._blocks else []
        if self._file is None:
            return self._blocks[0]
        if self._blocks:
            self._move_to_file()
        stored = self._file.scores()
        return Scores.join([stored, *self._blocks])  # the blocks could not be written if there are some

    def last(self, rows: int) -> Scores | None:
        """Return the last rows, fewer if there are not as many; None if there are none."""
        if not self.rows:
            return None
        if sum(block.trials for block in self._blocks) < min(rows, self.rows):
            return self.all()[-rows:]
        blocks: list[Scores] = []
        for block in reversed(self._blocks):
            if sum(one.trials for one in blocks) >= rows:
                break
            blocks.insert(0, block)
        return Scores.join(blocks)[-rows:]

    def _move_to_file(self) -> None:
        """Move the blocks to the file; keep them in memory if they cannot be written."""
        scores = Scores.join(self._blocks)
        self._blocks = [scores]
        with suppress(OSError):
            if self._file is None:
                self._file = _ScoreFile(scores)
            self._file.append(scores)
            self._blocks, self._bytes = [], 0
            return
        self._most_bytes = 2 * self._bytes  # try again when there are twice as many


class _ScoreFile:
    """Scores in temporary files without names, one per array, which end with this process."""

    def __init__(self, like: Scores) -> None:
        self._like = like[:1]
        self._files: list[IO[Any]] = [tempfile.TemporaryFile() for _ in like.stored_arrays()]  # noqa: SIM115  # kept open
        weakref.finalize(self, _close, self._files)  # arrays that were returned stay readable
        self._rows = 0

    def append(self, scores: Scores) -> None:
        """Write rows.

        Raises:
            OSError: if they cannot be written; the rows before are unharmed.
        """
        for file, array in zip(self._files, scores.stored_arrays(), strict=True):
            file.seek(self._rows * array[0].nbytes)
            file.write(np.ascontiguousarray(array).data)
            file.flush()
        self._rows += scores.trials

    def scores(self) -> Scores:
        """Return all rows, as arrays that the system reads from the files where they are looked at."""
        arrays = (self._map(file, array) for file, array in zip(self._files, self._like.stored_arrays(), strict=True))
        return self._like.with_stored_arrays(*arrays)

    def _map(self, file: IO[Any], like: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.memmap(file, dtype=like.dtype, mode="r", shape=(self._rows, *like.shape[1:])))


def _close(files: Iterable[IO[Any]]) -> None:
    for file in files:
        file.close()

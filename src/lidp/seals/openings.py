"""The ledger of looks: which scores a seal has been opened with, kept in every folder involved.

One *look* is one set of scores. Opening the same scores again is no further look, and neither are scores of further runs that
follow the same scores of the runs before: an anytime-valid method may look after every run. Different scores for one run are.

With several looks, each is taken at β/looks from the first one on. That alone would not make the looks valid: somebody who has
seen the bound of the first look can choose the scores of the second by it. So as long as looks are left, an opening tells nothing
but its verdict. All verdicts before the last look were then "not refuted", whatever the coins, and the scores of each look are as
good as chosen beforehand.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lidp.errors import SealError
from lidp.seals.files import force_folder, parse_json, read_bytes
from lidp.seals.plan import parsed
from lidp.seals.sealed_run import OPENINGS

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows has no flock
    fcntl = None  # type: ignore[assignment]

_MAX_BYTES = 2**26
_LINE_START = b'{"number": '
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class Opening:
    """One opening: the hashes of the scores of runs 1 to n, and what it found. ``revealed`` says whether it told the bound."""

    runs: tuple[str, ...]
    evidence: str
    verdict: str
    revealed: bool
    time: str

    def to_line(self, number: int) -> str:
        """Return the line of the ledger."""
        plain = {
            "number": number,
            "time": self.time,
            "evidence": self.evidence,
            "runs": list(self.runs),
            "verdict": self.verdict,
            "revealed": self.revealed,
        }
        return json.dumps(plain) + "\n"

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Opening:
        """Return the opening that a line of the ledger describes."""
        runs = tuple(plain["runs"])
        texts = (*runs, plain["evidence"], plain["verdict"], plain["time"])
        if not runs or not all(isinstance(text, str) for text in texts) or not isinstance(plain["revealed"], bool):
            raise SealError("an opening needs runs, evidence, verdict, time and revealed")
        return cls(runs, plain["evidence"], plain["verdict"], plain["revealed"], plain["time"])


@dataclass(frozen=True)
class Look:
    """The number of a look, and whether looks for other scores are left after it."""

    number: int
    left: int


def look_of(runs: tuple[str, ...], openings: Sequence[Opening], looks: int) -> Look:
    """Return which look it is to open these scores after these openings.

    Raises:
        SealError: if no look is left for them.
    """
    sequences = _longest([opening.runs for opening in openings])
    extended = _longest([*sequences, runs])
    finished = any(opening.revealed for opening in openings)
    if len(extended) > len(sequences) and sequences and (finished or len(extended) > looks):
        when = openings[-1].time
        reason = "and its result was told" if finished else f"and all {looks} looks that were reserved at sealing are spent"
        raise SealError(
            f"this seal was opened with other scores before (last on {when}), {reason}; choosing between scores after a look "
            f"would not be valid. Open it with the same scores; next time, reserve looks at sealing: --looks {looks + 1}"
        )
    number = next(index for index, one in enumerate(extended, start=1) if one[: len(runs)] == runs)
    return Look(number, 0 if finished else looks - len(extended))


def _longest(sequences: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the sequences that no other one continues, each once, in the order in which their beginnings came."""
    kept: list[tuple[str, ...]] = []
    for sequence in sequences:
        if any(one[: len(sequence)] == sequence for one in kept):
            continue
        continued = [at for at, one in enumerate(kept) if sequence[: len(one)] == one]
        if continued:
            kept[continued[0]] = sequence
        else:
            kept.append(sequence)
    return kept


class Ledger:
    """The openings in the folders of runs 1 to n, locked against other openings as long as it is in use."""

    def __init__(self, descriptors: Sequence[tuple[Path, int]]) -> None:
        self._files = descriptors
        self.openings = _merged([_read(path) for path, _ in descriptors])

    def record(self, opening: Opening) -> str:
        """Write an opening to every folder, and force it to disk; nothing if it is recorded already. Return when it was first."""
        for path, descriptor in self._files:
            present = _read(path)
            if any((one.runs, one.revealed) == (opening.runs, opening.revealed) for one in present):
                continue
            _append(path, descriptor, opening.to_line(len(present) + 1).encode())
        return next((one.time for one in self.openings if one.runs == opening.runs), opening.time)


@contextlib.contextmanager
def ledger_of(folders: Sequence[Path]) -> Iterator[Ledger]:
    """Lock and read the ledgers in some folders.

    Raises:
        SealError: if one cannot be read or written, or another process is opening the seal.
    """
    with contextlib.ExitStack() as stack:
        files = []
        for folder in folders:
            path = folder / OPENINGS
            try:
                descriptor = os.open(path, _FLAGS, 0o600)
            except OSError as error:
                raise SealError(f"{path}: openings must be recorded here: {error.strerror}") from None
            stack.callback(os.close, descriptor)
            _lock(path, descriptor)
            _mend(path, descriptor)
            files.append((path, descriptor))
        yield Ledger(files)


def _lock(path: Path, descriptor: int) -> None:
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SealError(f"{path}: another process is opening this seal; wait for it") from None


def _append(path: Path, descriptor: int, line: bytes) -> None:
    """Add a line and force it to disk, together with the name of the file, or leave the file as it was."""
    size = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(line):  # a full disk takes a part
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
        force_folder(path.parent)
    except OSError as error:
        os.ftruncate(descriptor, size)
        raise SealError(f"{path}: the opening cannot be recorded, so nothing was opened: {error.strerror}") from None


def _mend(path: Path, descriptor: int) -> None:
    """End the last line, or remove the beginning of one that a crash left: that opening was not recorded, so nothing was told."""
    content = read_bytes(path, _MAX_BYTES)
    whole = content.rfind(b"\n") + 1
    rest = content[whole:]
    if rest.endswith(b"}"):
        _append(path, descriptor, b"\n")
    elif rest and rest[: len(_LINE_START)] == _LINE_START[: len(rest)]:
        os.ftruncate(descriptor, whole)


def _read(path: Path) -> list[Opening]:
    lines = read_bytes(path, _MAX_BYTES).splitlines()
    return [_parse(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _parse(line: bytes, where: str) -> Opening:
    plain = parse_json(line, where)
    return parsed(where, lambda: Opening.from_dict(plain))


def _merged(ledgers: Sequence[Sequence[Opening]]) -> tuple[Opening, ...]:
    """Return the openings of all folders, each once, by time."""
    return tuple(sorted(dict.fromkeys(opening for ledger in ledgers for opening in ledger), key=lambda one: one.time))

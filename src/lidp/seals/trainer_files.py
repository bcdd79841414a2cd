"""The files of a seal that a trainer or scorer reads and writes: planting, candidates, new tokens and scores.

Reading runs no code from a file, and every error is one line that names the file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.arrays import Bools, Floats
from lidp.canaries.gradients import GradientCanary
from lidp.errors import InvalidArgument, InvalidData
from lidp.seals.files import write_json
from lidp.seals.plan import FORMAT

_MAX_BYTES = 2**32
_SEED_LIMIT = 2**62


@dataclass(frozen=True)
class PlantingFile:
    """The content of ``planting.json``: all candidates in order, the inserted ones, and the public seed of their gradients."""

    seed: int
    canary: GradientCanary
    candidates: tuple[str, ...]
    inserted: tuple[str, ...]

    @classmethod
    def read(cls, path: str | Path) -> PlantingFile:
        """Return the content of a file.

        Raises:
            InvalidData: if it is not a planting file.
        """
        text = _read_text(Path(path))
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidData(f"{path}: not JSON; expected the planting.json of lidp seal") from None
        try:
            return cls._of(plain)
        except InvalidArgument as error:
            raise InvalidData(f"{path}: {printable(str(error))}") from None

    @classmethod
    def _of(cls, plain: Any) -> PlantingFile:
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            found = plain.get("format") if isinstance(plain, dict) else None
            raise InvalidArgument(f"expected a planting file of format {FORMAT}, got format {found!r}")
        seed = plain.get("seed")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < _SEED_LIMIT:
            raise InvalidArgument(f"seed must be a whole number from 0 to 2^62 - 1, got {str(seed)[:40]}")
        candidates, inserted = (_ids(name, plain.get(name)) for name in ("candidates", "inserted"))
        if not candidates:
            raise InvalidArgument("there are no candidates; seal again with at least one canary")
        unknown = set(inserted) - set(candidates)
        if unknown:
            raise InvalidArgument(f"{len(unknown):,} inserted ids are no candidates, such as {min(unknown)!r}")
        return cls(seed, checks.member(GradientCanary, canary=plain.get("canary")), candidates, inserted)

    def write(self, path: Path) -> None:
        """Write a new file from which :meth:`read` makes an equal value."""
        plain = {
            "format": FORMAT,
            "seed": self.seed,
            "canary": str(self.canary),
            "candidates": list(self.candidates),
            "inserted": list(self.inserted),
        }
        write_json(path, plain, indent=None)

    @property
    def is_inserted(self) -> Bools:
        """Whether each candidate is inserted."""
        inserted = set(self.inserted)
        return np.array([identifier in inserted for identifier in self.candidates])


def _ids(name: str, values: Any) -> tuple[str, ...]:
    """Return the ids of a list, which must be different strings."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidArgument(f"{name} must be a list of ids, got {str(values)[:40]}")
    if len(set(values)) < len(values):
        raise InvalidArgument(f"{name} has an id twice")
    return tuple(values)


def read_candidates(path: str | Path, text_field: str = "text") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids and texts of the candidates of a seal.

    Raises:
        InvalidData: if the file is not a list of candidates with texts.
    """
    path = Path(path)
    ids, texts = [], []
    for number, line in enumerate(read_lines(path), start=1):
        identifier, text = _candidate(f"{path}, line {number}", line, text_field)
        ids.append(identifier)
        texts.append(text)
    if not ids:
        raise InvalidData(f"{path}: there are no candidates in it")
    if len(set(ids)) < len(ids):
        raise InvalidData(f"{path}: an id occurs twice; give the candidates.jsonl of one seal")
    return tuple(ids), tuple(texts)


def _candidate(where: str, line: str, text_field: str) -> tuple[str, str]:
    """Return the id and the text of one line."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidData(f"{where}: not JSON; expected a candidate of lidp seal") from None
    identifier = plain.get("id") if isinstance(plain, dict) else None
    if not isinstance(identifier, str):
        raise InvalidData(f"{where}: a candidate needs an id; expected the candidates.jsonl of lidp seal")
    record = plain.get("record")
    text = record.get(text_field) if isinstance(record, dict) else plain.get("text")
    if not isinstance(text, str):
        raise InvalidData(
            f"{where}: candidate {printable(identifier)} has no text; give the column that holds it as text_field="
        )
    return identifier, text


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty.

    Raises:
        InvalidData: if it cannot be read.
    """
    return [line for line in _read_text(path).split("\n") if line.strip()]


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidData(f"{path}: more than {_MAX_BYTES // 2**30} GB; expected a file of lidp seal")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidData(f"{path}: cannot be read: {error.strerror}; give the file of lidp seal") from None
    except UnicodeDecodeError:
        raise InvalidData(f"{path}: not text in UTF-8; give the file of lidp seal") from None


def write_scores(path: str | Path, candidates: Iterable[str], scores: Floats) -> None:
    """Write scores as CSV with the columns id and score. Reading them back gives the same numbers.

    Raises:
        InvalidData: if the file cannot be written.
    """
    rows = [(identifier, repr(float(score))) for identifier, score in zip(candidates, scores, strict=True)]
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "score"), *rows])
    except OSError as error:
        raise InvalidData(f"{path}: cannot be written: {error.strerror}") from None

"""Read the scores of candidates from a file and join them by id. Reading runs no code from the file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.npz_files import load_arrays
from lidp.arrays import Floats
from lidp.errors import InvalidScores
from lidp.seals.files import opened, parse_json

_ID_LENGTH = 16


def read_score_list(path: Path, ids: NDArray[np.bytes_]) -> Floats:
    """Return the scores of the candidates in the order of ``ids``, whatever the order of the rows.

    The file is ``.csv`` with the columns id and score, ``.jsonl`` with objects of id and score, or ``.npz`` with arrays id and
    score. A higher score means that the candidate looks more inserted.

    Raises:
        InvalidScores: if a candidate is missing, occurs twice or is unknown, or a score is not a finite number. The message
            names the first one, and how many there are.
    """
    kinds = {".csv": _read_csv, ".jsonl": _read_jsonl, ".npz": _read_npz}
    read = kinds.get(path.suffix.lower())
    if read is None:
        raise InvalidScores(f"{path}: expected scores as .csv, .jsonl or .npz, got {path.suffix or 'no suffix'!r}")
    given, scores = read(path)
    if not len(given):
        raise InvalidScores(f"{path}: there are no scores in it")
    return _join(path, given, scores, ids)


def _join(path: Path, given: NDArray[np.bytes_], scores: Floats, ids: NDArray[np.bytes_]) -> Floats:
    order = np.argsort(ids)
    at = np.searchsorted(ids[order], given)
    rows = order[np.minimum(at, len(ids) - 1)]
    unknown = np.flatnonzero(ids[rows] != given)
    if len(unknown):
        raise InvalidScores(
            f"{path}: {_first(given, unknown)} is no candidate of this seal{_of(len(unknown), 'unknown ids')}; "
            "take the ids of its own list of candidates"
        )
    counts = np.bincount(rows, minlength=len(ids))
    twice = np.flatnonzero(counts > 1)
    if len(twice):
        raise InvalidScores(
            f"{path}: the candidate {_first(ids, twice)} has several scores{_of(len(twice), 'such candidates')}; "
            "give each one score"
        )
    missing = np.flatnonzero(counts == 0)
    if len(missing):
        raise InvalidScores(
            f"{path}: the candidate {_first(ids, missing)} has no score{_of(len(missing), 'missing candidates')}; "
            "score all candidates, inserted or not"
        )
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise InvalidScores(
            f"{path}: the score of {_first(given, wrong)} is {scores[wrong[0]]}{_of(len(wrong), 'such scores')}; scores must be "
            "finite, give a candidate that cannot be scored a constant"
        )
    joined = np.empty(len(ids))
    joined[rows] = scores
    return joined + 0.0  # one zero instead of two


def _first(ids: NDArray[np.bytes_], at: NDArray[np.int64]) -> str:
    return repr(ids[at[0]].decode("utf-8", "replace"))


def _of(count: int, what: str) -> str:
    return f" (the first of {count:,} {what})" if count > 1 else ""


def _packed(path: Path, names: list[str], scores: list[float]) -> tuple[NDArray[np.bytes_], Floats]:
    """Return ids as an array of bytes; ids of another length stay as they are, to be named in a message."""
    encoded = [name.encode("utf-8", "replace")[: 2 * _ID_LENGTH] for name in names]
    if any(b"\0" in name for name in encoded):
        raise InvalidScores(f"{path}: an id has a null character")
    return np.array(encoded, dtype=np.bytes_), np.array(scores, dtype=np.float64)


def _read_csv(path: Path) -> tuple[NDArray[np.bytes_], Floats]:
    names: list[str] = []
    scores: list[float] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            lines = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(lines, [])]
            if sorted(header).count("id") != 1 or header.count("score") != 1:
                raise InvalidScores(
                    f"{path}: expected the columns id and score; found {', '.join(header)[:200] or 'nothing'}"
                )
            id_at, score_at, width = header.index("id"), header.index("score"), len(header)
            for line in lines:
                if not line:
                    continue
                if len(line) != width:
                    raise InvalidScores(f"{path}, line {lines.line_num:,}: {len(line)} cells, and the header has {width}")
                names.append(line[id_at].strip())
                scores.append(_number(path, lines.line_num, line[score_at]))
    except OSError as error:
        raise InvalidScores(f"{path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, InvalidScores):
            raise
        raise InvalidScores(f"{path}: not a readable .csv file ({error})") from None
    return _packed(path, names, scores)


def _number(path: Path, line: int, value: Any) -> float:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise InvalidScores(f"{path}, line {line:,}: score must be a number, got {value!r:.60}")


def _read_jsonl(path: Path) -> tuple[NDArray[np.bytes_], Floats]:
    names: list[str] = []
    scores: list[float] = []
    for number, plain in _objects(path):
        name = plain.get("id")
        if not isinstance(name, str):
            raise InvalidScores(f"{path}, line {number:,}: expected an object with id and score, and there is no id")
        names.append(name)
        value = plain.get("score")
        scores.append(_number(path, number, None if isinstance(value, str) else value))
    return _packed(path, names, scores)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    plain = _object(path, number, line)
                    if not isinstance(plain, dict):
                        raise InvalidScores(f"{path}, line {number:,}: expected an object with id and score")
                    yield number, plain
    except OSError as error:
        raise InvalidScores(f"{path}: {error.strerror}") from None


def _object(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))  # NaN and infinities are found, and named, after the joining
    except (ValueError, RecursionError):
        return parse_json(line, f"{path}, line {number:,}")


def _read_npz(path: Path) -> tuple[NDArray[np.bytes_], Floats]:
    try:
        with opened(path.resolve()) as stream:
            present, arrays = load_arrays(stream, ["id", "score"])
    except OSError as error:
        raise InvalidScores(f"{path}: {error.strerror}") from None
    except Exception as error:  # noqa: BLE001  # a damaged file makes the reader fail in many ways
        raise InvalidScores(f"{path}: not a readable .npz file of plain arrays ({error})") from None
    if set(arrays) != {"id", "score"}:
        raise InvalidScores(
            f"{path}: expected the arrays id and score; found {', '.join(sorted(present))[:200] or 'nothing'}"
        )
    ids, scores = arrays["id"], arrays["score"]
    if ids.dtype.kind not in "US" or scores.dtype.kind not in "iuf" or ids.ndim != 1 or ids.shape != scores.shape:
        raise InvalidScores(f"{path}: id must hold texts and score numbers, one of each per candidate")
    try:
        return ids.astype(np.bytes_), scores.astype(np.float64)
    except UnicodeEncodeError:
        raise InvalidScores(f"{path}: an id has other characters than those of the ids of candidates") from None

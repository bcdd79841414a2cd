"""Read and write scores as ``.npz`` arrays or ``.csv`` tables. Reading runs no code from the file."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from lidp._runtime.file_kinds import describe_file, is_zip_file
from lidp._runtime.npz_files import load_arrays
from lidp.claim import Neighbours
from lidp.errors import InvalidScores
from lidp.scores import Scores

_LAYOUTS = ({"inserted", "held_out"}, {"scores", "coins"})
_MARKS = ("sequential", "stopped_early")
_ARMS = {"inserted": "inserted", "held_out": "held_out", "held-out": "held_out"}


def read_scores(path: str | Path, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Scores:
    """Return scores from a ``.npz`` file (``inserted`` and ``held_out``, or ``scores`` and ``coins``) or a ``.csv`` table.

    The table has the columns ``trial``, ``score`` and either ``arm`` (inserted or held_out) or ``coin`` (0 or 1), a row
    per canary. Trials are taken in the order of their numbers, canaries in the order of their rows.
    """
    path = Path(path)
    if not os.path.isfile(path):  # noqa: PTH113  # unlike Path.is_file, it returns False for impossible names
        raise InvalidScores(f"{path}: there is no such file")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path, neighbours)
    if suffix == ".csv":
        return _read_csv(path, neighbours)
    raise InvalidScores(f"{path}: expected a .npz or .csv file, got {suffix or 'no suffix'!r}")


def write_scores(scores: Scores, path: str | Path) -> None:
    """Write scores as ``.npz``, for :func:`read_scores`."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise InvalidScores(f"{path}: scores are written as .npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = scores.to_arrays() | {name: np.array(True) for name in _MARKS if getattr(scores, name)}
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]  # numpy types its keywords as bool
    except OSError as error:
        raise InvalidScores(f"{path}: cannot be written: {error.strerror}") from None


def _read_npz(path: Path, neighbours: Neighbours | str) -> Scores:
    try:
        with path.open("rb") as stream:
            if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise InvalidScores(f"{path}: a single array, not an .npz file of several")
            present, known = load_arrays(stream, [*sorted(_LAYOUTS[0] | _LAYOUTS[1]), "failed", *_MARKS])
        fitting = [layout for layout in _LAYOUTS if layout <= set(known)]
        if len(fitting) > 1:
            raise InvalidScores(f"{path}: has both inserted and held_out, and scores and coins; keep one of the two")
        if not fitting:
            names = ", ".join(sorted(present)) or "nothing"
            raise InvalidScores(f"{path}: expected the arrays inserted and held_out, or scores and coins; found {names}")
        arrays: dict[str, object] = {name: known[name] for name in fitting[0] | ({"failed"} & set(known))}
        arrays |= {name: bool(known[name]) for name in _MARKS if name in known}
    except InvalidScores:
        raise
    except zipfile.BadZipFile as error:
        if is_zip_file(path):
            raise InvalidScores(f"{path}: a damaged .npz file ({error})") from None
        raise InvalidScores(f"{path} is not an .npz file, but {describe_file(path)}; write it with np.savez") from None
    except Exception as error:  # noqa: BLE001  # a damaged file makes the reader fail in many ways
        raise InvalidScores(f"{path}: not a readable .npz file of plain numbers ({error})") from None
    return _named(path, arrays, neighbours)


def _read_csv(path: Path, neighbours: Neighbours | str) -> Scores:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            columns = {name.strip() for name in rows.fieldnames or ()}
            kind = next((name for name in ("arm", "coin") if name in columns), None)
            if {"arm", "coin"} <= columns:
                raise InvalidScores(f"{path}: has both a column arm and a column coin; keep one of the two")
            if kind is None or not {"trial", "score"} <= columns:
                names = ", ".join(sorted(columns)) or "nothing"
                raise InvalidScores(f"{path}: expected the columns trial, arm or coin, score; found {names}")
            stripped = ({(key or "").strip(): value for key, value in row.items()} for row in rows)
            groups = _group(path, kind, stripped)
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise InvalidScores(f"{path}: not a readable .csv file ({error})") from None
    if kind == "arm":
        return _named(path, {arm: _rectangle(path, groups, arm) for arm in ("inserted", "held_out")}, neighbours)
    return _named(path, {name: _rectangle(path, groups, name) for name in ("scores", "coins")}, neighbours)


Groups = dict[int, dict[str, list[float]]]


def _group(path: Path, kind: str, rows: Iterable[dict[str, str]]) -> Groups:
    groups: Groups = {}
    for line, row in enumerate(rows, start=2):
        if row.get(""):
            raise InvalidScores(f"{path}, line {line}: more cells than columns (a decimal comma?)")
        try:
            trial = int(row.get("trial") or "")
        except ValueError:
            raise InvalidScores(f"{path}, line {line}: trial must be a whole number, got {row.get('trial')!r}") from None
        group = groups.setdefault(trial, {"inserted": [], "held_out": [], "scores": [], "coins": []})
        score = _number(path, line, "score", row.get("score"))
        if kind == "arm":
            arm = _ARMS.get((row.get("arm") or "").strip().lower())
            if arm is None:
                raise InvalidScores(f"{path}, line {line}: arm must be inserted or held_out, got {row.get('arm')!r}")
            group[arm].append(score)
        else:
            group["scores"].append(score)
            group["coins"].append(_number(path, line, "coin", row.get("coin")))
    if not groups:
        raise InvalidScores(f"{path}: there is no trial in it, only a header")
    return groups


def _number(path: Path, line: int, column: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise InvalidScores(f"{path}, line {line}: {column} must be a number, got {text!r}") from None


def _rectangle(path: Path, groups: Groups, name: str) -> list[list[float]]:
    rows = [groups[trial][name] for trial in sorted(groups)]
    for trial, row in zip(sorted(groups), rows, strict=True):
        if len(row) != len(rows[0]):
            raise InvalidScores(
                f"{path}: trial {trial} has {len(row)} {name.replace('_', '-')} canaries, the first trial has "
                f"{len(rows[0])}; every trial needs the same number"
            )
    return rows


def _named(path: Path, arrays: Mapping[str, object], neighbours: Neighbours | str) -> Scores:
    try:
        return Scores(neighbours=neighbours, **arrays)  # type: ignore[arg-type]  # validated by Scores
    except InvalidScores as error:
        raise InvalidScores(f"{path}: {error}") from None

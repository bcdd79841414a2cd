"""Read a sealed folder and check it against its commitment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.npz_files import load_arrays
from lidp.arrays import Bools
from lidp.errors import SealError
from lidp.seals.files import hash_of, opened, read_bytes, read_json, sha256
from lidp.seals.plan import Commitment, check_format, parsed

COMMITMENT = "commitment.json"
COINS = "coins.json"
PLANTING = "planting.json"
NEW_TOKENS = "new_tokens.txt"
OPENINGS = "openings.jsonl"
RECEIPT = "receipt.json"
_ID_START = len(b'{"id": "')
_ID_LENGTH = 16
_MAX_COMMITMENT = 2**24
_MAX_CANDIDATES = 2**36
_COIN_BYTES = 64  # a line with an id and a coin has at most 32
_MAX_HEAD = 2**16


@dataclass(frozen=True, eq=False)
class SealedRun:
    """One sealed run, checked against its commitment: ids and coins in the order of candidates."""

    folder: Path
    commitment: Commitment
    ids: NDArray[np.bytes_]
    coins: Bools
    salt: bytes
    seed: int


def read_commitment(folder: Path) -> Commitment:
    """Return the commitment of a sealed folder."""
    if not folder.is_dir():
        raise SealError(f"{folder}: there is no such folder; name the one that lidp seal wrote")
    if not (folder / COMMITMENT).exists():
        raise SealError(f"{folder} is not a sealed folder: {COMMITMENT} is missing")
    return Commitment.from_dict(read_json(folder / COMMITMENT, _MAX_COMMITMENT), folder / COMMITMENT)


def read_sealed_run(folder: Path) -> SealedRun:
    """Return a sealed run.

    Raises:
        SealError: if a file is missing or is not the one that was committed to; the message names it.
    """
    commitment = read_commitment(folder)
    ids = read_ids(folder, commitment)
    for name, expected in commitment.files.items():
        file = folder / name
        if name == commitment.candidates_name or not (file.exists() or file.is_symlink()):
            continue  # the data set may be elsewhere by now
        if hash_of(file) != expected:
            raise SealError(f"{file} was changed after sealing: its hash is not the committed one; restore the original")
    salt, coins, seed = _read_coins(folder, ids)
    if hash_coins(salt, coins) != commitment.coins:
        raise SealError(
            f"{folder / COINS} was changed after sealing: its coins are not the committed ones; restore the original"
        )
    return SealedRun(folder, commitment, ids, coins, salt, seed)


def read_sequence(folders: Sequence[Path]) -> list[SealedRun]:
    """Return sealed runs 1 to n of one plan, given in this order.

    Raises:
        SealError: if they belong to different plans, or a run is missing, repeated or in another place.
    """
    if not folders:
        raise SealError("name the sealed folder to open")
    runs = [read_sealed_run(folder) for folder in folders]
    check_chain([run.commitment for run in runs], [str(folder) for folder in folders])
    return runs


def check_chain(commitments: Sequence[Commitment], names: Sequence[str]) -> None:
    """Raise ``SealError`` unless the commitments are those of runs 1 to n of one plan."""
    first = commitments[0]
    for number, (commitment, name) in enumerate(zip(commitments, names, strict=True), start=1):
        if commitment.plan != first.plan:
            raise SealError(
                f"{name} is of plan {commitment.plan.id}, {names[0]} of plan {first.plan.id}; open seals of one plan together"
            )
        if commitment.run != number:
            raise SealError(
                f"{name} is run {commitment.run} of its plan, where run {number} is expected; "
                "name the folders of all runs from 1 on, in order"
            )
        before = commitments[number - 2].digest if number > 1 else None
        if commitment.previous != before:
            raise SealError(f"{name} was sealed after another run {number - 1} than {names[max(number - 2, 0)]}")


def hash_coins(salt: bytes, coins: Bools) -> str:
    """Return the salted hash of coins in the order of candidates, one byte per coin."""
    return sha256(salt, coins.astype(np.uint8).tobytes())


def read_ids(folder: Path, commitment: Commitment) -> NDArray[np.bytes_]:
    """Return the ids of the candidates in their order, after checking the hash of the list."""
    file = folder / commitment.candidates_name
    if hash_of(file) != commitment.files[file.name]:
        raise SealError(f"{file} was changed after sealing: its hash is not the committed one; restore the original")
    ids = _ids_of_arrays(file) if file.suffix == ".npz" else ids_of_lines(read_bytes(file, _MAX_CANDIDATES), file)
    if len(ids) != commitment.plan.canaries or len(np.unique(ids)) != len(ids):
        raise SealError(f"{file} must list {commitment.plan.canaries:,} different candidates, and has {len(ids):,} lines")
    return ids


def _ids_of_arrays(file: Path) -> NDArray[np.bytes_]:
    with opened(file) as stream:
        ids = parsed(file, lambda: _load_ids(stream))
    if ids.dtype.kind != "U" or ids.ndim != 1 or ids.dtype.itemsize != 4 * _ID_LENGTH:
        raise SealError(f"{file}: its array id does not hold the ids of candidates")
    return parsed(file, lambda: _checked(ids.astype(f"S{_ID_LENGTH}"), file))


def _load_ids(stream: IO[bytes]) -> NDArray[Any]:
    import zipfile

    try:
        return load_arrays(stream, ["id"])[1]["id"]
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise ValueError(str(error)) from None


def ids_of_lines(content: bytes, file: object) -> NDArray[np.bytes_]:
    """Return the id at the start of each line. Lines are not parsed, because there may be millions."""
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.zeros(0, dtype=np.int64)
    if not len(ends) or ends[-1] != len(content) - 1 or (ends - starts).min() < _ID_START + _ID_LENGTH:
        raise SealError(f"{file}: not a list of candidates that lidp wrote")
    at = starts[:, None] + np.arange(_ID_START, _ID_START + _ID_LENGTH)
    characters = np.frombuffer(content, dtype=np.uint8)[at]
    return _checked(np.ascontiguousarray(characters).view(f"S{_ID_LENGTH}")[:, 0], file)


def _checked(ids: NDArray[np.bytes_], file: object) -> NDArray[np.bytes_]:
    characters = np.frombuffer(ids.tobytes(), dtype=np.uint8)
    if not np.isin(characters, np.frombuffer(b"0123456789abcdef", dtype=np.uint8)).all():
        raise SealError(f"{file}: an id is not of 16 hexadecimal digits")
    return ids


def _read_coins(folder: Path, ids: NDArray[np.bytes_]) -> tuple[bytes, Bools, int]:
    file = folder / COINS
    if not (file.exists() or file.is_symlink()):
        raise SealError(
            f"{file} is missing. Nobody can open this seal without its coins, now or ever; restore the file, or seal and train anew"
        )
    plain = read_json(file, _COIN_BYTES * len(ids) + _MAX_HEAD)
    check_format(plain, file)
    return parsed(file, lambda: _parse_coins(plain, ids, file))


def _parse_coins(plain: dict[str, Any], ids: NDArray[np.bytes_], file: Path) -> tuple[bytes, Bools, int]:
    by_id, seed = plain["coins"], plain["seed"]
    salt = bytes.fromhex(plain["salt"])
    if not isinstance(seed, int) or not isinstance(by_id, dict) or len(by_id) != len(ids):
        raise SealError(f"{file}: it needs one coin for each of the {len(ids):,} candidates")
    coins = [by_id[name] for name in ids.astype(str).tolist()]
    if not set(map(repr, set(coins))) <= {"0", "1"}:
        raise SealError(f"{file}: coins must be 0 or 1")
    return salt, np.array(coins, dtype=np.bool_), seed

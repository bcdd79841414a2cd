"""Read arrays from ``.npz`` files, with a limit on their unpacked size, and write them. Reading runs no code from the file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAX_BYTES = 2**28
"""Largest unpacked size of the arrays of a small file, in bytes, at 8 bytes per number or more."""
_MAX_RATIO = 128  # a fair coin takes 1 bit compressed, and 16 bytes unpacked together with its score
_MIN_ITEM_BYTES = 8  # smaller numbers are converted to float64 or int64 later


def load_arrays(
    stream: IO[bytes], names: Iterable[str], *, max_bytes: int | None = None
) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return the names of all arrays in an ``.npz`` file, and the arrays among ``names`` that it has.

    A crafted file of a few kilobytes may unpack to more than the memory of the machine. Sizes are therefore checked before any data
    is unpacked: together, the arrays may take ``max_bytes`` (default: ``MAX_BYTES``) or 128 times the size of the file, whichever
    is more. A number counts as at least 8 bytes, its size after conversion.

    Raises:
        ValueError: if the arrays are larger, or the size of an array contradicts its header. ``zipfile`` and ``numpy`` raise other
            exceptions for damaged files.
    """
    size = stream.seek(0, 2)
    stream.seek(0)
    limit = max(MAX_BYTES if max_bytes is None else max_bytes, _MAX_RATIO * size)
    with zipfile.ZipFile(stream) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        chosen = [name for name in names if name in members]
        _check_total(sum(members[name].file_size for name in chosen), limit, size, chosen)  # headers are unpacked next
        _check_total(sum(_unpacked_bytes(archive, members[name], name) for name in chosen), limit, size, chosen)
        return list(members), {name: _read(archive, members[name]) for name in chosen}


def _check_total(total: int, limit: int, size: int, chosen: list[str]) -> None:
    if total > limit:
        raise ValueError(
            f"its arrays {', '.join(chosen)} would take {total:,} bytes, and the file has {size:,}; if this is intended, write "
            "it with np.savez, which does not compress"
        )


def _unpacked_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> int:
    """Check the header of an array, and return the number of bytes that it takes after conversion."""
    with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise ValueError(f"its {name} is not an array")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        numbers = int(np.prod(shape, dtype=object))
        stated = stream.tell() + dtype.itemsize * numbers
        if dtype.hasobject:
            raise ValueError(f"its array {member.filename} holds Python objects, which cannot be read without running code")
        if stated != member.file_size:
            raise ValueError(f"its array {member.filename} has {member.file_size:,} bytes, but its header says {stated:,}")
    return max(_MIN_ITEM_BYTES, dtype.itemsize) * numbers


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def save_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as ``np.savez`` does, whatever their names: it takes ``file`` and ``allow_pickle`` for options of its own."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

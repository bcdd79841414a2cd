"""Arrays of ``.npz`` files, with a limit on what they unpack to. Reading runs no code from the file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 2**28
"""How many bytes arrays may take, at 8 bytes per number or more, unless the file itself is large."""
_MOST_RATIO = 128  # a fair coin packs to no less than a bit, and takes 16 bytes with its score
_LEAST_ITEM_SIZE = 8  # numbers of fewer bytes become float64 or int64 later


def load_arrays(
    stream: IO[bytes], names: Iterable[str], *, most_bytes: int | None = None
) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return the names of all arrays of an ``.npz`` file, and those of ``names`` that it has.

    A few kilobytes may be packed so that they unpack to more than the machine holds. Sizes are therefore looked at before any data
    is unpacked: together, the arrays may take ``most_bytes`` (``MOST_BYTES`` by default), or 128 times the size of the file if that
    is more. A number counts as 8 bytes at least, which it takes once it is converted.

    Raises:
        ValueError: if they would take more, or an array is not as large as its header says; and whatever ``zipfile`` and
            ``numpy`` raise for files that are damaged.
    """
    size = stream.seek(0, 2)
    stream.seek(0)
    most = max(MOST_BYTES if most_bytes is None else most_bytes, _MOST_RATIO * size)
    with zipfile.ZipFile(stream) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        chosen = [name for name in names if name in members]
        _check_total(sum(members[name].file_size for name in chosen), most, size, chosen)  # headers are unpacked next
        _check_total(sum(_bytes_taken(archive, members[name], name) for name in chosen), most, size, chosen)
        return list(members), {name: _read(archive, members[name]) for name in chosen}


def _check_total(total: int, most: int, size: int, chosen: list[str]) -> None:
    if total > most:
        raise ValueError(
            f"its arrays {', '.join(chosen)} would take {total:,} bytes, and the file has {size:,}; if that is meant, write it "
            "with np.savez, which does not compress"
        )


def _bytes_taken(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> int:
    """Check the header of an array, and return how many bytes its numbers may take."""
    with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise ValueError(f"its {name} is no array")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        numbers = int(np.prod(shape, dtype=object))
        stated = stream.tell() + dtype.itemsize * numbers
        if dtype.hasobject:
            raise ValueError(f"its array {member.filename} holds objects, which only code could read")
        if stated != member.file_size:
            raise ValueError(f"its array {member.filename} has {member.file_size:,} bytes, {stated:,} are stated")
    return max(_LEAST_ITEM_SIZE, dtype.itemsize) * numbers


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

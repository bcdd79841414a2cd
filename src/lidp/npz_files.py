"""Arrays of ``.npz`` files, with a limit on what they unpack to. Reading runs no code from the file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 2**30
"""How many bytes arrays may take, unless the file itself is about as large."""
_MOST_RATIO = 20


def load_arrays(
    stream: IO[bytes], names: Iterable[str], *, most_bytes: int | None = None
) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return the names of all arrays of an ``.npz`` file, and those of ``names`` that it has.

    A few megabytes may be packed so that they unpack to more than the machine holds. Sizes are therefore looked at before anything
    is unpacked: together, the arrays may take ``most_bytes`` (``MOST_BYTES`` by default), or 20 times the size of the file if that
    is more.

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
        total = sum(members[name].file_size for name in chosen)
        if total > most:
            raise ValueError(
                f"its arrays {', '.join(chosen)} would take {total:,} bytes, and the file has {size:,}; if that is meant, write it "
                "with np.savez, which does not compress"
            )
        return list(members), {name: _read(archive, members[name], name) for name in chosen}


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise ValueError(f"its {name} is no array")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        stated = stream.tell() + dtype.itemsize * int(np.prod(shape, dtype=object))
        if dtype.hasobject:
            raise ValueError(f"its array {member.filename} holds objects, which only code could read")
        if stated != member.file_size:
            raise ValueError(f"its array {member.filename} has {member.file_size:,} bytes, {stated:,} are stated")
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

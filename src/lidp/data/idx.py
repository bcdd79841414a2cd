"""The IDX format of the MNIST family: a magic number, the dimensions, then bytes; possibly gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lidp.errors import InvalidData

_BYTES = 0x08


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked if it is gzipped."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidData(f"{path}: cannot be read: {error}") from None


def parse_idx(content: bytes, name: str, dimensions: int) -> NDArray[np.uint8]:
    """An array of bytes, or an error that says what is wrong with it."""
    header = 4 + 4 * dimensions
    if len(content) < header or content[:2] != b"\0\0" or content[2] != _BYTES or content[3] != dimensions:
        raise InvalidData(
            f"{name}: expected an IDX file of bytes in {dimensions} dimensions, its first bytes are {content[:4]!r}"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = header + math.prod(shape)
    if len(content) != expected:
        raise InvalidData(
            f"{name}: {len(content):,} bytes, expected {expected:,} for shape {shape}; it is truncated or damaged"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)

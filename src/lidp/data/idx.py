"""Read the IDX format of the MNIST family: a magic number, the dimensions, then bytes; possibly gzipped."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib

import numpy as np

from lidp.arrays import Bytes
from lidp.data.sources import is_web_page
from lidp.errors import InvalidData

_BYTES = 0x08
MAX_BYTES = 2**26
"""Largest unpacked size of a Fashion-MNIST file; the largest of them has 47 million bytes."""


def unpack(content: bytes, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file, unpacked if it is gzipped.

    Raises:
        InvalidData: if it is damaged, or unpacks to more than ``max_bytes``.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            unpacked = stream.read(max_bytes + 1)
            if len(unpacked) <= max_bytes:
                return unpacked
            raise InvalidData(f"{name}: unpacks to more than {max_bytes:,} bytes, more than any data set of lidp has")
    except InvalidData:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidData(f"{name}: cannot be unpacked, it is truncated or damaged: {error}") from None


def parse_idx(content: bytes, name: str, dimensions: int) -> Bytes:
    """Return the array of an IDX file of bytes.

    Raises:
        InvalidData: if the content is not an IDX file of bytes with this number of dimensions.
    """
    header = 4 + 4 * dimensions
    if is_web_page(content):
        raise InvalidData(f"{name}: expected an IDX file, but this is a web page")
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _BYTES:
        raise InvalidData(f"{name}: expected an IDX file of bytes, but the first ones are {content[:4]!r}")
    if content[3] != dimensions:
        raise InvalidData(
            f"{name}: expected an IDX file with {_dimensions(dimensions)}, but this one has {content[3]}; "
            "is it another file under this name?"
        )
    if len(content) < header:
        raise InvalidData(f"{name}: {len(content)} bytes, expected at least {header}; it is truncated")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = header + math.prod(shape)
    if len(content) != expected:
        raise InvalidData(
            f"{name}: {len(content):,} bytes, expected {expected:,} for shape {shape}; it is truncated or damaged"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"

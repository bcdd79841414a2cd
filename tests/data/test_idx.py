"""The IDX format: arrays are read as written, other content is refused."""

import gzip

import numpy as np
import pytest

from lidp.data.idx import parse_idx, unpack
from lidp.errors import InvalidData
from tests.data.files import encode_idx


def test_parse_idx_returns_the_encoded_array():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(parse_idx(encode_idx(array), "a", 3), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an IDX file"),
        (b"\x89PNG....", "but the first ones are b'.x89PNG'"),
        (b"\n<!DOCTYPE html>", "this is a web page"),
        (encode_idx(np.zeros((2, 2), np.uint8)), "with 3 dimensions, but this one has 2; is it another file"),
        (encode_idx(np.zeros((2, 3, 4), np.uint8))[:8], "8 bytes, expected at least 16; it is truncated"),
        (encode_idx(np.zeros((2, 3, 4), np.uint8))[:-1], "39 bytes, expected 40"),
        (encode_idx(np.zeros((2, 3, 4), np.uint8)) + b"x", "41 bytes, expected 40"),
    ],
)
def test_parse_idx_refuses_other_content(content, message):
    with pytest.raises(InvalidData, match=message):
        parse_idx(content, "a", 3)


def test_unpack_refuses_truncated_gzip():
    packed = gzip.compress(encode_idx(np.zeros((20, 30), np.uint8)))
    assert unpack(packed, "a.gz") == encode_idx(np.zeros((20, 30), np.uint8))
    for part in (packed[:-12], packed[:3], packed[:12] + b"\xff" * 20):
        with pytest.raises(InvalidData, match="a.gz: cannot be unpacked, it is truncated or damaged"):
            unpack(part, "a.gz")

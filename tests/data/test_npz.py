"""Data sets in ``.npz`` files: accepted arrays, and error messages for other files."""

import io
import zipfile

import numpy as np
import pytest

from lidp.data import load_npz
from lidp.errors import InvalidData
from tests.data.files import hide_bytes


def test_examples_are_flattened_and_split(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.npz"
    np.savez(path, x=rng.random((50, 4, 4)), y=rng.integers(0, 3, 50))
    data = load_npz(path)
    assert (data.name, data.x.shape, data.test_x.shape, data.classes) == ("mine", (40, 16), (10, 16), 3)
    np.savez(path, x=np.zeros((5, 2)), y=np.zeros(5, int), test_x=np.ones((2, 2)), test_y=np.ones(2, int))
    assert load_npz(path).test_x.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 2))}, "has no array 'y'; it has x"),
        ({"x": np.zeros(3), "y": np.zeros(3, int)}, "x must be an array of numbers"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "y must be whole numbers"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "3 examples in x and 4 labels in y"),
        ({"x": np.full((9, 2), np.nan), "y": np.zeros(9, int)}, "x: example 0, feature 0 is not a finite number"),
        ({"x": np.eye(9)[::-1] * 1e300, "y": np.zeros(9, int)}, "x: example 0, feature 8 is not a finite number"),
        ({"x": np.zeros((9, 2)), "y": np.full(9, -1)}, "y must be labels from 0, got -1 to -1"),
        ({"x": np.zeros((9, 2)), "y": np.full(9, 2**64 - 1, np.uint64)}, "y must be labels from 0"),
        ({"x": np.zeros((9, 2)), "y": np.arange(9) + 1}, "no more than the 9 examples, got 1 to 9; np.unique"),
        ({"x": np.zeros((9, 2)), "y": np.full(9, 1_000_000)}, "0 to classes - 1, with at most 10,000 classes"),
        ({"x": np.zeros((20_000, 1)), "y": np.arange(20_000) // 2 + 1}, "at most 10,000 classes .* got 1 to 10000"),
        ({"x": np.zeros((1, 2)), "y": np.zeros(1, int)}, "one example; at least two are needed"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, "x is empty, of shape"),
        ({"x": np.zeros((9, 0)), "y": np.zeros(9, int)}, "x is empty, of shape"),
        (
            {"x": np.zeros((9, 2)), "y": np.zeros(9, int), "test_x": np.zeros((2, 2))},
            "has no array 'test_y'; it has x, y, test_x",
        ),
        ({"x": np.zeros((9, 2)), "y": np.zeros(9, int), "test_y": np.zeros(2, int)}, "has no array 'test_x'"),
        (
            {"x": np.zeros((9, 2)), "y": np.zeros(9, int), "test_x": np.zeros((2, 3)), "test_y": np.zeros(2, int)},
            "2 features in x and 3 in test_x",
        ),
        ({"x": np.array([["a"]], object), "y": np.zeros(1, int)}, "expected an .npz file"),
    ],
)
def test_invalid_arrays_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidData, match=message):
        load_npz(tmp_path / "a.npz")


def npz(**arrays):
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    return packed.getvalue()


def npy(array):
    packed = io.BytesIO()
    np.save(packed, array)
    return packed.getvalue()


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


WHOLE = npz(x=np.random.default_rng(0).random((40, 5)), y=np.zeros(40, int))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"no", "its first bytes are b'no'"),
        (b"<html>Not found</html>", "it is a web page"),
        (npy(np.zeros((3, 2))), "it is a single array"),
        (WHOLE[:-100], "it is truncated or damaged"),
        (WHOLE[:300] + b"\xff" * 100 + WHOLE[400:], "expected an .npz file"),
        (zipped(x="no array", y=npy(np.zeros(3, int))), "its x is not an array"),
        (zipped(x=npy(np.zeros((3, 2)))[:-8], y=npy(np.zeros(3, int))), "expected an .npz file"),
        (zipped(), "has no array 'x'; it has none"),
    ],
    ids=hide_bytes,
)
def test_files_that_are_not_npz_are_refused(tmp_path, content, message):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        load_npz(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "pickle" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InvalidData, match="there is no such file"):
        load_npz(tmp_path / "a.npz")
    with pytest.raises(InvalidData, match="Is a directory"):
        load_npz(tmp_path)


def test_boolean_features_and_unsigned_labels_are_accepted(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(
        path, x=np.eye(2, dtype=bool), y=np.arange(2, dtype=np.uint8), note=np.array([None])
    )  # other arrays are not read
    for share in (0.01, 0.99):
        data = load_npz(path, test_share=share)
        assert (len(data.y), len(data.test_y), data.classes) == (1, 1, 2)

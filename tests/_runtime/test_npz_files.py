"""Files that would unpack to more than the memory of the machine are refused before they are unpacked."""

import io
import zipfile

import numpy as np
import pytest

from lidp._runtime import npz_files
from lidp._runtime.npz_files import load_arrays
from lidp.data import load_npz
from lidp.errors import InvalidData


def header_of(shape, dtype="<f4"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def bomb(path, rows):
    """Write an .npz file whose ``x`` has ``rows`` rows of 1,000 zeros, in parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as stream:
            stream.write(header_of((rows, 1000)))
            for _ in range(rows // 1000):
                stream.write(bytes(4_000_000))
        archive.writestr("y.npy", header_of((rows,), "<i8") + bytes(8 * rows))


@pytest.mark.slow
def test_a_small_file_of_a_gigabyte_is_refused_before_unpacking(tmp_path, monkeypatch):
    bomb(tmp_path / "bomb.npz", 300_000)  # 1.2 GB
    assert (tmp_path / "bomb.npz").stat().st_size < 2_000_000
    monkeypatch.setattr(npz_files, "_read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InvalidData, match="bomb.npz: .*x, y would take 1,202,.* bytes, and the file has .*np.savez"):
        load_npz(tmp_path / "bomb.npz")


def test_an_array_that_is_smaller_than_its_header_says_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header_of((10**12, 10**6)) + bytes(8))
        archive.writestr("y.npy", header_of((1,), "<i8") + bytes(8))
    with pytest.raises(InvalidData, match="x.npy has .* bytes, but its header says 4,000,000,"):
        load_npz(tmp_path / "a.npz")


def test_arrays_of_all_kinds_are_read_as_by_numpy(tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"a": np.arange(12.0).reshape(3, 4), "b": np.asfortranarray(np.arange(6).reshape(2, 3)), "c": np.array(True)}
    arrays["d"] = np.empty((0, 3), np.uint8)
    for save in (np.savez, np.savez_compressed):
        save(path, **arrays, e=np.arange(3))
        with path.open("rb") as stream:
            names, loaded = load_arrays(stream, [*arrays, "missing"])
        assert names == ["a", "b", "c", "d", "e"]
        assert list(loaded) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(loaded[name], array)
            assert loaded[name].dtype == array.dtype
    np.savez(path, a=np.array([{}], dtype=object))
    with path.open("rb") as stream, pytest.raises(ValueError, match="holds Python objects"):
        load_arrays(stream, ["a"])


def zeros_file(path, shape, dtype):
    """Write an .npz file whose ``x`` is zeros, in parts."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(header_of(shape, dtype))
        for _ in range(shape[0]):
            stream.write(bytes(np.dtype(dtype).itemsize * shape[1]))


@pytest.mark.parametrize(("shape", "dtype"), [((40, 1_000_000), "|i1"), ((20, 2_000_000), "|b1"), ((10**6, 10**6), "|V0")])
def test_small_numbers_count_with_their_converted_size(tmp_path, monkeypatch, shape, dtype):
    """Zeros of one byte compress to a thousandth, and take eight times their size as float64."""
    path = tmp_path / "a.npz"
    if np.dtype(dtype).itemsize:
        zeros_file(path, shape, dtype)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", header_of(shape, dtype))
    assert path.stat().st_size < 500_000
    monkeypatch.setattr(npz_files, "_read", lambda *_: pytest.fail("it was unpacked"))
    with path.open("rb") as stream, pytest.raises(ValueError, match=f"x would take {8 * shape[0] * shape[1]:,} bytes"):
        load_arrays(stream, ["x"])


def test_data_sets_and_scores_of_usual_size_are_accepted(tmp_path):
    """60,000 images of 784 bytes that compress to a fifth, like handwritten digits, and scores with coins of one byte."""
    rng = np.random.default_rng(0)
    images = np.zeros((60_000, 784), np.uint8)
    images[:, :130] = rng.integers(0, 256, (60_000, 130), dtype=np.uint8)
    shape = (65_536, 64)
    arrays = {"x": images, "scores": rng.standard_normal(shape), "coins": rng.integers(0, 2, shape, dtype=np.int8)}
    for names in (["x"], ["scores", "coins"]):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w") as stream:
                    np.lib.format.write_array(stream, arrays[name])
        with (tmp_path / "a.npz").open("rb") as stream:
            loaded = load_arrays(stream, names)[1]
        assert {name: array.shape for name, array in loaded.items()} == {name: arrays[name].shape for name in names}


def test_a_large_uncompressed_array_is_accepted(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(1000))
    with (tmp_path / "a.npz").open("rb") as stream:
        assert len(load_arrays(stream, ["a"], max_bytes=10)[1]["a"]) == 1000

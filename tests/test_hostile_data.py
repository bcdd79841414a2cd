"""Files of data that unpack to more than the machine holds are refused before they are unpacked."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from lidp._runtime import npz_files
from lidp._runtime.npz_files import load_arrays
from lidp.data import load_npz, load_purchases
from lidp.data.fashion_mnist import FILES, load_fashion_mnist
from lidp.errors import InvalidData


def header_of(shape, dtype="<f4"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def bomb(path, rows):
    """An .npz file whose x has so many rows of 1,000 zeros, written in parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as stream:
            stream.write(header_of((rows, 1000)))
            for _ in range(rows // 1000):
                stream.write(bytes(4_000_000))
        archive.writestr("y.npy", header_of((rows,), "<i8") + bytes(8 * rows))


def test_an_npz_file_that_unpacks_to_a_gigabyte_is_not_unpacked(tmp_path, monkeypatch):
    bomb(tmp_path / "bomb.npz", 300_000)  # 1.2 GB
    assert (tmp_path / "bomb.npz").stat().st_size < 2_000_000
    monkeypatch.setattr(npz_files, "_read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InvalidData, match="bomb.npz: .*x, y would take 1,202,.* bytes, and the file has .*np.savez"):
        load_npz(tmp_path / "bomb.npz")


def test_an_array_that_states_more_than_it_has(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header_of((10**12, 10**6)) + bytes(8))
        archive.writestr("y.npy", header_of((1,), "<i8") + bytes(8))
    with pytest.raises(InvalidData, match="x.npy has .* bytes, 4,000,000,.* are stated"):
        load_npz(tmp_path / "a.npz")


def test_arrays_of_all_kinds_are_read_as_numpy_reads_them(tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"a": np.arange(12.0).reshape(3, 4), "b": np.asfortranarray(np.arange(6).reshape(2, 3)), "c": np.array(True)}
    arrays["d"] = np.empty((0, 3), np.uint8)
    for save in (np.savez, np.savez_compressed):
        save(path, **arrays, e=np.arange(3))
        with path.open("rb") as stream:
            present, found = load_arrays(stream, [*arrays, "missing"])
        assert present == ["a", "b", "c", "d", "e"]
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
    np.savez(path, a=np.array([{}], dtype=object))
    with path.open("rb") as stream, pytest.raises(ValueError, match="holds objects"):
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
def test_numbers_of_few_bytes_count_as_what_they_become(tmp_path, monkeypatch, shape, dtype):
    """Zeros of one byte each pack a thousandfold and take eight times as many bytes as float64."""
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


def test_data_sets_and_scores_of_usual_sizes_are_read(tmp_path):
    """60,000 images of 784 bytes that pack to a fifth, as handwritten digits do, and scores with coins of one byte."""
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
            found = load_arrays(stream, names)[1]
        assert {name: array.shape for name, array in found.items()} == {name: arrays[name].shape for name in names}


def test_a_large_array_that_is_not_compressed_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(1000))
    with (tmp_path / "a.npz").open("rb") as stream:
        assert len(load_arrays(stream, ["a"], most_bytes=10)[1]["a"]) == 1000


def test_an_archive_of_purchases_that_unpacks_to_more_than_there_is(tmp_path):
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        member = tarfile.TarInfo("dataset_purchase")
        member.size = 600_000_000
        archive.addfile(member, _Zeros(member.size))
    path = tmp_path / "dataset_purchase.tgz"
    path.write_bytes(packed.getvalue())
    with pytest.raises(InvalidData, match="unpacks to more than 536,870,912 bytes"):
        load_purchases(path)


def test_a_file_of_fashion_mnist_that_unpacks_to_more_than_there_is(tmp_path):
    for name in FILES:
        with gzip.open(tmp_path / f"{name}.gz", "wb", compresslevel=1) as stream:
            for _ in range(10):
                stream.write(bytes(8_000_000))
    with pytest.raises(InvalidData, match="unpacks to more than 67,108,864 bytes"):
        load_fashion_mnist(tmp_path)


class _Zeros(io.RawIOBase):
    """A file of so many zeros."""

    def __init__(self, size):
        self.left = size

    def read(self, size=-1):
        size = self.left if size < 0 else min(size, self.left)
        self.left -= size
        return bytes(size)

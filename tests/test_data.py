"""Data sets: found, read, checked; and what is said when they are not what they should be."""

import gzip
import http.server
import io
import struct
import tarfile
import threading

import numpy as np
import pytest

from lidp.data import Dataset, fashion_mnist, load_fashion_mnist, load_npz, load_purchases, purchases, synthetic_purchases
from lidp.data.idx import parse_idx, read_bytes
from lidp.errors import InvalidData

HERE = all((fashion_mnist.DEBIAN / f"{name}.gz").is_file() for name in fashion_mnist.FILES)
needs_fashion_mnist = pytest.mark.skipif(not HERE, reason="needs Debian's package dataset-fashion-mnist")


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def test_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(parse_idx(idx(array), "a", 3), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an IDX file"),
        (b"\x89PNG....", "its first bytes are"),
        (idx(np.zeros((2, 2), np.uint8)), "in 3 dimensions"),
        (idx(np.zeros((2, 3, 4), np.uint8))[:-1], "39 bytes, expected 40"),
        (idx(np.zeros((2, 3, 4), np.uint8)) + b"x", "41 bytes, expected 40"),
    ],
)
def test_what_is_no_idx(content, message):
    with pytest.raises(InvalidData, match=message):
        parse_idx(content, "a", 3)


def test_gzip_cut_short(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(idx(np.zeros((20, 30), np.uint8)))[:-12])
    with pytest.raises(InvalidData, match="a.gz: cannot be read"):
        read_bytes(path)


@needs_fashion_mnist
def test_fashion_mnist(tmp_path, monkeypatch):
    data = load_fashion_mnist()
    assert (data.x.shape, data.test_x.shape, data.classes) == ((60_000, 784), (10_000, 784), 10)
    assert (data.x.dtype, data.x.max() * data.unit, data.test_x.max()) == (np.uint8, 1.0, 1.0)
    assert np.bincount(data.y).tolist() == [6000] * 10
    assert not data.x.flags.writeable
    small = data.first(100)
    assert len(small) == 100
    assert len(small.test_y) == 10_000
    # the same by path and by LIDP_DATA, unpacked or not
    for name in fashion_mnist.FILES:
        (tmp_path / name).write_bytes(gzip.decompress((fashion_mnist.DEBIAN / f"{name}.gz").read_bytes()))
    np.testing.assert_array_equal(load_fashion_mnist(tmp_path).x, data.x)
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("LIDP_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_fashion_mnist().y, data.y)
    # one picture of a shirt less
    name = "t10k-labels-idx1-ubyte"
    content = bytearray((tmp_path / name).read_bytes())
    content[100] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=f"{name}: not the content of Fashion-MNIST's"):
        load_fashion_mnist()
    (tmp_path / name).write_bytes((tmp_path / "train-labels-idx1-ubyte").read_bytes())
    with pytest.raises(InvalidData, match="60,000 items, expected 10,000"):
        load_fashion_mnist()


def test_fashion_mnist_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIDP_DATA", raising=False)
    with pytest.raises(InvalidData, match=r"is not in .*debian.*cache.*dataset-fashion-mnist"):
        load_fashion_mnist()
    with pytest.raises(InvalidData, match=r"train-images-idx3-ubyte\[.gz\] is missing"):
        load_fashion_mnist(tmp_path)


@needs_fashion_mnist
def test_fetching_fashion_mnist(tmp_path, monkeypatch):
    debian = fashion_mnist.DEBIAN
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LIDP_DATA", raising=False)

    class Site(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(debian))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(InvalidData, match="cannot be fetched"):
            load_fashion_mnist(download=True, url=url + "/elsewhere")
        assert len(load_fashion_mnist(download=True, url=url)) == 60_000
    finally:
        server.shutdown()
        server.server_close()
    assert len(load_fashion_mnist()) == 60_000  # from the cache


def table(examples=40):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.integers(1, 101, examples), rng.integers(0, 2, (examples, 600))])


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(purchases, "TRAINING", 30)
    monkeypatch.setattr(purchases, "TEST", 10)


@pytest.mark.parametrize("form", ["tgz", "csv"])
def test_purchases(tmp_path, few, form):
    text = "\n".join(",".join(map(str, row)) for row in table()).encode()
    path = tmp_path / f"dataset_purchase.{form}"
    if form == "csv":
        path.write_bytes(text)
    else:
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("dataset_purchase")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    data = load_purchases(path)
    assert (data.x.shape, data.test_x.shape, data.classes) == ((30, 600), (10, 600), 100)
    again = load_purchases(path)
    np.testing.assert_array_equal(data.y, again.y)
    assert (load_purchases(path, seed=1).y != data.y).any()
    both = np.column_stack([np.append(data.y, data.test_y) + 1, np.vstack([data.x, data.test_x])])
    assert sorted(map(tuple, both.astype(int))) == sorted(map(tuple, table()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:20], "20 examples, at least 40"),
        (lambda t: t[:, :-1], "600 columns"),
        (lambda t: np.where(np.arange(601) == 0, 0, t), "labels from 0 to 0"),
        (lambda t: np.where(np.arange(601) == 5, 2, t), "features must be 0 or 1"),
    ],
)
def test_purchases_that_are_not(tmp_path, few, change, message):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in change(table())))
    with pytest.raises(InvalidData, match=message):
        load_purchases(path)


def test_purchases_that_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("what,is\nthis")
    with pytest.raises(InvalidData, match="cannot be read as a table"):
        load_purchases(path)
    with pytest.raises(InvalidData, match="there is no such file"):
        load_purchases(tmp_path / "b.csv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LIDP_DATA", raising=False)
    with pytest.raises(InvalidData, match="Purchase-100 is not in"):
        load_purchases()
    with pytest.raises(InvalidData, match="cannot be fetched"):
        load_purchases(download=True, url="http://127.0.0.1:9/nothing")


def test_npz(tmp_path):
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
        ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "3 examples and 4 labels"),
        ({"x": np.full((9, 2), np.nan), "y": np.zeros(9, int)}, "is not a finite number"),
        ({"x": np.zeros((9, 2)), "y": np.full(9, -1)}, "labels must be"),
        ({"x": np.array([["a"]], object), "y": np.zeros(1, int)}, "expected an .npz file"),
    ],
)
def test_npz_that_is_not(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidData, match=message):
        load_npz(tmp_path / "a.npz")


def test_no_npz(tmp_path):
    with pytest.raises(InvalidData, match="there is no such file"):
        load_npz(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_text("no")
    with pytest.raises(InvalidData, match="expected an .npz file"):
        load_npz(tmp_path / "a.npz")


def test_synthetic_purchases():
    data = synthetic_purchases(300, 100, classes=10)
    assert (data.x.shape, data.test_x.shape, data.classes) == ((300, 600), (100, 600), 10)
    assert set(np.unique(data.x)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.x, synthetic_purchases(300, 100, classes=10).x)
    # Customers of a class resemble one another: the nearest class mean is nearly always the right one.
    means = np.array([data.x[data.y == c].mean(axis=0) for c in range(10)])
    nearest = ((data.test_x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == data.test_y).mean() > 0.9


def test_more_records_than_there_are():
    with pytest.raises(InvalidData, match="has 30 training examples, 31 were asked for"):
        synthetic_purchases(30, 10, classes=3).first(31)


def test_a_data_set_is_checked():
    x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    with pytest.raises(InvalidData, match="test examples 2"):
        Dataset("d", x, y, x[:, :2], y, 2)

"""Data sets: found, read, checked; and what is said when they are not what they should be."""

import gzip
import hashlib
import http.server
import io
import socket
import struct
import tarfile
import threading

import numpy as np
import pytest

from lidp.cli.app import run
from lidp.data import Dataset, fashion_mnist, load_fashion_mnist, load_purchases, purchases, synthetic_purchases
from lidp.data.idx import parse_idx, unpack
from lidp.errors import InvalidData
from tests.waiting import PATIENCE

HERE = all((fashion_mnist.DEBIAN / f"{name}.gz").is_file() for name in fashion_mnist.FILES)
needs_fashion_mnist = pytest.mark.skipif(not HERE, reason="needs Debian's package dataset-fashion-mnist")


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def test_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(parse_idx(idx(array), "a", 3), array)


def nameless(value):
    """Packed bytes hold the time at which they were packed: they are no names of tests, which all workers must agree on."""
    return "bytes" if isinstance(value, bytes) else None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an IDX file"),
        (b"\x89PNG....", "the first ones here are b'.x89PNG'"),
        (b"\n<!DOCTYPE html>", "this is a web page"),
        (idx(np.zeros((2, 2), np.uint8)), "with 3 dimensions, this one has 2; is it another file"),
        (idx(np.zeros((2, 3, 4), np.uint8))[:8], "8 bytes, expected 16 and more; it is truncated"),
        (idx(np.zeros((2, 3, 4), np.uint8))[:-1], "39 bytes, expected 40"),
        (idx(np.zeros((2, 3, 4), np.uint8)) + b"x", "41 bytes, expected 40"),
    ],
)
def test_what_is_no_idx(content, message):
    with pytest.raises(InvalidData, match=message):
        parse_idx(content, "a", 3)


def test_gzip_cut_short():
    packed = gzip.compress(idx(np.zeros((20, 30), np.uint8)))
    assert unpack(packed, "a.gz") == idx(np.zeros((20, 30), np.uint8))
    for part in (packed[:-12], packed[:3], packed[:12] + b"\xff" * 20):
        with pytest.raises(InvalidData, match="a.gz: cannot be unpacked, it is truncated or damaged"):
            unpack(part, "a.gz")


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


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No data on this machine; gives the folder of the cache."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIDP_DATA", raising=False)
    return tmp_path / "cache" / "lidp"


@pytest.fixture
def site():
    """A site on this machine: its address, and its files, which may be changed; None is cut off on the way."""
    files = {}

    class Site(http.server.BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self):
            name = self.path.lstrip("/")
            if name not in files:
                self.send_error(404)
                return
            asked.append(name)
            content = files[name]
            self.send_response(200)
            self.send_header("Content-Length", "1000" if content is None else str(len(content)))
            self.end_headers()
            self.wfile.write(b"only this" if content is None else content)

        def log_message(self, *_):
            pass

    asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", files, asked
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def clothes(monkeypatch, nowhere):
    """Fashion-MNIST with few and small images: the content of its files, and their names."""
    rng = np.random.default_rng(0)
    shapes = {"train-images-idx3-ubyte": (30, 4, 4), "train-labels-idx1-ubyte": (30,)}
    shapes |= {"t10k-images-idx3-ubyte": (20, 4, 4), "t10k-labels-idx1-ubyte": (20,)}
    contents = {name: idx(rng.integers(0, 10, shape)) for name, shape in shapes.items()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    files = {name: (len(shape), shape[0], digests[name]) for name, shape in shapes.items()}
    monkeypatch.setattr(fashion_mnist, "FILES", files)
    return contents


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("name", "made_bad", "message"),
    [
        (IMAGES, lambda files: files[IMAGES][:-7], "489 bytes, expected 496 for shape (30, 4, 4); it is truncated"),
        (IMAGES, lambda files: gzip.compress(files[IMAGES])[:-20], "cannot be unpacked, it is truncated or damaged"),
        (IMAGES, lambda files: files[LABELS], "with 3 dimensions, this one has 1; is it another file under this name?"),
        (LABELS, lambda files: files[IMAGES], "with 1 dimension, this one has 3; is it another file under this name?"),
        (IMAGES, lambda files: files["t10k-images-idx3-ubyte"], "20 items, expected 30; is it another file"),
        (IMAGES, lambda files: b"<html><body>Moved</body></html>", "this is a web page, saved in its place"),
        (IMAGES, lambda files: b"", "expected an IDX file of bytes"),
        (
            IMAGES,
            lambda files: files[IMAGES][:-1] + b"\xff",
            f"not the content of Fashion-MNIST's {IMAGES}, by its SHA-256",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_bad_file_of_fashion_mnist(tmp_path, clothes, name, made_bad, message, ending):
    folder = tmp_path / "here"
    folder.mkdir()
    for every, content in clothes.items():
        (folder / every).write_bytes(content)
    assert len(load_fashion_mnist(folder)) == 30
    (folder / name).unlink()
    (folder / f"{name}{ending}").write_bytes(made_bad(clothes))
    with pytest.raises(InvalidData) as caught:
        load_fashion_mnist(folder, download=True, url="http://nowhere.invalid")  # a place that is named is never written to
    said = str(caught.value)
    assert said.startswith(f"{folder / name}{ending}: ")  # which file,
    assert message in said
    kind = "images" if name == IMAGES else "labels"
    assert f"it should be {name}, 30 {kind} of Fashion-MNIST" in said  # what was expected,
    for remedy in ("dataset-fashion-mnist", fashion_mnist.URL, "--data", "LIDP_DATA", "download=True", "--download"):
        assert remedy in said  # and how to get it


def test_a_folder_that_has_some_of_fashion_mnist(tmp_path, clothes, monkeypatch):
    monkeypatch.setenv("LIDP_DATA", str(tmp_path))
    for name in (IMAGES, LABELS):
        (tmp_path / name).write_bytes(clothes[name])
    with pytest.raises(InvalidData) as caught:
        load_fashion_mnist()
    assert f"is not in {tmp_path} (t10k-images-idx3-ubyte[.gz] is missing), {tmp_path}/fashion-mnist, " in str(caught.value)


def test_fetching_fashion_mnist(clothes, nowhere, site):
    url, files, asked = site
    kept = nowhere / "fashion-mnist"
    with pytest.raises(InvalidData, match=r"train-images-idx3-ubyte.gz: cannot be fetched: .*404.*to get it, install"):
        load_fashion_mnist(download=True, url=url)
    files |= {f"{name}.gz": gzip.compress(content) for name, content in clothes.items()}
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert len(load_fashion_mnist()) == 30  # from the cache
    assert len(load_fashion_mnist(download=True, url="http://nowhere.invalid")) == 30  # which nothing is fetched for
    assert sorted(path.name for path in kept.iterdir()) == sorted(files)
    # one that is damaged is fetched anew, and no other
    asked.clear()
    damaged = kept / f"{LABELS}.gz"
    damaged.write_bytes(damaged.read_bytes()[:-5])
    with pytest.raises(InvalidData, match=rf"{LABELS}.gz: cannot be unpacked.*allow a download \(download=True"):
        load_fashion_mnist()
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert asked == [damaged.name]
    assert len(load_fashion_mnist()) == 30
    # also if it was unpacked, and would be read first
    (kept / LABELS).write_bytes(b"no")
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert len(load_fashion_mnist()) == 30


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"<html>Please log in</html>", "this is a web page"),
        (gzip.compress(idx(np.zeros((30, 4, 4)))), "not the content of Fashion-MNIST's"),
        (gzip.compress(idx(np.zeros((30, 4, 4))))[:-3], "cannot be unpacked"),
        (None, "cannot be fetched: IncompleteRead"),
    ],
    ids=nameless,
)
def test_what_is_fetched_is_checked_before_it_is_kept(clothes, nowhere, site, bad, message):
    url, files, _ = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in clothes.items()} | {f"{IMAGES}.gz": bad}
    kept = nowhere / "fashion-mnist" / f"{IMAGES}.gz"
    for before in (None, b"what was here before"):
        if before is not None:
            kept.parent.mkdir(parents=True)
            kept.write_bytes(before)
        with pytest.raises(InvalidData, match=message) as caught:
            load_fashion_mnist(download=True, url=url)
        assert f"{url}/{IMAGES}.gz: " in str(caught.value)
        assert "install Debian's package" in str(caught.value)
        left = {path.name: path.read_bytes() for path in kept.parent.iterdir()} if kept.parent.is_dir() else {}
        assert left == ({} if before is None else {kept.name: before})


def test_a_download_is_allowed_on_the_command_line(clothes, nowhere, site, monkeypatch, capsys):
    url, files, asked = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in clothes.items()}
    monkeypatch.setitem(load_fashion_mnist.__kwdefaults__, "url", url)
    words = "audit-dpsgd --preset fmnist-linear --epsilon 4 --epochs 1 --batch-size 10 --canaries 4 --trials 2 --pilots 1 --quiet"
    assert run(words.split()) == 2
    assert "lidp audit-dpsgd --download" in capsys.readouterr().err
    assert not asked
    assert run([*words.split(), "--download"]) == 0
    assert sorted(asked) == sorted(files)
    assert run(words.split()) == 0


def test_a_cache_that_cannot_be_written_to(clothes, nowhere, site):
    url, files, _ = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in clothes.items()}
    nowhere.parent.mkdir()
    nowhere.write_text("a file where the folder should be")
    with pytest.raises(
        InvalidData, match=r"train-images-idx3-ubyte.gz: what was fetched cannot be kept there: .*to get it"
    ):
        load_fashion_mnist(download=True, url=url)


def table(examples=40):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.integers(1, 101, examples), rng.integers(0, 2, (examples, 600))])


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(purchases, "TRAINING", 30)
    monkeypatch.setattr(purchases, "TEST", 10)
    monkeypatch.setattr(purchases, "PUBLISHED", 50)


def as_csv(rows):
    return "\n".join(",".join(map(str, row)) for row in rows).encode()


def as_tgz(rows, name="dataset_purchase"):
    packed, text = io.BytesIO(), as_csv(rows)
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def as_npz(rows, **others):
    packed = io.BytesIO()
    np.savez(packed, x=rows[:, 1:], y=rows[:, 0] - 1, **others)
    return packed.getvalue()


def helpful(error, path):
    """Whether a message says which file, what Purchase-100 is, and how to get it."""
    said = str(error.value)
    assert said.startswith(f"{path}: ")
    for part in (
        "a label from 1 to 100 and 600 zeros and ones",
        purchases.URL,
        "--data",
        "LIDP_DATA",
        "download=True",
        "--download",
    ):
        assert part in said
    return said


@pytest.mark.parametrize(("form", "write"), [("tgz", as_tgz), ("csv", as_csv), ("npz", as_npz)])
def test_purchases(tmp_path, few, form, write):
    path = tmp_path / f"dataset_purchase.{form}"
    path.write_bytes(write(table()))
    data = load_purchases(path)
    assert (data.name, data.x.shape, data.test_x.shape, data.classes) == ("purchase-100", (30, 600), (10, 600), 100)
    again = load_purchases(path)
    np.testing.assert_array_equal(data.y, again.y)
    assert (load_purchases(path, seed=1).y != data.y).any()
    both = np.column_stack([np.append(data.y, data.test_y) + 1, np.vstack([data.x, data.test_x])])
    assert sorted(map(tuple, both.astype(int))) == sorted(map(tuple, table()))
    # the same choice whatever the file is
    (tmp_path / "other.csv").write_bytes(as_csv(table()))
    np.testing.assert_array_equal(data.x, load_purchases(tmp_path / "other.csv").x)


@pytest.mark.parametrize(("form", "write", "first"), [("csv", as_csv, 1), ("tgz", as_tgz, 1), ("npz", as_npz, 0)])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:20], "20 examples, at least 40"),
        (lambda t: t[:, :-1], "599 features, expected 600"),
        (lambda t: np.where(np.arange(601) == 0, 101, t), "labels from {} to {}, expected {} to {}"),
        (lambda t: np.where(np.arange(601) == 5, 2, t), "features must be 0 or 1"),
    ],
)
def test_purchases_that_are_not(tmp_path, few, form, write, first, change, message):
    path = tmp_path / f"a.{form}"
    path.write_bytes(write(change(table())))
    with pytest.raises(InvalidData) as caught:
        load_purchases(path)
    assert message.format(100 + first, 100 + first, first, 99 + first) in helpful(caught, path)


def test_labels_of_purchases_from_the_wrong_number(tmp_path, few):
    (tmp_path / "a.csv").write_bytes(as_csv(np.where(np.arange(601) == 0, 0, table())))
    with pytest.raises(InvalidData, match="labels from 0 to 0, expected 1 to 100"):
        load_purchases(tmp_path / "a.csv")
    np.savez(tmp_path / "a.npz", x=table()[:, 1:], y=np.full(40, 100))
    with pytest.raises(InvalidData, match="labels from 100 to 100, expected 0 to 99"):
        load_purchases(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv", b"what,is\nthis", "cannot be read as a table of whole numbers: could not convert string 'what'"),
        ("a.csv", b"1,2\n1,2,3\n", "the number of columns changed from 2 to 3 at row 2"),
        ("a.csv", b"# 1,2\n", "cannot be read as a table"),
        ("a.csv", b"40000,1\n", "could not convert string '40000'"),
        ("a.csv", bytes(range(256)), "cannot be read as a table"),
        ("a.csv", b"<!DOCTYPE html>\n<p>Not found", "this is a web page"),
        ("a.tgz", as_tgz(table())[:-200], "cannot be unpacked, it is truncated or damaged"),
        ("a.tgz", as_tgz(table())[:20], "cannot be unpacked, it is truncated or damaged"),
        ("a.tgz", as_tgz(table())[:300] + b"\xff" * 300 + as_tgz(table())[600:], "cannot be unpacked"),
        ("a.tgz", gzip.compress(as_csv(table())), "cannot be unpacked"),
        ("a.tgz", as_tgz(table(), "something"), "expected a file dataset_purchase in the archive"),
        ("a.npz", b"no", "its first bytes are b'no'"),
        ("a.npz", as_npz(table(), test_x=np.zeros((2, 600)), test_y=np.zeros(2, int)), "got test_x as well"),
    ],
    ids=nameless,
)  # fmt: skip
def test_purchases_that_cannot_be_read(tmp_path, few, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidData) as caught:
        load_purchases(path)
    said = helpful(caught, path)
    assert message in said
    assert "usecols" not in said
    assert len(said) < 1200


def test_purchases_that_are_not_there(tmp_path, nowhere):
    with pytest.raises(InvalidData, match="there is no such file") as caught:
        load_purchases(tmp_path / "b.csv")
    helpful(caught, tmp_path / "b.csv")
    with pytest.raises(InvalidData, match="is a folder, name a file"):
        load_purchases(tmp_path)
    with pytest.raises(InvalidData, match="Purchase-100 is not in"):
        load_purchases()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(InvalidData, match="cannot be fetched"):
            load_purchases(download=True, url=f"http://127.0.0.1:{silent.getsockname()[1]}/nothing")


def test_fetching_purchases(few, nowhere, site):
    url, files, asked = site
    kept = nowhere / "dataset_purchase.tgz"
    for bad, message in (
        (b"<html>Moved</html>", "this is a web page"),
        (as_tgz(table(50))[:-200], "cannot be unpacked"),
        (as_tgz(table(49)), "49 examples, expected 50"),  # those of the published file
    ):
        files["purchases"] = bad
        with pytest.raises(InvalidData, match=message) as caught:
            load_purchases(download=True, url=f"{url}/purchases")
        helpful(caught, f"what was fetched from {url}/purchases")
        assert not nowhere.exists()
    files["purchases"] = as_tgz(table(50))
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert len(load_purchases()) == 30  # from the cache
    asked.clear()
    kept.write_bytes(b"damaged")
    with pytest.raises(InvalidData) as caught:
        load_purchases()
    helpful(caught, kept)
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert asked == ["purchases"]


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

"""Fashion-MNIST: searching, reading and downloading it, and error messages for other files."""

import gzip
import hashlib

import numpy as np
import pytest

from lidp.cli.app import run
from lidp.data import fashion_mnist, load_fashion_mnist
from lidp.errors import InvalidData
from tests.data.files import encode_idx, hide_bytes

IS_INSTALLED = all((fashion_mnist.DEBIAN / f"{name}.gz").is_file() for name in fashion_mnist.FILES)
needs_fashion_mnist = pytest.mark.skipif(not IS_INSTALLED, reason="needs Debian's package dataset-fashion-mnist")


@needs_fashion_mnist
def test_the_installed_data_set_is_read_and_checked(tmp_path, monkeypatch):
    data = load_fashion_mnist()
    assert (data.x.shape, data.test_x.shape, data.classes) == ((60_000, 784), (10_000, 784), 10)
    assert (data.x.dtype, data.x.max() * data.unit, data.test_x.max()) == (np.uint8, 1.0, 1.0)
    assert np.bincount(data.y).tolist() == [6000] * 10
    assert not data.x.flags.writeable
    small = data.first(100)
    assert len(small) == 100
    assert len(small.test_y) == 10_000
    # The same data by path and by LIDP_DATA, packed or not.
    for name in fashion_mnist.FILES:
        (tmp_path / name).write_bytes(gzip.decompress((fashion_mnist.DEBIAN / f"{name}.gz").read_bytes()))
    np.testing.assert_array_equal(load_fashion_mnist(tmp_path).x, data.x)
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("LIDP_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_fashion_mnist().y, data.y)
    # One label changed.
    name = "t10k-labels-idx1-ubyte"
    content = bytearray((tmp_path / name).read_bytes())
    content[100] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=f"{name}: the SHA-256 differs from that of Fashion-MNIST's"):
        load_fashion_mnist()
    (tmp_path / name).write_bytes((tmp_path / "train-labels-idx1-ubyte").read_bytes())
    with pytest.raises(InvalidData, match="60,000 items, expected 10,000"):
        load_fashion_mnist()


def test_a_missing_data_set_is_reported_with_all_searched_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIDP_DATA", raising=False)
    with pytest.raises(InvalidData, match=r"is not in .*debian.*cache.*dataset-fashion-mnist"):
        load_fashion_mnist()
    with pytest.raises(InvalidData, match=r"train-images-idx3-ubyte\[.gz\] is missing"):
        load_fashion_mnist(tmp_path)


@pytest.fixture
def small_files(monkeypatch, cache):
    """Replace Fashion-MNIST by a few small images; return the content of its files by name."""
    rng = np.random.default_rng(0)
    shapes = {"train-images-idx3-ubyte": (30, 4, 4), "train-labels-idx1-ubyte": (30,)}
    shapes |= {"t10k-images-idx3-ubyte": (20, 4, 4), "t10k-labels-idx1-ubyte": (20,)}
    contents = {name: encode_idx(rng.integers(0, 10, shape)) for name, shape in shapes.items()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    files = {name: (len(shape), shape[0], digests[name]) for name, shape in shapes.items()}
    monkeypatch.setattr(fashion_mnist, "FILES", files)
    return contents


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("name", "make_bad", "message"),
    [
        (IMAGES, lambda files: files[IMAGES][:-7], "489 bytes, expected 496 for shape (30, 4, 4); it is truncated"),
        (IMAGES, lambda files: gzip.compress(files[IMAGES])[:-20], "cannot be unpacked, it is truncated or damaged"),
        (IMAGES, lambda files: files[LABELS], "with 3 dimensions, but this one has 1; is it another file under this name?"),
        (LABELS, lambda files: files[IMAGES], "with 1 dimension, but this one has 3; is it another file under this name?"),
        (IMAGES, lambda files: files["t10k-images-idx3-ubyte"], "20 items, expected 30; is it another file"),
        (IMAGES, lambda files: b"<html><body>Moved</body></html>", "but this is a web page"),
        (IMAGES, lambda files: b"", "expected an IDX file of bytes"),
        (
            IMAGES,
            lambda files: files[IMAGES][:-1] + b"\xff",
            f"the SHA-256 differs from that of Fashion-MNIST's {IMAGES}",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_invalid_file_is_named_with_expected_content_and_remedy(tmp_path, small_files, name, make_bad, message, ending):
    folder = tmp_path / "here"
    folder.mkdir()
    for valid_name, content in small_files.items():
        (folder / valid_name).write_bytes(content)
    assert len(load_fashion_mnist(folder)) == 30
    (folder / name).unlink()
    (folder / f"{name}{ending}").write_bytes(make_bad(small_files))
    with pytest.raises(InvalidData) as caught:
        load_fashion_mnist(folder, download=True, url="http://nowhere.invalid")  # nothing is downloaded into a given folder
    error = str(caught.value)
    assert error.startswith(f"{folder / name}{ending}: ")
    assert message in error
    kind = "images" if name == IMAGES else "labels"
    assert f"it should be {name}, 30 {kind} of Fashion-MNIST" in error
    for remedy in ("dataset-fashion-mnist", fashion_mnist.URL, "--data", "LIDP_DATA", "download=True", "--download"):
        assert remedy in error


def test_a_folder_with_some_of_the_files_is_named_with_a_missing_one(tmp_path, small_files, monkeypatch):
    monkeypatch.setenv("LIDP_DATA", str(tmp_path))
    for name in (IMAGES, LABELS):
        (tmp_path / name).write_bytes(small_files[name])
    with pytest.raises(InvalidData) as caught:
        load_fashion_mnist()
    assert f"is not in {tmp_path} (t10k-images-idx3-ubyte[.gz] is missing), {tmp_path}/fashion-mnist, " in str(caught.value)


def test_missing_and_damaged_files_are_downloaded(small_files, cache, site):
    url, files, requested = site
    folder = cache / "fashion-mnist"
    with pytest.raises(InvalidData, match=r"train-images-idx3-ubyte.gz: cannot be downloaded: .*404.*to get it, install"):
        load_fashion_mnist(download=True, url=url)
    files |= {f"{name}.gz": gzip.compress(content) for name, content in small_files.items()}
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert len(load_fashion_mnist()) == 30  # from the cache
    assert len(load_fashion_mnist(download=True, url="http://nowhere.invalid")) == 30  # from the cache, without a download
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    # Only the damaged file is downloaded again.
    requested.clear()
    damaged = folder / f"{LABELS}.gz"
    damaged.write_bytes(damaged.read_bytes()[:-5])
    with pytest.raises(InvalidData, match=rf"{LABELS}.gz: cannot be unpacked.*allow a download \(download=True"):
        load_fashion_mnist()
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert requested == [damaged.name]
    assert len(load_fashion_mnist()) == 30
    # Also if an unpacked file is damaged, which would be read instead.
    (folder / LABELS).write_bytes(b"no")
    assert len(load_fashion_mnist(download=True, url=url)) == 30
    assert len(load_fashion_mnist()) == 30


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"<html>Please log in</html>", "this is a web page"),
        (gzip.compress(encode_idx(np.zeros((30, 4, 4)))), "the SHA-256 differs from that of Fashion-MNIST's"),
        (gzip.compress(encode_idx(np.zeros((30, 4, 4))))[:-3], "cannot be unpacked"),
        (None, "cannot be downloaded: IncompleteRead"),
    ],
    ids=hide_bytes,
)
def test_downloads_are_checked_before_they_are_saved(small_files, cache, site, bad, message):
    url, files, _ = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in small_files.items()} | {f"{IMAGES}.gz": bad}
    path = cache / "fashion-mnist" / f"{IMAGES}.gz"
    for before in (None, b"what was here before"):
        if before is not None:
            path.parent.mkdir(parents=True)
            path.write_bytes(before)
        with pytest.raises(InvalidData, match=message) as caught:
            load_fashion_mnist(download=True, url=url)
        assert f"{url}/{IMAGES}.gz: " in str(caught.value)
        assert "install Debian's package" in str(caught.value)
        files_after = {file.name: file.read_bytes() for file in path.parent.iterdir()} if path.parent.is_dir() else {}
        assert files_after == ({} if before is None else {path.name: before})


@pytest.mark.slow
def test_the_option_download_allows_a_download(small_files, cache, site, monkeypatch, capsys):
    url, files, requested = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in small_files.items()}
    monkeypatch.setitem(load_fashion_mnist.__kwdefaults__, "url", url)
    words = "audit-dpsgd --preset fmnist-linear --epsilon 4 --epochs 1 --batch-size 10 --canaries 4 --trials 2 --pilots 1 --quiet"
    assert run(words.split()) == 2
    assert "lidp audit-dpsgd --download" in capsys.readouterr().err
    assert not requested
    assert run([*words.split(), "--download"]) == 0
    assert sorted(requested) == sorted(files)
    assert run(words.split()) == 0


def test_a_download_to_a_read_only_cache_is_refused(small_files, cache, site):
    url, files, _ = site
    files |= {f"{name}.gz": gzip.compress(content) for name, content in small_files.items()}
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    with pytest.raises(InvalidData, match=r"train-images-idx3-ubyte.gz: the download cannot be saved there: .*to get it"):
        load_fashion_mnist(download=True, url=url)

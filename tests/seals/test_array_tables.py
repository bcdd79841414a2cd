"""Tables of arrays: .npz, Parquet and folders of datasets keep the types of their columns."""

import datetime as dt
import json

import numpy as np
import pytest

from lidp._runtime.npz_files import save_arrays
from lidp.errors import InvalidData
from lidp.seals.tables import read_table
from tests.seals.sealed import edit_json


def test_arrays_keep_type_and_shape(tmp_path):
    x, y = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([1, 2, 3], dtype=np.int8)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    table = read_table(tmp_path / "a.npz")
    table.joined(table.take(np.array([2]))).write(tmp_path / "b.npz")
    again = np.load(tmp_path / "b.npz")
    assert (again["x"].dtype, again["y"].dtype) == (np.float32, np.int8)
    np.testing.assert_array_equal(again["x"], x[[0, 1, 2, 2]])
    np.testing.assert_array_equal(again["y"], [1, 2, 3, 3])


def test_texts_in_arrays_may_be_longer_than_those_of_the_data(tmp_path):
    np.savez(tmp_path / "a.npz", text=np.array(["a", "bc"]), y=np.array([1.5, 2.5]))
    table = read_table(tmp_path / "a.npz")
    joined = table.joined(table.filled("text", ["longer"], {"y": "7"}))
    assert joined.texts("text") == ["a", "bc", "longer"]
    assert joined.arrays["y"].tolist() == [1.5, 2.5, 7.0]
    with pytest.raises(InvalidData, match="the array holds float64"):
        table.filled("text", ["new"], {"y": "seven"})
    with pytest.raises(InvalidData, match="not texts"):
        table.texts("y")


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": np.array([{}], dtype=object)}, "Python objects"),
        ({"x": np.zeros(2), "y": np.zeros(3)}, "lengths are"),
        ({"x": np.array(1.0)}, "one entry per record"),
        ({"id": np.zeros(2)}, "rename it"),
        ({"x": np.zeros((0, 2))}, "no record"),
    ],
)
def test_npz_that_holds_no_records_is_refused(tmp_path, arrays, reason):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidData, match=reason):
        read_table(tmp_path / "a.npz")


def test_damaged_npz_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK not an archive")
    with pytest.raises(InvalidData, match="not a readable .npz"):
        read_table(tmp_path / "a.npz")


def test_pools_of_other_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3)))
    np.savez(tmp_path / "b.npz", x=np.zeros((2, 4)))
    np.savez(tmp_path / "c.npz", x=np.zeros((2, 3), dtype=np.float32))
    for other in ("b", "c"):
        with pytest.raises(InvalidData, match="the array 'x' of the pool"):
            read_table(tmp_path / "a.npz").joined(read_table(tmp_path / f"{other}.npz"))


def parquet(path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "text": pa.array(["a b", "c d"]),
        "n": pa.array([1, None], pa.int16()),
        "d": pa.array([dt.date(2020, 1, 2)] * 2),
        "l": pa.array([[1.5], []], pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(columns), path)
    return pq.read_table(path)


def test_parquet_keeps_its_schema(tmp_path):
    import pyarrow.parquet as pq

    before = parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    made = table.filled("text", ["new"], {"n": "7", "d": "2021-02-03", "l": "[2]"})
    table.joined(made).take(np.array([2, 1])).write(tmp_path / "b.parquet")
    after = pq.read_table(tmp_path / "b.parquet")
    assert after.schema.equals(before.schema)
    assert after.to_pylist()[0] == {"text": "new", "n": 7, "d": dt.date(2021, 2, 3), "l": [2.0]}
    assert after.to_pylist()[1] == before.to_pylist()[1]
    assert json.loads(next(made.records()))["d"] == "2021-02-03"
    with pytest.raises(InvalidData, match="--fill n=x: the column has the type int16"):
        table.filled("text", ["new"], {"n": "x", "d": "2021-02-03", "l": "[2]"})


def test_damaged_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(InvalidData, match="a.parquet"):
        read_table(tmp_path / "a.parquet")


def test_folders_of_datasets_keep_their_features(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    original = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, 0]}, features=features)
    original.save_to_disk(tmp_path / "a")
    before = sorted(file.name for file in (tmp_path / "a").iterdir())
    table = read_table(tmp_path / "a")
    joined = table.joined(table.filled("text", ["new"], {"label": "1"}))
    joined.take(np.array([3, 1])).write(tmp_path / "b")
    again = datasets.load_from_disk(str(tmp_path / "b"))
    assert again.features == features
    assert again.to_list() == [{"text": "new", "label": 1}, {"text": "b", "label": 1}]
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == before  # no caches in the user's folder


def test_folders_that_are_no_datasets_are_refused(tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "a").mkdir()
    with pytest.raises(InvalidData, match="a"):
        read_table(tmp_path / "a")


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args"])
def test_arrays_keep_names_that_numpy_uses_itself(tmp_path, name):
    with (tmp_path / "a.npz").open("wb") as stream:
        save_arrays(stream, {"x": np.zeros(3), name: np.arange(3)})
    read_table(tmp_path / "a.npz").write(tmp_path / "b.npz")
    again = np.load(tmp_path / "b.npz")
    assert sorted(again) == sorted(["x", name])
    np.testing.assert_array_equal(again[name], [0, 1, 2])


def saved(folder, columns):
    pytest.importorskip("datasets").Dataset.from_dict(columns).save_to_disk(str(folder))
    return folder


@pytest.mark.parametrize("target", ["../mine/data-00000-of-00001.arrow", "{0}/mine/data-00000-of-00001.arrow", "link"])
def test_datasets_with_data_outside_their_folder_are_refused(tmp_path, target):
    saved(tmp_path / "mine", {"text": ["my secret"]})
    folder = saved(tmp_path / "d", {"text": ["a"]})
    (folder / "link").symlink_to(tmp_path / "mine" / "data-00000-of-00001.arrow")
    edit_json(folder / "state.json", lambda plain: plain.update(_data_files=[{"filename": target.format(tmp_path)}]))
    with pytest.raises(InvalidData, match="outside the folder"):
        read_table(folder)


def test_datasets_of_files_are_refused_because_these_would_be_copied(tmp_path):
    (tmp_path / "key.txt").write_text("my secret", encoding="utf-8")
    images = [{"bytes": b"", "path": None}, {"bytes": None, "path": str(tmp_path / "key.txt")}]
    folder = saved(tmp_path / "d", {"image": images, "text": ["a", "b"]})
    edit_json(folder / "dataset_info.json", lambda plain: plain["features"].update(image={"_type": "Image"}))
    with pytest.raises(InvalidData, match="'image' has the type Image"):
        read_table(folder)


@pytest.mark.parametrize("state", ['{"_data_files": 3}', "[]", "{}", "[" * 100_000, '{"_data_files": [{"filename": 3}]}'])
def test_datasets_with_a_damaged_state_are_refused(tmp_path, state):
    folder = saved(tmp_path / "d", {"text": ["a"]})
    (folder / "state.json").write_text(state, encoding="utf-8")
    with pytest.raises(InvalidData, match="d: "):
        read_table(folder)


def test_missing_texts_of_datasets_are_no_words(tmp_path):
    with pytest.raises(InvalidData, match="must be a text in every record, got None in record 2"):
        read_table(saved(tmp_path / "d", {"text": ["a", None]})).texts("text")


def test_nested_columns_of_datasets_are_kept(tmp_path):
    records = {"text": ["a", "b"], "tags": [["x"], ["y", "z"]], "more": [{"n": 1, "type": "t"}, {"n": 2, "type": "u"}]}
    table = read_table(saved(tmp_path / "d", records))
    table.take(np.array([1])).write(tmp_path / "e")
    assert list(read_table(tmp_path / "e").records()) == [json.dumps({k: v[1] for k, v in records.items()})]

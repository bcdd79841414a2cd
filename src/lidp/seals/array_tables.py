"""Tables whose columns are arrays: ``.npz`` files, Parquet files and folders of Hugging Face datasets."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from lidp._runtime.npz_files import load_arrays, save_arrays
from lidp.arrays import Ints, NamedArrays
from lidp.errors import InvalidData, SealError
from lidp.seals.files import read_json
from lidp.seals.tables import Table, checked_texts, json_text

_PLAIN_FEATURES = ("Value", "ClassLabel", "Sequence", "List", "LargeList", "Translation", "TranslationVariableLanguages")
_MAX_STATE = 2**24
ID = "id"
"""Name of the column of opaque ids in ``candidates.npz``."""


class NpzTable(Table):
    """Arrays of equal length, one per column."""

    train_name = "train.npz"
    candidates_name = "candidates.npz"

    def __init__(self, arrays: NamedArrays) -> None:
        self.arrays = arrays

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            with path.open("rb") as stream:
                with zipfile.ZipFile(stream) as archive:
                    names = [member.removesuffix(".npy") for member in archive.namelist()]
                _, arrays = load_arrays(stream, names)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  # a damaged file makes the readers fail in many ways
            raise InvalidData(f"{path}: not a readable .npz file of plain arrays ({error})") from None
        if ID in arrays:
            raise InvalidData(f"{path}: an array is called {ID!r}, which is the name of the ids of candidates; rename it")
        lengths = {name: len(array) if array.ndim else -1 for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or -1 in lengths.values():
            raise InvalidData(f"{path}: every array needs one entry per record, but the lengths are {lengths}")
        return cls(arrays)

    @property
    def rows(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.arrays)

    def texts(self, column: str) -> list[str]:
        if self.arrays[column].dtype.kind != "U":
            raise InvalidData(f"the array {column!r} holds {self.arrays[column].dtype}, not texts")
        return [str(text) for text in self.arrays[column]]

    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        arrays: dict[str, Any] = {}
        for name, array in self.arrays.items():
            if name == column:
                arrays[name] = np.array(texts, dtype=np.str_)
                continue
            try:
                value = np.array(fill[name]).astype(array.dtype if array.dtype.kind != "U" else np.str_)
            except ValueError:
                raise InvalidData(f"--fill {name}={fill[name]}: the array holds {array.dtype}") from None
            arrays[name] = np.broadcast_to(value, (len(texts), *array.shape[1:]))
        return type(self)(arrays)

    def take(self, rows: Ints) -> Self:
        return type(self)({name: array[rows] for name, array in self.arrays.items()})

    def joined(self, other: Self) -> Self:
        joined: dict[str, Any] = {}
        for name, array in self.arrays.items():
            added = other.arrays[name]
            same = array.dtype == added.dtype or array.dtype.kind == added.dtype.kind == "U"
            if not same or array.shape[1:] != added.shape[1:]:
                raise InvalidData(
                    f"the array {name!r} of the pool has {added.dtype} of shape {added.shape[1:]} per record, "
                    f"that of the data {array.dtype} of shape {array.shape[1:]}"
                )
            joined[name] = np.concatenate([array, added])
        return type(self)(joined)

    def write(self, path: Path) -> None:
        with path.open("xb") as stream:
            save_arrays(stream, self.arrays)

    def records(self) -> Iterator[str]:
        raise NotImplementedError("candidates of .npz data are written as arrays")


class ParquetTable(Table):
    """A Parquet file."""

    train_name = "train.parquet"

    def __init__(self, table: Any) -> None:
        self._table = table

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise InvalidData(f"{path}: reading Parquet needs pyarrow; pip install 'lidp[parquet]'") from None
        with path.open("rb") as stream:
            return cls(pq.read_table(stream))

    @property
    def rows(self) -> int:
        return int(self._table.num_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._table.column_names)

    def texts(self, column: str) -> list[str]:
        return checked_texts(column, self._table.column(column).to_pylist())

    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        return type(self)(filled_arrow(self._table.schema, column, texts, fill))

    def take(self, rows: Ints) -> Self:
        return type(self)(self._table.take(rows))

    def joined(self, other: Self) -> Self:
        import pyarrow as pa

        added = other._table.select(self._table.column_names)
        for field in self._table.schema:
            kind = added.schema.field(field.name).type
            if kind != field.type:
                raise InvalidData(
                    f"the column {field.name!r} of the pool has the type {kind}, that of the data {field.type}"
                )
        return type(self)(pa.concat_tables([self._table, added.cast(self._table.schema)]))

    def write(self, path: Path) -> None:
        import pyarrow.parquet as pq

        with path.open("xb") as stream:
            pq.write_table(self._table, stream)

    def records(self) -> Iterator[str]:
        return (json_text(record) for record in self._table.to_pylist())


class DatasetFolder(Table):
    """A folder that Hugging Face ``datasets`` wrote by ``save_to_disk``."""

    train_name = "train"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            from datasets import Dataset, load_from_disk
        except ImportError:
            raise InvalidData(f"{path}: reading this folder needs datasets; pip install 'lidp[datasets]'") from None
        _require_files_inside(path)
        dataset = load_from_disk(str(path))
        if not isinstance(dataset, Dataset):
            raise InvalidData(f"{path} holds several splits ({', '.join(dataset)}); name the folder of one of them")
        _require_plain(path, dataset.features)
        return cls(dataset.with_format(None))

    @property
    def rows(self) -> int:
        return len(self._dataset)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._dataset.column_names)

    def texts(self, column: str) -> list[str]:
        return checked_texts(column, self._dataset[column])

    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        from datasets import Dataset, DatasetInfo

        features = self._dataset.features
        table = filled_arrow(features.arrow_schema, column, texts, fill)
        return type(self)(Dataset(table, info=DatasetInfo(features=features)))

    def take(self, rows: Ints) -> Self:
        return type(self)(self._dataset.select(rows))

    def joined(self, other: Self) -> Self:
        from datasets import concatenate_datasets

        added = other._dataset.select_columns(self._dataset.column_names)
        for name, kind in self._dataset.features.items():
            if added.features[name] != kind:
                raise InvalidData(f"the column {name!r} of the pool is {added.features[name]}, that of the data {kind}")
        return type(self)(concatenate_datasets([self._dataset, added]))

    def write(self, path: Path) -> None:
        from datasets.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

        shown = is_progress_bar_enabled()
        disable_progress_bar()
        try:
            self._dataset.flatten_indices(keep_in_memory=True).save_to_disk(str(path))
        finally:
            if shown:
                enable_progress_bar()

    def records(self) -> Iterator[str]:
        return (json_text(record) for record in self._dataset)


def _require_files_inside(folder: Path) -> None:
    """Raise ``InvalidData`` if the folder of a dataset names data outside of it, which would be copied into the sealed one."""
    if not (folder / "state.json").exists():
        return  # no dataset, which the package says
    try:
        state = read_json(folder / "state.json", _MAX_STATE)
        entries = [*state["_data_files"], *(state.get("_indices_data_files") or [])]
        files = [folder / str(entry["filename"]) for entry in entries]
    except (SealError, KeyError, TypeError) as error:
        raise InvalidData(f"{folder}: state.json does not list the data files of a dataset ({error})") from None
    for file in files:
        if file.resolve().parent != folder.resolve():
            raise InvalidData(
                f"{folder}: its state.json names {str(file)[:100]}, outside the folder; save the dataset again"
            )


def _require_plain(folder: Path, features: Any) -> None:
    """Raise ``InvalidData`` for columns such as images, whose values may name files elsewhere that ``datasets`` would copy."""
    for column, feature in features.items():
        kinds = {kind for kind in _kinds(features.to_dict()[column]) if not kind.startswith("Array")}
        if other := sorted(kinds - {*_PLAIN_FEATURES}):
            raise InvalidData(
                f"{folder}: the column {column!r} has the type {other[0]}, which may hold names of files; a seal takes numbers and "
                f"texts, got {feature!r:.60}"
            )


def _kinds(plain: Any) -> Iterator[str]:
    """Return the types in the description of a column, at any depth."""
    if isinstance(plain, Mapping):
        if isinstance(plain.get("_type"), str):
            yield plain["_type"]
        for value in plain.values():
            yield from _kinds(value)
    elif isinstance(plain, (list, tuple)):
        for value in plain:
            yield from _kinds(value)


def filled_arrow(schema: Any, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Any:
    """Return an Arrow table of a schema, with one row per text and one value for each other column."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        if field.name == column:
            arrays.append(pa.array(texts, type=field.type))
            continue
        arrays.append(pa.repeat(_scalar(field, fill[field.name]), len(texts)))
    return pa.Table.from_arrays(arrays, schema=schema)


def _scalar(field: Any, text: str) -> Any:
    """Return a text as a value of the type of a column: converted, or read as JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(pa.scalar(text), field.type)
    except pa.ArrowException:
        pass
    try:
        return pa.scalar(json.loads(text), type=field.type)
    except (pa.ArrowException, ValueError, TypeError, RecursionError):
        raise InvalidData(f"--fill {field.name}={text}: the column has the type {field.type}") from None

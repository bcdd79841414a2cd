"""Tables of records in the formats that people train from: JSON Lines, CSV, ``.npz``, Parquet, folders of Hugging Face datasets.

A seal reads a table, adds candidates that have the same columns, and writes some of the rows in an order of its own. Records are
not changed: lines of JSON stay as they are, columns keep their types.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from lidp.arrays import Ints
from lidp.errors import InvalidArgument, InvalidData


class Table(ABC):
    """Records with named columns."""

    train_name: ClassVar[str]
    """name of the file or folder to train on"""
    candidates_name: ClassVar[str] = "candidates.jsonl"

    @classmethod
    @abstractmethod
    def read(cls, path: Path) -> Self:
        """Return the table in a file or folder."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of records."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""

    @abstractmethod
    def texts(self, column: str) -> list[str]:
        """Return a column of texts."""

    @abstractmethod
    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        """Return a table of the same columns, with one row per text, and one value for each other column."""

    @abstractmethod
    def take(self, rows: Ints) -> Self:
        """Return the table of these rows, in this order."""

    @abstractmethod
    def joined(self, other: Self) -> Self:
        """Return the rows of this table and then those of another one.

        Raises:
            InvalidData: if it has other columns, or columns of other types.
        """

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write the table to a new file or folder."""

    @abstractmethod
    def records(self) -> Iterator[str]:
        """Return each record as a JSON object, for the list of candidates."""

    def require_text(self, column: str) -> None:
        """Raise ``InvalidData`` unless there is a column of this name."""
        if column not in self.columns:
            names = ", ".join(self.columns) or "none"
            raise InvalidData(
                f"the data has no column {column!r} for the text; its columns are {names}; name it by --text-field"
            )

    def require_same_columns(self, other: Table) -> None:
        """Raise ``InvalidData`` if another table has other columns."""
        missing = [name for name in self.columns if name not in other.columns]
        extra = [name for name in other.columns if name not in self.columns]
        if missing or extra:
            problem = f"the pool has no column {missing[0]!r}" if missing else f"the pool has a further column {extra[0]!r}"
            raise InvalidData(f"{problem}; a candidate needs exactly the columns of the data")


def check_fill(columns: Sequence[str], text: str, fill: Mapping[str, str]) -> None:
    """Raise ``InvalidData`` unless ``fill`` names exactly the columns other than the text."""
    for name in columns:
        if name != text and name not in fill:
            raise InvalidData(
                f"the data has a column {name!r} beside the text; say what canaries have there: --fill {name}=VALUE"
            )
    for name in fill:
        if name == text or name not in columns:
            raise InvalidData(f"--fill {name}=...: the data has no such column beside the text")


class JsonLines(Table):
    """One JSON object per line. Lines end at line feeds only: other line separators of Unicode may occur in texts."""

    train_name = "train.jsonl"

    def __init__(self, lines: list[bytes], columns: tuple[str, ...], first: Mapping[str, Any]) -> None:
        self._lines = lines
        self._columns = columns
        self._first = first

    @classmethod
    def read(cls, path: Path) -> Self:
        columns: dict[str, None] = {}
        lines: list[bytes] = []
        first: Mapping[str, Any] = {}
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                stripped = line.strip(b" \t\r\n").removeprefix(b"\xef\xbb\xbf" if number == 1 else b"")
                if stripped:
                    record = _json_object(stripped, path, number)
                    columns.update(dict.fromkeys(record))
                    first = first or record
                    lines.append(stripped)
        return cls(lines, tuple(columns), first)

    @property
    def rows(self) -> int:
        return len(self._lines)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def texts(self, column: str) -> list[str]:
        return checked_texts(column, [json.loads(line).get(column) for line in self._lines])

    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        others = {name: self._value(name, value) for name, value in fill.items()}
        lines = [
            json.dumps({name: text if name == column else others[name] for name in self.columns}).encode() for text in texts
        ]
        return type(self)(lines, self._columns, self._first)

    def _value(self, name: str, text: str) -> Any:
        """Return the value to fill in: a text where the first record has one, otherwise JSON."""
        if isinstance(self._first.get(name), str):
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    def take(self, rows: Ints) -> Self:
        return type(self)([self._lines[row] for row in rows.tolist()], self._columns, self._first)

    def joined(self, other: Self) -> Self:
        return type(self)(self._lines + other._lines, self._columns, self._first)

    def write(self, path: Path) -> None:
        with path.open("xb") as stream:
            stream.writelines(line + b"\n" for line in self._lines)

    def records(self) -> Iterator[str]:
        return (line.decode() for line in self._lines)


def checked_texts(column: str, values: Iterable[Any]) -> list[str]:
    """Return the values of a column, which must be texts in every record."""
    texts = list(values)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise InvalidData(f"{column!r} must be a text in every record, got {text!r:.60} in record {number:,}")
    return texts


def _json_object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"{path}, line {number:,}: not JSON ({str(error)[:100]})") from None
    if not isinstance(record, dict):
        raise InvalidData(f"{path}, line {number:,}: expected a JSON object, got {type(record).__name__}")
    return record


class CsvTable(Table):
    """Comma-separated values with a header. Cells are texts, with quotes and line breaks kept."""

    train_name = "train.csv"

    def __init__(self, header: list[str], cells: list[list[str]]) -> None:
        self._header = header
        self._cells = cells

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            with path.open(newline="", encoding="utf-8-sig") as stream:
                lines = csv.reader(stream, strict=True)
                header = next(lines, [])
                cells = [cls._checked(line, header, path, lines.line_num) for line in lines if line]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidData(f"{path}: not a readable .csv file ({error}); JSON Lines has no such limits") from None
        if len(set(header)) < len(header):
            raise InvalidData(f"{path}: two columns have the same name; rename one")
        return cls(header, cells)

    @staticmethod
    def _checked(line: list[str], header: list[str], path: Path, number: int) -> list[str]:
        if len(line) != len(header):
            raise InvalidData(f"{path}, line {number:,}: {len(line)} cells, and the header has {len(header)}")
        return line

    @property
    def rows(self) -> int:
        return len(self._cells)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._header)

    def texts(self, column: str) -> list[str]:
        at = self._header.index(column)
        return [line[at] for line in self._cells]

    def filled(self, column: str, texts: Sequence[str], fill: Mapping[str, str]) -> Self:
        return type(self)(
            self._header, [[text if name == column else fill[name] for name in self._header] for text in texts]
        )

    def take(self, rows: Ints) -> Self:
        return type(self)(self._header, [self._cells[row] for row in rows.tolist()])

    def joined(self, other: Self) -> Self:
        order = [other._header.index(name) for name in self._header]
        cells = other._cells if order == sorted(order) else [[line[at] for at in order] for line in other._cells]
        return type(self)(self._header, self._cells + cells)

    def write(self, path: Path) -> None:
        with path.open("x", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([self._header, *self._cells])

    def records(self) -> Iterator[str]:
        return (json.dumps(dict(zip(self._header, line, strict=True))) for line in self._cells)


def read_table(path: str | Path) -> Table:
    """Return the table in a file or in a folder of Hugging Face datasets.

    Raises:
        InvalidData: if it cannot be read, has no records, or has another format.
    """
    from lidp.seals.array_tables import DatasetFolder, NpzTable, ParquetTable

    kinds: dict[str, type[Table]] = {".jsonl": JsonLines, ".csv": CsvTable, ".npz": NpzTable, ".parquet": ParquetTable}
    path = Path(path)
    try:
        kind = DatasetFolder if path.is_dir() else kinds.get(path.suffix.lower())
        if kind is None:
            raise InvalidData(f"{path}: expected .jsonl, .csv, .npz, .parquet or a folder of datasets, got {path.suffix!r}")
        table = kind.read(path)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, ImportError) as error:  # of the packages that read
        if isinstance(error, InvalidArgument):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidData(f"{path}: {reason}") from None
    if not table.rows:
        raise InvalidData(f"{path}: there is no record in it")
    return table


def json_text(value: Any) -> str:
    """Return a record of plain values as JSON; dates, times and decimals as their text.

    Raises:
        InvalidData: for bytes and other values that JSON does not have.
    """
    return json.dumps(value, default=_as_text)


def _as_text(value: Any) -> str:

    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, dt.timedelta)):
        return str(value)
    raise InvalidData(
        f"a value of type {type(value).__name__} cannot be written to the list of candidates, which is JSON; "
        "leave the column out, or store its values as text"
    )


__all__ = ["CsvTable", "JsonLines", "Table", "check_fill", "checked_texts", "json_text", "read_table"]

"""Tables of JSON Lines and CSV: records stay as they are."""

import csv
import datetime as dt
import json

import numpy as np
import pytest

from lidp.errors import InvalidData
from lidp.seals.tables import check_fill, json_text, read_table


def rewritten(path, rows):
    """The content of a file after the table was read, some rows were taken, and it was written again."""
    target = path.with_name("again" + path.suffix)
    read_table(path).take(np.array(rows)).write(target)
    return target.read_bytes()


def test_lines_of_json_stay_as_they_are(tmp_path):
    lines = [
        '{"text": "a\u2028b\u0085c", "n": 1.0}',
        '{ "n":1e2,"text":"\\ud83d\\ude00"}',
        '{"text": "z", "n": 12345678901234567890}',
    ]
    path = tmp_path / "x.jsonl"
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\n\n").encode())
    table = read_table(path)
    assert (table.rows, table.columns) == (3, ("text", "n"))
    assert table.texts("text") == ["a\u2028b\u0085c", "\U0001f600", "z"]
    assert rewritten(path, [2, 0, 1]) == "".join(f"{lines[row]}\n" for row in (2, 0, 1)).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1}\n[1]\n', "line 2: expected a JSON object, got list"),
        (b'{"a": 1}\n{"a": \n', "line 2: not JSON"),
        (b'{"a": "\xff"}\n', "line 1: not JSON"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b"\n \n", "no record"),
    ],
)
def test_damaged_lines_are_named(tmp_path, content, reason):
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(InvalidData, match=reason):
        read_table(tmp_path / "x.jsonl")


def test_filled_lines_keep_the_types_of_the_first_record(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"label": 1, "text": "a", "tag": "7"}\n', encoding="utf-8")
    made = read_table(path).filled("text", ["new"], {"label": "0", "tag": "3"})
    assert [json.loads(record) for record in made.records()] == [{"label": 0, "text": "new", "tag": "3"}]


def test_cells_keep_quotes_and_line_breaks(tmp_path):
    path = tmp_path / "x.csv"
    cells = [["text", "y"], ['he said "hi",\nand left', "007"], ["", " 1.50 "], ["b\u2028", "x"]]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(cells)
    again = rewritten(path, [1, 0, 2]).decode().splitlines(keepends=False)
    with (tmp_path / "again.csv").open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream)) == [cells[0], cells[2], cells[1], cells[3]]
    assert again[0] == "text,y"


def test_columns_of_a_csv_pool_may_have_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n3,4\n")
    joined = read_table(tmp_path / "a.csv").joined(read_table(tmp_path / "b.csv"))
    assert [json.loads(record) for record in joined.records()] == [{"x": "1", "y": "2"}, {"x": "4", "y": "3"}]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("x,y\n1\n", "line 2: 1 cells, and the header has 2"),
        ("x,x\n1,2\n", "same name"),
        ('x,y\n"1,2\n', "not a readable .csv"),
        ("x,y\n", "no record"),
        ("", "no record"),
    ],
)
def test_damaged_csv_is_refused(tmp_path, content, reason):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(InvalidData, match=reason):
        read_table(tmp_path / "x.csv")


def test_other_formats_and_missing_files_are_refused(tmp_path):
    with pytest.raises(InvalidData, match="expected .jsonl, .csv, .npz, .parquet or a folder"):
        read_table(tmp_path / "x.txt")
    with pytest.raises(InvalidData, match="No such file"):
        read_table(tmp_path / "x.jsonl")


def test_fill_names_every_column_but_the_text():
    check_fill(["text", "y"], "text", {"y": "1"})
    with pytest.raises(InvalidData, match="--fill y=VALUE"):
        check_fill(["text", "y"], "text", {})
    with pytest.raises(InvalidData, match="--fill z=...: the data has no such column"):
        check_fill(["text", "y"], "text", {"y": "1", "z": "2"})


def test_json_text_of_dates_and_bytes():
    assert json_text({"d": dt.date(2020, 1, 2)}) == '{"d": "2020-01-02"}'
    with pytest.raises(InvalidData, match="bytes cannot be written"):
        json_text({"b": b"1"})

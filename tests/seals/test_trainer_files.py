"""The files of a seal as trainers and scorers read and write them: what is wrong with one is said in one line."""

import csv
import json

import numpy as np
import pytest

from lidp.canaries.gradients import GradientCanary
from lidp.errors import InvalidData
from lidp.seals.trainer_files import PlantingFile, read_candidates, write_scores

PLAIN = {"format": 1, "seed": 5, "canary": "dirac-gradient", "candidates": ["a", "b", "c"], "inserted": ["c", "a"]}


def test_a_planting_file_says_who_is_inserted(tmp_path):
    path = tmp_path / "planting.json"
    path.write_text(json.dumps(PLAIN), encoding="utf-8")
    file = PlantingFile.read(path)
    assert file == PlantingFile(5, GradientCanary.DIRAC_GRADIENT, ("a", "b", "c"), ("c", "a"))
    assert file.is_inserted.tolist() == [True, False, True]


def test_scores_are_read_back_as_written(tmp_path):
    scores = np.array([0.1, -1e-300, 1 / 3])
    write_scores(tmp_path / "scores.csv", ["a", 'b"', "c,d"], scores)
    with (tmp_path / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "score"]
    assert [row[0] for row in rows[1:]] == ["a", 'b"', "c,d"]
    assert [float(row[1]) for row in rows[1:]] == scores.tolist()


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InvalidData, match=r"nowhere.scores.csv: cannot be written: No such file"):
        write_scores(tmp_path / "nowhere" / "scores.csv", ["a"], np.zeros(1))


def test_candidates_that_are_records_have_their_text_in_a_column(tmp_path):
    path = tmp_path / "candidates.jsonl"
    path.write_text('{"id": "a", "record": {"body": "one\\u2028two", "year": 3}}\n\n', encoding="utf-8")
    assert read_candidates(path, "body") == (("a",), ("one\u2028two",))
    with pytest.raises(InvalidData, match="line 1: candidate a has no text; give the column that holds it as text_field="):
        read_candidates(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no candidates in it"),
        (b"{", "line 1: not JSON"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b"[1]", "line 1: a candidate needs an id"),
        (b'{"id": 3, "text": "x"}', "line 1: a candidate needs an id"),
        (b'{"id": "\\u001b[2J"}', r"candidate \\x1b\[2J has no text"),
        (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "an id occurs twice"),
        (b"\xff\xfe", "not text in UTF-8"),
    ],
)
def test_a_wrong_file_of_candidates_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "candidates.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        read_candidates(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "format 1, got format None"),
        (json.dumps(PLAIN | {"format": 2}), "format 1, got format 2"),
        (json.dumps(PLAIN | {"seed": -1}), "seed must be"),
        (json.dumps(PLAIN | {"seed": 2**62}), "seed must be"),
        (json.dumps(PLAIN | {"seed": True}), "seed must be"),
        (json.dumps(PLAIN | {"canary": "loud"}), "canary must be one of random-gradient, dirac-gradient, got 'loud'"),
        (json.dumps(PLAIN | {"candidates": []}), "no candidates"),
        (json.dumps(PLAIN | {"candidates": [1, 2]}), "candidates must be a list of ids"),
        (json.dumps(PLAIN | {"candidates": ["a", "a"]}), "candidates has an id twice"),
        (json.dumps(PLAIN | {"inserted": ["x\x1b[2J"]}), r"1 inserted ids are no candidates, such as 'x\\x1b\[2J'"),
    ],
)
def test_a_wrong_planting_file_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "planting.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidData, match=message) as caught:
        PlantingFile.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_planting_file_is_named(tmp_path):
    with pytest.raises(InvalidData, match="nowhere.json: cannot be read: No such file"):
        PlantingFile.read(tmp_path / "nowhere.json")

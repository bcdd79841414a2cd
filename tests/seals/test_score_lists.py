"""Lists of scores: joined by id, and refused with the name of the first offender."""

import json

import numpy as np
import pytest

from lidp.errors import InvalidScores, SealError
from lidp.seals.score_lists import read_score_list

NAMES = [f"{number:016x}" for number in (7, 3, 9, 1)]
IDS = np.array(NAMES, dtype="S16")
SCORES = [0.5, -1.25, 1e-300, 3.0]


def csv_file(path, rows, header="id,score"):
    path.write_text(header + "\n" + "".join(f"{name},{score}\n" for name, score in rows), encoding="utf-8")
    return path


def test_every_format_in_any_order(tmp_path):
    rows = list(zip(NAMES, SCORES, strict=True))
    mixed = [rows[at] for at in (2, 0, 3, 1)]
    csv_file(tmp_path / "a.csv", mixed)
    quoted = "".join(f'"x\ny",{score},"{name}"\r\n' for name, score in mixed)
    (tmp_path / "b.csv").write_text("\ufeffnote,score,id\r\n" + quoted, encoding="utf-8")
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"id": n, "score": s, "more": "\u2028"}) + "\n" for n, s in mixed))
    np.savez(tmp_path / "d.npz", id=np.array([n for n, _ in mixed]), score=np.array([s for _, s in mixed]))
    np.savez(tmp_path / "e.npz", id=np.array([n for n, _ in mixed], dtype="S16"), score=np.array([s for _, s in mixed]))
    for name in ("a.csv", "b.csv", "c.jsonl", "d.npz", "e.npz"):
        assert read_score_list(tmp_path / name, IDS).tolist() == SCORES, name


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (zip(NAMES[:2], SCORES, strict=False), r"candidate '0{15}9' has no score \(the first of 2 missing candidates\)"),
        (zip([*NAMES, NAMES[1]], [*SCORES, 0], strict=True), "candidate '0{15}3' has several scores;?"),
        (zip([*NAMES, "f" * 16], [*SCORES, 0], strict=True), "'f{16}' is no candidate of this seal"),
        (zip([*NAMES, "f" * 17], [*SCORES, 0], strict=True), "'f{17}' is no candidate of this seal"),
        (zip([*NAMES, "x\x1b[2J"], [*SCORES, 0], strict=True), "is no candidate of this seal"),
        (zip([*NAMES, "é"], [*SCORES, 0], strict=True), "'é' is no candidate of this seal"),
        (zip(NAMES, [*SCORES[:3], "nan"], strict=True), "the score of '0{15}1' is nan"),
        (zip(NAMES, ["inf", "-inf", 0, 0], strict=True), r"is inf \(the first of 2 such scores\)"),
        (zip(NAMES, ["1,5", 0, 0, 0], strict=True), "line 2: 3 cells"),
        (zip(NAMES, ["high", 0, 0, 0], strict=True), "line 2: score must be a number, got 'high'"),
        ([], "no scores in it"),
    ],
)
def test_wrong_rows_are_named(tmp_path, rows, reason):
    with pytest.raises(InvalidScores, match=reason) as error:
        read_score_list(csv_file(tmp_path / "s.csv", rows), IDS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("s.csv", b"", "found nothing"),
        ("s.csv", b"name,score\na,1\n", "expected the columns id and score; found name, score"),
        ("s.csv", b"id,id,score\na,b,1\n", "expected the columns id and score"),
        ("s.csv", b"\xff\xfe\x00", "not a readable .csv"),
        ("s.csv", b'id,score\n"a', "not a readable .csv"),
        ("s.jsonl", b"", "no scores"),
        ("s.jsonl", b'{"score": 1}\n', "there is no id"),
        ("s.jsonl", b'{"id": 7, "score": 1}\n', "there is no id"),
        ("s.jsonl", b'{"id": "a"}\n', "score must be a number, got None"),
        ("s.jsonl", b'{"id": "a", "score": "1"}\n', "score must be a number"),
        ("s.jsonl", b'{"id": "a", "score": true}\n', "score must be a number, got True"),
        ("s.jsonl", b'{"id": "a\\u0000", "score": 1}\n', "null character"),
        ("s.jsonl", b"[1]\n", "expected an object"),
        ("s.jsonl", b"[" * 100_000, "nested too deeply"),
        ("s.jsonl", b'{"id": "a", "score": ' + b"1" * 5000 + b"}", "not the JSON"),
        ("s.npz", b"PK", "not a readable .npz"),
        ("s.txt", b"", "expected scores as .csv, .jsonl or .npz"),
    ],
)
def test_other_content_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((InvalidScores, SealError), match=reason) as error:
        read_score_list(tmp_path / name, IDS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"id": np.array(NAMES, dtype=object), "score": np.array(SCORES)}, "Python objects"),
        ({"id": np.array(NAMES)}, "expected the arrays id and score; found id"),
        ({"id": np.arange(4), "score": np.array(SCORES)}, "id must hold texts"),
        ({"id": np.array(NAMES), "score": np.zeros((4, 2))}, "one of each per candidate"),
        ({"id": np.array([*NAMES[:3], "é"]), "score": np.array(SCORES)}, "other characters"),
    ],
)
def test_other_arrays_are_refused(tmp_path, arrays, reason):
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(InvalidScores, match=reason):
        read_score_list(tmp_path / "s.npz", IDS)


def test_missing_files_are_refused(tmp_path):
    for name in ("s.csv", "s.jsonl", "s.npz"):
        with pytest.raises((InvalidScores, SealError), match="No such file"):
            read_score_list(tmp_path / name, IDS)

"""``lidp resume``."""

import json
import sqlite3

import pytest

from tests.cli.invoke import lidp
from tests.pages import ROOT


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_store_is_resumed_bounded_and_refused(capsys, tmp_path):
    store = tmp_path / "a.db"
    arguments = (
        "audit",
        "tests.sample_targets:LEAKY",
        "--epsilon",
        1,
        "--delta",
        "1e-5",
        "--canaries",
        8,
        "--trials",
        50,
        "--store",
        store,
    )
    first = lidp(capsys, *arguments, "--json")
    again = lidp(capsys, "resume", store, "--json")
    assert first[0] == again[0] == 1
    assert json.loads(first[1])["bound"] == json.loads(again[1])["bound"]
    code, out, _ = lidp(capsys, "bound", store, "--json")
    assert code == 0
    assert json.loads(out)["epsilon"] == json.loads(first[1])["bound"]["epsilon"]
    code, _, err = lidp(capsys, *arguments, "--seed", 5)
    assert code == 2
    assert "seed was 0, is 5" in err


def test_a_damaged_store_is_one_line(capsys, tmp_path):
    store = tmp_path / "a.db"
    lidp(capsys, "audit", "tests.sample_targets:LEAKY", "--epsilon", 1, "--canaries", 2, "--trials", 9, "--store", store)
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM scores WHERE trial = 3")
    connection.close()
    for command in ("bound", "resume"):
        code, _, err = lidp(capsys, command, store)
        assert code == 2
        assert "is damaged" in err
        assert err.count("\n") == 1


BAD = [
    (["resume", "none.db"], "no such store"),
    (["resume", "README.md"], "not a store"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = lidp(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err

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


def test_a_finished_audit_is_extended(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = ("--epsilon", 9, "--canaries", 8, "--trials", 5)
    lidp(capsys, "audit", "tests.sample_targets:LEAKY", *options, "--store", store)
    _, out, _ = lidp(capsys, "resume", store, "--trials", 12, "--json")
    assert json.loads(out)["trials"] == json.loads(out)["planned_trials"] == 12
    code, _, err = lidp(capsys, "resume", store, "--trials", 7)
    assert (code, err.count("\n")) == (2, 1)
    assert "at least the 12 that are planned already, got 7" in err


def test_an_audit_of_a_fixed_size_is_not_extended(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = ("--epsilon", 9, "--canaries", 8, "--trials", 5, "--method", "one-run")
    lidp(capsys, "audit", "tests.sample_targets:LEAKY", *options, "--store", store)
    code, _, err = lidp(capsys, "resume", store, "--trials", 12)
    assert (code, err.count("\n")) == (2, 1)
    assert "one-run is valid only for the 5 trials that were planned" in err

"""Forms of ``lidp audit`` that other commands have replaced."""

import pytest

from lidp.cli.replaced_commands import replacement
from tests.cli.invoke import lidp

REPLACED = {
    "audit dpsgd": "lidp audit-dpsgd",
    "audit dpsgd --epsilon 2": "lidp audit-dpsgd",
    "audit dpsgd --epsilon 2 --preset fmnist-mlp": "lidp audit-dpsgd",
    "audit --epsilon 2 --fault little-noise dpsgd": "lidp audit-dpsgd",
    "audit --command x{data}{out} --data a.npz --epsilon 2": "lidp audit-program",
    "audit --command=x{data}{out} --epsilon 2": "lidp audit-program",
    "audit mine.py:pair --pair --epsilon 1": "lidp audit-pair",
    "audit catalogue --all --epsilon 1": "lidp audit-catalogue",
    "audit catalogue --epsilon 1": "lidp audit-catalogue",
}


@pytest.mark.parametrize("line", REPLACED)
def test_a_replaced_form_names_the_new_command_in_one_line(capsys, line):
    code, out, err = lidp(capsys, *line.split())
    assert (code, out) == (2, "")
    assert err.startswith("lidp: lidp audit ")
    assert f"is now {REPLACED[line]}" in err
    assert err.count("\n") == 1


def test_a_command_that_exists_is_not_replaced(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert replacement(["bound", "dpsgd"]) is None
    assert replacement(["audit", "gaussian", "--epsilon", "x"]) is None
    words = "audit gaussian --epsilon 9 --delta 1e-5 --trials 2 --quiet --store dpsgd"
    assert lidp(capsys, *words.split())[0] == 0

"""``lidp cite``: every method has its works, and BibTeX is well formed."""

import re

import pytest

from lidp import METHODS
from lidp.citations import BEHIND, WORKS, bibtex
from lidp.cli.app import run


def test_every_method_rests_on_something():
    assert set(BEHIND) == set(METHODS)
    assert {key for keys in BEHIND.values() for key in keys} == set(WORKS)


@pytest.mark.parametrize("key", WORKS)
def test_bibtex_is_well_formed(key):
    text = WORKS[key]
    assert re.match(rf"@[a-z]+{{{key},\n", text)
    assert text.count("{") == text.count("}")
    fields = re.findall(r"^  (\w+) +=", text, flags=re.MULTILINE)
    assert {"title", "author", "year"} <= set(fields)
    assert len(fields) == len(set(fields))


def test_works_are_named_once():
    text = bibtex(["coin-wager", "one-run", "lifted-betting"])
    assert text.count("@") == 3
    assert text.index("steinke") < text.index("pillutla")


@pytest.mark.parametrize("method", METHODS)
def test_works_behind_other_methods_are_not_named(method):
    assert re.findall(r"^@\w+{(\w+),", bibtex([method]), flags=re.MULTILINE) == list(BEHIND[method])


def test_one_canary_and_clopper_pearson_rest_on_clopper_and_pearson():
    assert "pillutla" not in bibtex(["clopper-pearson"])


def test_the_command(capsys, tmp_path):
    assert run(["cite"]) == 0
    assert capsys.readouterr().out.count("@") == len(WORKS)
    store = str(tmp_path / "a.db")
    assert (
        run(["audit", "gaussian", "--epsilon", "5", "--delta", "1e-5", "--trials", "3", "--store", store, "--quiet"]) == 0
    )
    capsys.readouterr()
    assert run(["cite", store]) == 0
    assert capsys.readouterr().out == bibtex(["coin-wager"]) + "\n"
    assert run(["cite", "nothing"]) == 2
    assert "is neither a method" in capsys.readouterr().err
    (tmp_path / "b").write_text("text")
    assert run(["cite", str(tmp_path / "b")]) == 2

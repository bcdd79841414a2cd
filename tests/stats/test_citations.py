"""Works and ``lidp cite``: every method lists its works, and their BibTeX is well formed."""

import re

import pytest

from lidp import METHODS, ClopperPearson, CoinWager, InvalidArgument, LiftedBetting, OneRun, Work
from lidp.cli.app import run
from lidp.stats.citations import bibtex

WORKS = {work.key: work for method in METHODS.values() for work in method.works}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_works_and_a_summary(name):
    assert METHODS[name].works
    assert re.fullmatch(r"[A-Z][^.]*\.", METHODS[name].summary)


def test_no_work_is_written_twice():
    assert len({work for method in METHODS.values() for work in method.works}) == len(WORKS)


@pytest.mark.parametrize("key", WORKS)
def test_entry_has_title_author_and_year_once(key):
    text = WORKS[key].bibtex
    assert re.match(rf"@[a-z]+{{{key},\n", text)
    fields = re.findall(r"^  (\w+) +=", text, flags=re.MULTILINE)
    assert {"title", "author", "year"} <= set(fields)
    assert len(fields) == len(set(fields))


def test_bibtex_prints_each_work_once_in_the_order_of_the_methods():
    text = bibtex([CoinWager, OneRun(), LiftedBetting])
    assert text.count("@") == 3
    assert text.index("steinke") < text.index("pillutla")


@pytest.mark.parametrize("name", METHODS)
def test_bibtex_prints_no_works_of_other_methods(name):
    method = METHODS[name]
    assert re.findall(r"^@\w+{(\w+),", bibtex([method]), flags=re.MULTILINE) == [work.key for work in method.works]


def test_clopper_pearson_does_not_cite_the_lifted_paper():
    assert "pillutla" not in bibtex([ClopperPearson])


@pytest.mark.parametrize(
    "text", ["", "Pillutla et al. 2023", "@misc{key, title = {A}", "@misc{, title = {A}}", "misc{key, a = {}}"]
)
def test_text_that_is_no_bibtex_entry_is_refused(text):
    with pytest.raises(InvalidArgument, match="bibtex must be one entry"):
        Work(text)


def test_command_prints_works_of_methods_and_of_stores(capsys, tmp_path):
    assert run(["cite"]) == 0
    assert capsys.readouterr().out.count("@") == len(WORKS)
    store = str(tmp_path / "a.db")
    audit = ["audit", "gaussian", "--epsilon", "5", "--delta", "1e-5", "--trials", "3", "--store", store, "--quiet"]
    assert run(audit) == 0
    capsys.readouterr()
    assert run(["cite", store]) == 0
    assert capsys.readouterr().out == bibtex([CoinWager]) + "\n"


def test_command_refuses_what_is_neither_a_method_nor_a_store(capsys, tmp_path):
    assert run(["cite", "nothing"]) == 2
    assert "is neither a method" in capsys.readouterr().err
    (tmp_path / "b").write_text("text")
    assert run(["cite", str(tmp_path / "b")]) == 2

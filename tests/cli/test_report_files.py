"""A report never replaces a store."""

from pathlib import Path

import pytest

from tests.cli.invoke import lidp
from tests.pages import ROOT


@pytest.mark.parametrize(
    "report",
    ["n.db", "N.db", "sub/../n.db", "link.db", "folder/n.db", *(f"n.db{end}" for end in ("-wal", "-shm", "-lock"))],
)
def test_a_report_never_replaces_the_store(capsys, tmp_path, monkeypatch, report):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    Path("sub").mkdir()
    Path("link.db").symlink_to("n.db")
    Path("folder").symlink_to(".")
    words = ("audit", "tests.sample_targets:SILENT", "--epsilon", 9, "--trials", 3, "--store", "n.db", "--quiet")
    code, out, err = lidp(capsys, *words, "--report", report)
    assert (code, out) == (2, "")
    assert "a report must not replace" in err
    assert not Path("n.db").exists()  # nothing was run
    assert lidp(capsys, *words)[0] == 0
    kept = Path("n.db").read_bytes()
    for again in (
        (*words, "--report", report),
        ("resume", "n.db", "--quiet", "--report", report),
        ("report", "n.db", "-o", report),
        ("compare", "n.db", "n.db", "-o", report),
    ):
        assert lidp(capsys, *again)[0] == 2, again
    assert Path("n.db").read_bytes() == kept


def test_a_report_never_replaces_what_a_linked_store_leads_to(capsys, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "n.db")
    words = (
        "audit",
        "tests.sample_targets:SILENT",
        "--epsilon",
        9,
        "--trials",
        3,
        "--quiet",
        "--store",
        tmp_path / "link.db",
    )
    for report in ("n.db", "n.db-wal", "link.db-lock"):
        code, _, err = lidp(capsys, *words, "--report", tmp_path / report)
        assert code == 2
        assert "belongs to the store" in err


def test_the_folders_of_a_store_and_of_a_report_are_created_alike(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    words = ("audit", "tests.sample_targets:SILENT", "--epsilon", 9, "--trials", 3, "--quiet")
    assert lidp(capsys, *words, "--store", "new/a/n.db", "--report", "new/b/n.json")[0] == 0
    assert Path("new/b/n.json").is_file()
    assert lidp(capsys, "report", "new/a/n.db", "-o", "new/c/n.html")[0] == 0
    assert Path("new/c/n.html").is_file()


STARTS = {"n.html": "<!doctype html>", "n.md": "## ", "n.json": "{", "n.xml": "<?xml", "n.svg": "<svg "}


@pytest.mark.parametrize("name", STARTS)
def test_the_ending_of_a_report_is_its_format_for_audits_and_for_stores(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    words = ("audit", "tests.sample_targets:SILENT", "--epsilon", 9, "--trials", 200, "--quiet", "--store", "n.db")
    assert lidp(capsys, *words, "--report", name)[0] == 0
    first = Path(name).read_text(encoding="utf-8")
    assert first.startswith(STARTS[name])
    assert lidp(capsys, "report", "n.db", "-o", name)[0] == 0
    second = Path(name).read_text(encoding="utf-8")
    assert second.splitlines()[0] == first.splitlines()[0]


def test_the_format_of_a_report_may_be_stated_for_any_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    lidp(capsys, "audit", "tests.sample_targets:SILENT", "--epsilon", 9, "--trials", 3, "--quiet", "--store", "n.db")
    code, _, err = lidp(capsys, "report", "n.db", "-o", "n.pdf")
    assert code == 2
    assert "not .pdf" in err
    assert not Path("n.pdf").exists()
    assert lidp(capsys, "report", "n.db", "--format", "markdown", "-o", "summary")[0] == 0
    assert Path("summary").read_text(encoding="utf-8").startswith("## ")
    assert lidp(capsys, "report", "n.db", "--format", "badge")[0] == 0
    assert Path("n.svg").is_file()

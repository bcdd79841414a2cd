"""``lidp report`` and ``lidp compare`` as a user types them."""

import json
from pathlib import Path

import pytest

from lidp import result_of
from lidp.cli.app import run
from tests.report.test_page import Page

ROOT = Path(__file__).parent.parent.parent


def lidp(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def store(tmp_path, capsys):
    path = tmp_path / "a.db"
    common = ("--epsilon", 1, "--delta", "1e-5", "--canaries", 8, "--trials", 60, "--quiet")
    assert lidp(capsys, "audit", "tests.sample_targets:LEAKY", *common, "--store", path)[0] == 1
    return path


def test_a_store_becomes_a_page(capsys, store, tmp_path):
    code, out, err = lidp(capsys, "report", store, "-o", tmp_path / "audit.html")
    assert (code, err) == (0, "")
    assert out.strip().endswith("audit.html: refuted")
    page = Page((tmp_path / "audit.html").read_text(encoding="utf-8"))
    assert float(page.values["bound.epsilon"][0][0]) == result_of(store).bound.epsilon
    assert "lidp audit --epsilon 1.0" in page.text
    code, out, _ = lidp(capsys, "report", store)
    assert code == 0
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == (tmp_path / "audit.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "file", "start"),
    [
        ("markdown", "a.md", "## ❌ leaky: refuted"),
        ("json", "a.json", "{"),
        ("junit", "a.xml", "<?xml"),
        ("html", "a.html", "<!doctype"),
    ],
)
def test_a_store_becomes_a_report_of_any_format(capsys, store, tmp_path, name, file, start):
    code, out, _ = lidp(capsys, "report", store, "--format", name)
    assert code == 0
    assert out.strip().endswith(f"{file}: refuted")
    assert (tmp_path / file).read_text(encoding="utf-8").startswith(start)
    other = tmp_path / f"other-{file}"
    assert lidp(capsys, "report", store, "--format", name, "-o", other)[0] == 0
    if name != "json":  # which says how long reading took
        first, second = ((tmp_path / path).read_text(encoding="utf-8").partition("time=")[0] for path in (file, other))
        assert first == second


def test_an_unknown_format_is_refused(capsys, store):
    code, out, err = lidp(capsys, "report", store, "--format", "pdf")
    assert (code, out) == (2, "")
    assert "format" in err
    assert "markdown" in err
    assert len(err.strip().splitlines()) == 1


def test_the_report_of_an_audit_is_a_page_or_json(capsys, tmp_path):
    common = ("audit", "tests.sample_targets:LEAKY", "--epsilon", 1, "--canaries", 8, "--trials", 40, "--quiet", "--report")
    assert lidp(capsys, *common, tmp_path / "r.html")[0] == 1
    Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert lidp(capsys, *common, tmp_path / "r.json")[0] == 1
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "refuted"


def test_side_by_side(capsys, store, tmp_path):
    other = tmp_path / "b.db"
    lidp(
        capsys, "audit", "tests.sample_targets:SILENT", "--epsilon", 1, "--delta", "1e-5", "--trials", 30, "--store", other
    )
    code, out, _ = lidp(capsys, "compare", store, other, "-o", tmp_path / "compare.html")
    assert code == 0
    assert "leaky" in out
    assert "silent" in out
    assert "not refuted" in out
    assert "at most 0.1" in out
    Page((tmp_path / "compare.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ["report", "compare"])
def test_what_is_wrong_is_said_in_one_line(capsys, store, tmp_path, command):
    more = [store] if command == "compare" else []
    text = tmp_path / "text.db"
    text.write_text("hello")
    for arguments, words in (
        ([tmp_path / "none.db"], "there is no such store"),
        ([text], "is not a store of an audit"),
        ([store, "-o", text / "a.html"], "its folder cannot be created"),
        ([store, "-o", tmp_path], "is a folder"),
        ([store, "-o", store], "is the store of an audit, which a report must not replace"),
        ([], "Missing argument"),
    ):
        code, out, err = lidp(capsys, command, *(more if arguments else []), *arguments)
        assert code == 2
        assert out == ""
        assert words in err
        assert len(err.strip().splitlines()) == 1


def test_one_store_is_no_comparison(capsys, store):
    code, _, err = lidp(capsys, "compare", store)
    assert code == 2
    assert "at least two" in err

"""What the documents show is what happens."""

import doctest
import json
import re
from pathlib import Path

import pytest

from lidp.cli.app import run
from lidp.reproduce import EXPERIMENTS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_the_python_session_of_the_readme():
    sessions = blocks(README, "pycon")
    assert sessions
    names: dict[str, object] = {}
    for session in sessions:  # later ones go on where earlier ones ended
        test = doctest.DocTestParser().get_doctest(session, names, "README", "README.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        output = []
        runner.run(test, out=output.append, clear_globs=False)
        names = test.globs
        assert runner.failures == 0, "".join(output)


def test_the_commands_of_the_readme(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    sessions = blocks(README, "console")
    assert sessions
    for session in sessions:
        for command, shown in re.findall(r"^\$ lidp (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE):
            assert run(command.split()) in (0, 1)
            assert capsys.readouterr().out.strip() == shown.strip()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_the_python_blocks_of_the_documentation(page, capsys):
    """The blocks of a page run one after the other, as a reader would paste them."""
    names: dict[str, object] = {}
    for block in blocks(page.read_text(encoding="utf-8"), "python"):
        exec(compile(block, str(page), "exec"), names)  # noqa: S102  # our own pages


def test_the_two_commands_come_first():
    first_screen = README.split("\n## ")[0]
    assert first_screen.index("make audit") < first_screen.index("make test")


def test_nothing_but_the_documented_make_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("audit", "test", "test-all", "lint", "bench", "docs"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_reproduction_page_says_what_was_found():
    """Every finding is on one of the two pages, with the number and the verdict of its summary."""
    names = ("reproduction.md", "reproduction-training.md")
    page = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in names)
    summaries = sorted((ROOT / "docs" / "reproduction").glob("**/summary.json"))
    run = {path.parent.name for path in summaries}
    assert run <= set(EXPERIMENTS)
    waiting = page.partition("Not run yet:")[2].partition(";")[0]
    assert {name for name in EXPERIMENTS if f"`{name}`" in waiting} == set(EXPERIMENTS) - run
    for path in summaries:
        summary = json.loads(path.read_text(encoding="utf-8"))
        assert summary["scale"] != "smoke"
        for finding in summary["findings"]:
            ours = finding["ours"]
            number = "not found" if ours is None else f"{ours:,.0f}" if abs(ours) >= 100 else f"{ours:.3g}"
            paper = "" if finding["paper"] is None else f"{finding['paper']:g}"
            verdict = {True: "holds", False: "**differs**", None: ""}[finding["holds"]]
            statement = finding["statement"].replace("|", "∣")
            assert f"| {statement} | {paper} | {number} | {verdict}" in page, finding


def test_the_headline_table_is_that_of_the_summary():
    summary = json.loads((ROOT / "docs" / "reproduction" / "models-needed" / "summary.json").read_text(encoding="utf-8"))
    needed = {finding["statement"]: finding["ours"] for finding in summary["findings"]}
    rows = re.findall(r"^\| (.+?) \| .+? \| (.+?) \| (.+?) \|$", README.split("## How many models")[1], flags=re.MULTILINE)
    rows = [row for row in rows if row[1][0].isdigit() or row[1] == "more than tried"]
    assert len(rows) >= 8
    for name, *cells in rows:
        for target, cell in zip((0.67, 0.85), cells, strict=True):
            ours = needed[f"{name}: models until ε̂ = {target}"]
            assert cell == ("more than tried" if ours is None else f"{ours:,.0f}"), name

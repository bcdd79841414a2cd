"""What the documents show is what happens."""

import doctest
import json
import re
import shlex
import subprocess
import sys
import warnings
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


def play(text, capsys):
    """Run the blocks of a page in order, as a reader would: paste Python, save files, type commands and compare what they print."""
    names: dict[str, object] = {}
    for kind, title, block in re.findall(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```', text, flags=re.DOTALL | re.MULTILINE):
        if title:
            Path(title).write_text(block, encoding="utf-8")
            if title.startswith("test_"):
                tested = subprocess.run(
                    [sys.executable, "-m", "pytest", "-q", title], capture_output=True, text=True, check=False
                )
                assert tested.returncode == 0, tested.stdout
        elif kind == "python":
            exec(compile(block, "page", "exec"), names)  # noqa: S102  # our own pages
            capsys.readouterr()
        elif kind == "console":
            for command, shown in re.findall(r"^\$ lidp (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE):
                assert run(shlex.split(command)) in (0, 1), capsys.readouterr().err
                printed = re.sub(
                    r"[\d.,]+ s$| +$",
                    lambda found: "… s" if found[0].strip() else "",
                    capsys.readouterr().out,
                    flags=re.MULTILINE,
                )
                assert printed.strip() == shown.strip(), command


def test_the_commands_of_the_readme(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    sessions = blocks(README, "console")
    assert sessions
    play("".join(f"```console\n{session}```\n" for session in sessions), capsys)


PAGES = sorted((ROOT / "docs").glob("*.md"))
SLOW_PAGES = {"how-many-models.md", "clusters.md", "training.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW_PAGES else ()) for page in PAGES],
    ids=lambda p: p.name,
)
def test_the_blocks_of_the_documentation(page, capsys, monkeypatch, tmp_path):
    text = page.read_text(encoding="utf-8")
    if "import torch" in text:
        pytest.importorskip("opacus", reason="the page needs the extra torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn about themselves
        play(text, capsys)


def test_every_block_is_of_a_kind_that_is_run():
    """Code stands in fences that the test above runs; what is indented is a formula, a picture or a list of commands."""
    for page in PAGES:
        kinds = re.findall(r"^```(\w*)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(kinds) <= {"python", "console", "text", ""}, page.name
        assert not re.findall(r"^    (?:def|import|from) ", page.read_text(encoding="utf-8"), flags=re.MULTILINE), page.name


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if link[0] and not link[0].startswith("http"):
                assert (page.parent / link[0]).exists(), f"{page.name}: {link[0]}"


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
    rows = re.findall(
        r"^\| (.+?) \| .+? \| (.+?) \| (.+?) \|$",
        README.split("## How many models")[1].split("\n## ")[0],
        flags=re.MULTILINE,
    )
    rows = [row for row in rows if row[1][0].isdigit() or row[1] == "more than tried"]
    assert len(rows) >= 8
    for name, *cells in rows:
        for target, cell in zip((0.67, 0.85), cells, strict=True):
            ours = needed[f"{name}: models until ε̂ = {target}"]
            assert cell == ("more than tried" if ours is None else f"{ours:,.0f}"), name

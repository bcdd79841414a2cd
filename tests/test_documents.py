"""What the documents show is what happens."""

import doctest
import json
import pkgutil
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lidp.cli.app import run
from tests import commands
from tests.pages import (
    DOCUMENTS,
    README,
    ROOT,
    anchors_of,
    blocks_of,
    indented_blocks,
    links_of,
    spans_of,
)

SLOW_PAGES = {"federated.md", "how-many-models.md", "clusters.md", "training.md", "diagnosis.md", "jax.md"}
KINDS = {
    "python": "run; what it prints stands in the block of text that follows, or it prints nothing; with a title, saved as a file",
    "pycon": "a session, compared line by line",
    "console": "commands with what they print, run and compared",
    "sh": "commands that take too long or need too much: their arguments are taken apart by the real command line",
    "yaml": "a workflow, which tests/test_action.py compares with the file",
    "text": "a picture, or what a block of Python prints",
}
LEFT_OUT = re.compile(r"[\d.,]+ s$| +$", flags=re.MULTILINE)  # times, and spaces that nobody sees


def alike(shown, printed):
    """Whether a text is what was printed. Three dots in it stand for anything, an ellipsis for a time."""
    plain = LEFT_OUT.sub(lambda found: "… s" if found[0].strip() else "", printed)
    return doctest.OutputChecker().check_output(shown.strip() + "\n", plain.strip() + "\n", doctest.ELLIPSIS)


class Reader:
    """Somebody who does what a page says, from top to bottom: pastes Python, saves files, types commands."""

    def __init__(self, capsys):
        self.capsys = capsys
        self.names = {}
        self.code = None

    def follow(self, block):
        if block.title:
            self.save(block)
        elif block.kind in ("python", "pycon", "console", "sh"):
            getattr(self, block.kind)(block)

    def save(self, block):
        Path(block.title).write_text(block.text, encoding="utf-8")
        if block.title.startswith("test_"):
            pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", block.title]
            tested = subprocess.run(pytest_run, capture_output=True, text=True, check=False)
            assert tested.returncode == 0, tested.stdout

    def python(self, block):
        exec(compile(block.text, "page", "exec"), self.names)  # noqa: S102  # our own pages
        printed = self.capsys.readouterr().out
        assert alike(block.prints or "", printed), f"line {block.line} prints\n{printed}"

    def pycon(self, block):
        test = doctest.DocTestParser().get_doctest(block.text, self.names, "page", "page", block.line)
        output = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=output.append, clear_globs=False)
        self.names = test.globs
        assert runner.failures == 0, "".join(output)

    def console(self, block):
        sessions = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, flags=re.MULTILINE)
        assert "".join(f"$ {command}\n{shown}" for command, shown in sessions) == block.text, block.text
        for command, shown in sessions:
            if command == "echo $?":
                assert shown.strip() == str(self.code), command
                continue
            name, *arguments = shlex.split(command, comments=True)
            if name == "python":  # a program that the page has saved
                printed = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
                assert alike(shown, printed), f"{command} prints\n{printed}"
                continue
            assert name == "lidp", command
            self.code = run(arguments)
            printed, complaint = self.capsys.readouterr()
            assert self.code in (0, 1), complaint
            assert alike(shown, printed), f"{command} prints\n{printed}"

    def sh(self, block):
        for words in commands.commands_in(block.text):
            commands.check(words)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW_PAGES else ()) for page in DOCUMENTS],
    ids=lambda p: p.name,
)
def test_the_blocks_of_a_page(page, capsys, monkeypatch, tmp_path):
    blocks = blocks_of(page)
    if any("import torch" in block.text for block in blocks):
        pytest.importorskip("opacus", reason="the page needs the extra torch")
    if any("examples/language_models" in block.text for block in blocks):
        pytest.importorskip("peft", reason="the page needs the extra llm")
    if any("import jax" in block.text for block in blocks):
        pytest.importorskip("jax_privacy", reason="the page needs the extra jax")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    reader = Reader(capsys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn about themselves
        for block in blocks:
            reader.follow(block)


def test_what_a_page_says_and_what_happens_are_compared(capsys, monkeypatch, tmp_path):
    """A page that shows something else than what happens is noticed, whatever the kind of its block."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for wrong in (
        "```python\nprint(1)\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nx = 1\n```\n\n```text\n2\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```console\n$ lidp --version\nnone\n```\n",
        "```console\n$ ls\n```\n",
        "```console\nlidp --version\n```\n",
        "```console\n$ lidp catalogue --mechanisms\n```\n",
        '```python title="test_it.py"\ndef test_it():\n    raise ValueError\n```\n',
        "```sh\nlidp audit-dpsgd --epsilon\n```\n",
        "```sh\nlidp audit-dpsgd --epsilon 2 --epsilonn 2\n```\n",
        "```sh\nlidp audit-dpsgd --epsilon two\n```\n",
        "```sh\nlidp report\n```\n",
        "```sh\nlidp audit-dpsgdd\n```\n",
        "```sh\nlidp reproduce gaussian-trails\n```\n",
        "```sh\nmake tests\n```\n",
        "```sh\npip install 'lidp[touch]'\n```\n",
        "```sh\npython -m benchmarks pears\n```\n",
        "```sh\npython examples/training/none.py\n```\n",
        "```sh\nrm -r docs\n```\n",
    ):
        page.write_text(wrong, encoding="utf-8")
        (block,) = blocks_of(page)
        with pytest.raises((AssertionError, commands.UsageError)):
            Reader(capsys).follow(block)


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)
def test_every_block_is_of_a_kind_that_is_run(page):
    assert not indented_blocks(page)
    assert {block.kind for block in blocks_of(page)} <= set(KINDS)


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)
def test_what_a_page_names_exists(page):
    """Commands, options, modules and files that are named within a sentence."""
    for span in spans_of(page):
        words = span.split()
        if not words:
            continue
        if words[0] == "lidp" and len(words) > 1:
            options = commands.options_of(words[1])
            assert {word for word in words if re.match(r"--\w", word)} <= options, span
        elif words[0] in ("make", "pip") or words[:3] == ["python", "-m", "benchmarks"]:
            commands.check(shlex.split(span))
        elif re.match(r"--\w", words[0]) and not words[0].startswith("--dp-"):
            assert words[0] in commands.options_of(), span
        elif re.fullmatch(r"lidp(\.\w+)+", span):
            pkgutil.resolve_name(span)
        elif re.fullmatch(r"(benchmarks|docs|examples|src|tests)/[\w/.]*", span):
            assert (ROOT / span).exists(), span


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for link in links_of(page):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), link
        assert not anchor or anchor in anchors_of(file), link


def test_the_two_commands_come_first():
    first_screen = README.read_text(encoding="utf-8").split("\n## ")[0]
    assert first_screen.index("make audit") < first_screen.index("make test")


def test_nothing_but_the_documented_make_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("audit", "test", "test-all", "lint", "bench", "docs"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_headline_table_is_that_of_the_summary():
    summary = json.loads((ROOT / "docs" / "reproduction" / "models-needed" / "summary.json").read_text(encoding="utf-8"))
    needed = {finding["statement"]: finding["ours"] for finding in summary["findings"]}
    rows = re.findall(
        r"^\| (.+?) \| .+? \| (.+?) \| (.+?) \|$",
        README.read_text(encoding="utf-8").split("## How many models")[1].split("\n## ")[0],
        flags=re.MULTILINE,
    )
    rows = [row for row in rows if row[1][0].isdigit() or row[1] == "more than tried"]
    assert len(rows) >= 8
    for name, *cells in rows:
        for target, cell in zip((0.67, 0.85), cells, strict=True):
            ours = needed[f"{name}: models until ε̂ = {target}"]
            assert cell == ("more than tried" if ours is None else f"{ours:,.0f}"), name

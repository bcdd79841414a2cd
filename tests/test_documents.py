"""What the documents show is what happens."""

import doctest
import re
from pathlib import Path

import pytest

from lidp.cli.app import run

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

"""The commands are imported when they are used, and their summaries are the first sentences of their help."""

import subprocess
import sys

import pytest

from lidp.cli.commands import SUMMARIES, LazyCommands
from tests.cli.invoke import lidp

HEAVY = {"numpy", "scipy", "numba", "rich", "jinja2", "sqlite3", "multiprocessing", "lidp.claim", "lidp.cli.audit"}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_is_the_first_sentence_of_the_help(name):
    text = " ".join(LazyCommands()[name].help.split())
    assert text.startswith(SUMMARIES[name])


def test_the_commands_are_those_of_the_table():
    commands = LazyCommands()
    assert list(commands) == list(SUMMARIES)
    assert len(commands) == len(SUMMARIES)
    assert commands.get("fly") is None
    assert commands["plan"] is commands["plan"]


def test_a_similar_command_is_suggested(capsys):
    code, out, err = lidp(capsys, "reprot")
    assert (code, out) == (2, "")
    assert "report" in err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fly"]], ids=" ".join)
def test_the_help_imports_neither_numpy_nor_any_command(arguments):
    code = f"import sys; from lidp.cli import run; run({arguments!r}); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert not HEAVY & set(loaded)

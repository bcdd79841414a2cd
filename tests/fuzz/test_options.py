"""Random options and values for every command: at most one line of error, never a traceback.

What could take long is bounded by options at the end of the line, which win over those before them.
"""

import random

import pytest
import typer

from lidp.cli.app import app
from tests.fuzz.harness import lidp

EXAMPLES = 25
SLOW_BLOCKS = 12
BLOCKS = [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, SLOW_BLOCKS))]
VALUES = [
    "", "0", "1", "2", "3", "-1", "0.5", "1e-5", "0.05", "1e-300", "1e308", "1e999", "nan", "inf", "-inf", "1,2", "none", "x",
    "é", "\x1b[31m", "a b", "../x", "--", "-", "10" * 30, "auto", "{data}", "[red]", "'",
]  # fmt: skip
WORDS = {
    "--method": ["coin-wager", "one-run", "lifted-betting", "wilson", "all", "gdp", "joint-beta"],
    "--design": ["coin-flip", "leave-one-out", "replace-one"],
    "--neighbours": ["add-remove", "replace-one"],
    "--direction": ["forward", "backward", "both"],
    "--threshold": [
        "fixed:0",
        "split:0.5",
        "split:0.5,paper",
        "union:5",
        "rank:0.5",
        "fixed:nan",
        "split:2",
        "union:0",
        "rank:",
    ],
    "--stop-when": ["never", "refuted"],
    "--epsilon": ["1", "0", "5", "1e-9", "600"],
    "--order": ["1", "2", "4", "3"],
    "--seed": ["0", "18446744073709551616", "-5"],
    "--executor": ["local", "local", "slurm"],
    "--store": ["a.db", "b.db", "folder", "folder/c.db", "nowhere/d.db", "file.txt", "file.txt/e.db"],
    "--report": ["a.json", "a.html", "folder", "nowhere/a.html", "a.db", "file.txt"],
    "--output": ["a.html", "folder", "nowhere/a.html", "a.db"],
    "--out": ["a.npz", "folder", "nowhere/a.npz", "a.db", "file.txt/a.npz"],
    "--data": ["x.npz", "file.txt", "folder", "nowhere"],
}
ARGUMENTS = {
    "audit": ["tests.sample_targets:LEAKY", "tests.sample_targets:LEAKY", "tests.sample_targets:BROKEN",
              "tests.sample_targets:NOT_A_TARGET", "gaussian", "catalogue:x", "dpsgd", "x", "x:y", "file.txt:x", "", "os:getcwd"],
    "audit-pair": ["catalogue:laplace", "catalogue:x", "tests.sample_targets:LEAKY", "x", "x:y", "", "os:getcwd"],
    "audit-program": ["no-such-program {data} {out}", "sh", "x && y {data} {out}", "'{data} {out}", ""],
    "resume": ["a.db", "file.txt", "nowhere", "folder", ""],
    "bound": ["a.db", "a.npz", "s.npz", "file.txt", "folder", "nowhere.csv", ""],
    "report": ["a.db", "file.txt", "nowhere", "folder"],
    "compare": ["a.db", "file.txt", "s.npz", "folder"],
    "cite": ["coin-wager", "a.db", "x", "folder", "file.txt", ""],
    "witness": ["a.db", "a.json", "file.txt", "folder", "nowhere"],
    "reproduce": ["list", "x", ""],
}  # fmt: skip
BOUNDED = {
    "audit": ["--trials", "3", "--canaries", "2", "--workers", "1"],
    "audit-dpsgd": ["--trials", "3", "--canaries", "2", "--workers", "1", "--pilots", "1", "--epochs", "1", "--records", "50",
                    "--batch-size", "20"],
    "audit-program": ["--trials", "3", "--canaries", "2", "--workers", "1", "--pilots", "0"],
    "audit-pair": ["--runs", "40"],
    "plan": ["--models", "8", "--repeats", "2", "--canaries", "2"],
    "simulate": ["--trials", "4", "--canaries", "3", "--dimension", "20"],
    "resume": ["--workers", "1"],
}  # fmt: skip
COMMANDS_LEFT_OUT = {
    "audit-catalogue",  # dozens of audits
    "serve",  # listens until it is stopped; see tests/cli/test_serve.py
}
LEFT_OUT = {"--download", "--help", "--scale", "--ray-address"}  # what fetches, or takes long, or starts a cluster


def _commands():
    """Return all commands with their options; a flag takes no value."""
    commands = {}
    for name, command in typer.main.get_command(app).commands.items():
        if name in COMMANDS_LEFT_OUT:
            continue
        for words, leaf in [
            ([name], command),
            *(([name, inner], c) for inner, c in getattr(command, "commands", {}).items()),
        ]:
            options = {}
            for parameter in leaf.params:
                for option in parameter.opts:
                    if option.startswith("-") and option not in LEFT_OUT:
                        options[option] = bool(getattr(parameter, "is_flag", False))
            commands[" ".join(words)] = options
    return commands


COMMANDS = _commands()


def _value(option, rng):
    words = WORDS.get({"-o": "--output"}.get(option, option), VALUES)
    return rng.choice(words if rng.random() < 0.7 else VALUES)


def _line(command, rng):
    first = command.split()[0]
    words = command.split()
    for _ in range(rng.choice([1, 1, 1, 0, 2]) if first in ARGUMENTS else rng.choice([0, 0, 0, 1])):
        words.append(rng.choice(ARGUMENTS.get(first, VALUES)))
    options = COMMANDS[command]
    required = [option for option in ("--epsilon", "--claim", "--suspect", "--delta", "--out") if option in options]
    chosen = [option for option in required if rng.random() < 0.9]
    chosen += rng.sample(sorted(options), rng.randrange(min(len(options), 5) + 1)) if options else []
    if rng.random() < 0.05:
        chosen.append("--nonsense")
    for option in chosen:
        if options.get(option):
            words.append(option)
        else:
            words += rng.choice([[option, _value(option, rng)], [f"{option}={_value(option, rng)}"]])
    if rng.random() < 0.03:
        return words[: rng.randrange(1, len(words) + 1)] if first not in BOUNDED else words + BOUNDED[first]
    return words + BOUNDED.get(first, [])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with files of several kinds, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("hello\n")
    assert lidp(
        "audit",
        "tests.sample_targets:LEAKY",
        "--epsilon",
        "1",
        "--trials",
        "3",
        "--canaries",
        "2",
        "--store",
        "a.db",
        "--quiet",
    )
    assert lidp("simulate", "gaussian", "--out", "s.npz", "--trials", "5", "--canaries", "3")
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("command", COMMANDS)
def test_random_options(command, block, files):
    rng = random.Random(f"{command} {block}")  # noqa: S311
    for _ in range(EXAMPLES):
        lidp(*_line(command, rng))

"""Are the commands in the documents ones that exist? Nothing is run here: the real command line takes them apart."""

import importlib.util
import re
import shlex
import tomllib

import typer
from benchmarks.__main__ import PARTS

from lidp.cli.app import app
from lidp.data.cifar10 import REMEDY
from lidp.reproduce import EXPERIMENTS
from tests.pages import ROOT

MAKE_TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
UsageError = typer.BadParameter.__mro__[1]  # click's, or that of the copy that newer versions of typer carry
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def commands_in(text):
    """The commands of a block, comments left out, a continued line as one command."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def check(words):
    """Fail unless the command, its arguments and its options exist."""
    match words:
        case ["lidp", *arguments]:
            parse(arguments)
        case ["make", *targets]:
            assert targets
            assert set(targets) <= MAKE_TARGETS, words
        case ["pip", "install", "pytest"]:
            pass
        case ["pip", "install", what]:
            named = re.fullmatch(r"\.|lidp\[([\w,]+)\]", what)
            assert named, words
            assert set((named[1] or "").split(",")) <= EXTRAS | {""}, words
        case ["python", "-m", "benchmarks", *names]:
            assert set(names) <= set(PARTS), words
        case ["python", "-m", module, _] if module.startswith("lidp."):
            assert importlib.util.find_spec(module), words
        case ["npm", "pack", package]:
            assert package in REMEDY, words
        case ["tar", "xzf", archive]:
            assert archive in REMEDY, words
        case ["python", script] if script.startswith("examples/"):
            assert (ROOT / script).exists(), words
        case ["python", script, *arguments] if script.startswith("examples/"):
            _parse_example(ROOT / script, arguments)
        case ["ray", *arguments]:
            from ray.scripts.scripts import cli

            _parse(cli, "ray", arguments)
        case [".", ".venv/bin/activate"] | ["pre-commit", "install"] | ["pytest"]:
            pass
        case _:
            raise AssertionError(f"nobody knows how to check the command {shlex.join(words)}")


def _parse_example(path, arguments):
    """Take the arguments of an example apart by its own function ``parser``."""
    assert path.exists(), path
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.parser().parse_args(arguments)
    except SystemExit as end:
        raise AssertionError(f"{path} does not take {shlex.join(arguments)}") from end


def parse(arguments):
    """Take a command line of lidp apart, as it would be, without running it."""
    context = _parse(typer.main.get_command(app), "lidp", arguments)
    if context.info_name == "reproduce":
        assert set(context.params["names"]) <= {*EXPERIMENTS, "all", "list"}, arguments
        assert context.params["scale"] in {"smoke", "reduced", "paper"}, arguments


def _parse(command, name, arguments):
    while hasattr(command, "commands"):
        name, *arguments = arguments
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    return command.make_context(name, list(arguments))


def options_of(name=None):
    """The options of one command of lidp, or of all of them."""
    group = typer.main.get_command(app)
    commands = [group.commands[name]] if name else [group]
    found = set()
    while commands:
        command = commands.pop()
        commands += getattr(command, "commands", {}).values()
        found |= {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {option for option in found if option.startswith("-")} | {"--help"}

"""Options that say where trials run."""

import shlex
from pathlib import Path

import pytest
import typer

from lidp import InvalidArgument
from lidp.cli.app import app
from lidp.cli.executor_options import ExecutorOptions
from lidp.trials.executors import Processes, Serial
from lidp.trials.ray_executor import Ray

OPTIONS = [
    ExecutorOptions(),
    ExecutorOptions(workers=3, time_limit=2.5, retry=True),
    ExecutorOptions(executor="ray", ray_address="host:1", cpus_per_trial=0.5, gpus_per_trial=1, time_limit=9),
]


def test_the_executor_is_the_one_that_was_asked_for():
    assert isinstance(OPTIONS[0].build(), Serial)
    assert isinstance(OPTIONS[1].build(), Processes)
    assert OPTIONS[2].build() == Ray("host:1", 0.5, 1, 9, False)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_resume_command_has_the_same_options(options):
    words = shlex.split(options.resume_command(Path("my store.db")))
    assert words[:2] == ["lidp", "resume"]
    parsed = typer.main.get_command(app).commands["resume"].make_context("resume", words[2:]).params
    assert parsed["store"] == Path("my store.db")
    assert ExecutorOptions(**{name: parsed[name] for name in vars(options)}) == options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "slurm"}, "executor must be local or ray"),
        ({"ray_address": "auto"}, "--ray-address is for --executor ray"),
        ({"executor": "ray", "workers": 2}, "--workers is for --executor local"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        ExecutorOptions(**options).build()

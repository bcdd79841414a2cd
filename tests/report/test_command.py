"""The command to reproduce makes an audit of the same configuration."""

import json
import shlex
from pathlib import Path

import pytest
import typer

from lidp import Claim, CoinFlip, CoinWager, LeaveOneOut, Target, result_of
from lidp.cli import command_options, training_options
from lidp.cli.app import app, run
from lidp.engine.plan import AuditPlan
from lidp.report.command import command_of
from tests.engine import Numbers, closeness
from tests.engine import run as audit

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    "options",
    [
        "tests.engine:LEAKY --epsilon 1 --trials 12 --canaries 6",
        "tests.engine:LEAKY --epsilon 0.1 --delta 1e-5 --trials 12 --canaries 6 --neighbours replace-one --seed 7",
        "tests.engine:SILENT --epsilon 1 --trials 9 --canaries 4 --design leave-one-out --method wilson",
        "tests.engine:SILENT --epsilon 1 --trials 9 --canaries 4 --design replace-one --failure-probability 0.001",
        "tests.engine:LEAKY --epsilon 3 --trials 12 --canaries 6 --stop-when never",
        "gaussian --epsilon 1 --delta 1e-5 --trials 4 --canaries 5",
        pytest.param(
            "dpsgd --epsilon 4 --delta 1e-5 --trials 2 --canaries 4 --records 200 --epochs 1 --pilots 2 --fault little-noise",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_same_configuration(options, tmp_path, capsys):
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    assert run(["audit", *shlex.split(options), "--store", str(first), "--quiet"]) in (0, 1)
    made = result_of(first)
    command = command_of(made.configuration)
    program, *words = shlex.split(command)
    assert program == "lidp"
    assert run([*words, "--store", str(second), "--quiet"]) in (0, 1)
    again = result_of(second)
    assert again.configuration == made.configuration
    assert again.bound == made.bound


def test_the_options_of_dpsgd_are_part_of_its_origin():
    given = {"preset": "purchases", "data": "my data/a&b=c?.npz", "epochs": 1.5, "fault": "no-clipping"}
    origin = training_options.as_text("dpsgd", 6, given)
    words = shlex.split(command_of(audit(trials=4, origin=origin).configuration))
    assert words[-1] == "dpsgd"
    typed = dict(zip(words[2:-1:2], words[3:-1:2], strict=True))
    assert (
        training_options.as_text("dpsgd", int(typed["--canaries"]), {name: typed[f"--{name}"] for name in given}) == origin
    )


def test_a_pair(capsys, tmp_path):
    page = tmp_path / "pair.html"
    arguments = [
        "audit",
        "catalogue:svt3",
        "--epsilon",
        "1",
        "--runs",
        "1200",
        "--seed",
        "5",
        "--json",
        "--quiet",
        "--report",
    ]
    assert run([*arguments, str(page)]) in (0, 1)
    first = json.loads(capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    command = text.partition("<pre><code>")[2].partition("</code>")[0]
    _, *words = shlex.split(command)
    assert run([*words, "--json", "--quiet"]) in (0, 1)
    second = json.loads(capsys.readouterr().out)
    assert first["bound"] == second["bound"]


def test_what_no_command_can_say():
    assert command_of({}) is None
    assert command_of(audit(trials=4).configuration) is None  # from Python, with no origin
    assert command_of(audit(trials=4, origin="tests.engine:LEAKY", design=LeaveOneOut(4, 3)).configuration) is None
    assert command_of(audit(trials=4, origin="tests.engine:LEAKY", method=CoinWager(cap=0.5)).configuration) is None


def test_text_that_a_shell_would_run_is_quoted():
    configuration = audit(trials=4, origin="$(rm -rf x).py:a; ls", design=CoinFlip(6)).configuration
    assert shlex.split(command_of(configuration))[-1] == "$(rm -rf x).py:a; ls"
    dashed = audit(trials=4, origin="--all", design=CoinFlip(6)).configuration
    assert shlex.split(command_of(dashed))[-2:] == ["--", "--all"]


def test_a_program_is_repeated_by_what_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = "true --options '{\"lr\": 0.1}' {data} {out} {seed}"
    origin = command_options.as_text(typed, tmp_path / "a.db", 600.0, {"data": "x y.npz", "pilots": 3})
    target = Target(lambda dataset, rng: 0.0, Numbers(), closeness)
    plan = AuditPlan.make(
        target=target, claim=Claim(2.0, 1e-5), design=CoinFlip(16), trials=20, method=None, failure_probability=0.05, seed=4,
        stop_when=None, origin=origin,
    )  # fmt: skip
    words = shlex.split(command_of(plan.configuration))
    assert words[:2] == ["lidp", "audit"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options["--command"] == typed
    assert options["--data"] == str(tmp_path / "x y.npz")
    assert options["--time-limit"] == "600.0"
    known = {option for parameter in typer.main.get_command(app).commands["audit"].params for option in parameter.opts}
    assert set(options) <= known

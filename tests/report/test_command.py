"""The command to reproduce makes an audit of the same configuration."""

import json
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from lidp import Claim, CoinFlip, CoinWager, LeaveOneOut, Target, TargetSpec, result_of
from lidp.cli.app import app, run
from lidp.cli.audit_dpsgd import DpsgdOptions
from lidp.cli.audit_program import ProgramOptions
from lidp.curves import PointCurve
from lidp.engine.plan import AuditPlan
from lidp.report.command import command_of
from tests.sample_targets import Numbers, closeness
from tests.sample_targets import run as audit

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    "options",
    [
        "audit tests.sample_targets:LEAKY --epsilon 1 --trials 12 --canaries 6",
        "audit tests.sample_targets:LEAKY --epsilon 0.1 --delta 1e-5 --trials 12 --canaries 6 --neighbours replace-one --seed 7",
        "audit tests.sample_targets:SILENT --epsilon 1 --trials 9 --canaries 4 --design leave-one-out --method wilson",
        "audit tests.sample_targets:SILENT --epsilon 1 --trials 9 --canaries 4 --design replace-one --failure-probability 0.001",
        "audit tests.sample_targets:LEAKY --epsilon 3 --trials 12 --canaries 6 --stop-when never",
        "audit gaussian --epsilon 1 --delta 1e-5 --trials 4 --canaries 5",
        "audit gaussian --gaussian-mu 0.5 --delta 1e-6 --trials 4 --canaries 5",
        "audit tests.sample_targets:LEAKY --zcdp-rho 0.1 --trials 4 --canaries 5 --method coin-wager",
        "audit tests.sample_targets:LEAKY --noise-multiplier 2 --sampling-rate 0.1 --steps 20 --trials 4 --canaries 5",
        "audit tests.sample_targets:LEAKY --noise-multiplier 2 --sampling-rate 1 --steps 3 --delta 1e-4 --trials 4 --canaries 5",
        "audit tests.report.curve_results:HONEST --epsilon 5 --delta 1e-5 --trials 4 --canaries 5",
        pytest.param(
            "audit-dpsgd --epsilon 4 --delta 1e-5 --trials 2 --canaries 4 --records 200 --epochs 1 --pilots 2 --fault little-noise",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_same_configuration(options, tmp_path, capsys):
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    assert run([*shlex.split(options), "--store", str(first), "--quiet"]) in (0, 1)
    made = result_of(first)
    command = command_of(made.configuration)
    program, *words = shlex.split(command)
    assert program == "lidp"
    assert run([*words, "--store", str(second), "--quiet"]) in (0, 1)
    again = result_of(second)
    assert again.configuration == made.configuration
    assert again.bound == made.bound


def parsed(command):
    """Return the parameters of a command, as the command line reads them."""
    program, name, *words = shlex.split(command)
    assert program == "lidp"
    return name, typer.main.get_command(app).commands[name].make_context(name, words).params


def test_a_dpsgd_target_is_repeated_with_its_options():
    options = DpsgdOptions(
        preset="purchases", data="/my data/a&b=c?.npz", epochs=1.5, random_start=True, fault="no-clipping"
    )
    name, typed = parsed(command_of(audit(trials=4, target_spec=options.build_spec(6)).configuration))
    assert name == "audit-dpsgd"
    assert DpsgdOptions(**{field.name: typed[field.name] for field in fields(DpsgdOptions)}) == options
    assert typed["canaries"] == 6


@pytest.mark.parametrize("claim", ["--epsilon 1", "--laplace-scale 0.8"])
def test_a_pair(capsys, tmp_path, claim):
    page = tmp_path / "pair.html"
    arguments = shlex.split(f"audit-pair catalogue:svt3 {claim} --runs 1200 --seed 5 --json --quiet --report")
    assert run([*arguments, str(page)]) in (0, 1)
    first = json.loads(capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    command = text.partition("<pre><code>")[2].partition("</code>")[0]
    _, *words = shlex.split(command)
    assert run([*words, "--json", "--quiet"]) in (0, 1)
    second = json.loads(capsys.readouterr().out)
    assert first["bound"] == second["bound"]
    assert first["claim"] == second["claim"]


PYTHON = TargetSpec("python", {"path": "tests.sample_targets:LEAKY"})


def test_what_no_command_can_repeat():
    assert command_of({}) is None
    assert command_of(audit(trials=4).configuration) is None  # from Python, without a spec
    assert command_of(audit(trials=4, target_spec=PYTHON, design=LeaveOneOut(4, 3)).configuration) is None
    assert command_of(audit(trials=4, target_spec=PYTHON, method=CoinWager(cap=0.5)).configuration) is None


def test_curves_that_no_option_claims():
    import dp_accounting

    event = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(2.0), 3)
    for claim in (Claim.from_event(event), Claim.of_curve(PointCurve(1.0, 1e-5))):
        assert command_of(audit(trials=4, target_spec=PYTHON, claim=claim).configuration) is None


@pytest.mark.parametrize("path", ["$(rm -rf x).py:a; ls", "--all", "-x:y"])
def test_a_path_is_quoted_and_is_not_read_as_an_option(path):
    spec = TargetSpec("python", {"path": path})
    configuration = audit(trials=4, target_spec=spec, design=CoinFlip(6)).configuration
    assert parsed(command_of(configuration))[1]["target"] == path


def test_a_program_is_repeated_by_what_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = "true --options '{\"lr\": 0.1}' {data} {out} {seed}"
    spec = ProgramOptions("x y.npz", pilots=3).build_spec(command, tmp_path / "a.db", 600.0)
    target = Target(lambda dataset, rng: 0.0, Numbers(), closeness)
    plan = AuditPlan.make(
        target=target, claim=Claim(2.0, 1e-5), design=CoinFlip(16), trials=20, method=None, failure_probability=0.05, seed=4,
        stop_when=None, target_spec=spec,
    )  # fmt: skip
    name, typed = parsed(command_of(plan.configuration))
    assert name == "audit-program"
    assert typed["program_command"] == command
    assert (
        ProgramOptions(typed["data"], typed["canary"], typed["pilots"]).build_spec(
            command, tmp_path / "a.db", typed["time_limit"]
        )
        == spec
    )

"""Every verdict ends with a next step: commands that exist, about the store of this audit."""

import shlex
from dataclasses import replace

import pytest

from lidp import Claim, CoinFlip, OneRun, ReplaceOne, Target, audit_pair
from lidp.cli.next_steps import next_steps
from tests import commands
from tests.cli.invoke import lidp
from tests.pages import ROOT
from tests.sample_targets import LEAKY, Numbers, claim_for, closeness, run, silent

SILENT = Target(silent, Numbers(), closeness, name="silent")


def commands_of(text):
    """The commands among the steps, as words."""
    lines = [line.removeprefix("next: ").partition("  (")[0] for line in text.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("lidp ")]


def test_after_a_refutation_the_report_and_how_to_go_on(tmp_path):
    result = run(LEAKY, stop_when="refuted")
    store = tmp_path / "my audit.db"
    report, further = commands_of(next_steps(result, store))
    assert report == ["lidp", "report", str(store), "-o", str(tmp_path / "my audit.html")]
    assert further == ["lidp", "resume", str(store), "--stop-when", "never"]
    for words in (report, further):
        commands.check(words)


def test_a_refuted_audit_that_ran_all_its_trials_is_not_to_be_gone_on_with(tmp_path):
    steps = commands_of(next_steps(run(LEAKY, stop_when="never"), tmp_path / "a.db"))
    assert [words[1] for words in steps] == ["report"]


def test_without_a_store_only_options_are_named():
    text = next_steps(run(LEAKY), None)
    assert commands_of(text) == []
    assert "--store" in text


def test_after_no_refutation_a_plan_of_this_budget_and_more_trials(tmp_path):
    result = run(SILENT, claim=Claim(1.0, 1e-5), trials=12)
    plan, further = commands_of(next_steps(result, tmp_path / "a.db"))
    assert plan == [
        "lidp", "plan", "--epsilon", "1", "--delta", "1e-05", "--suspect", "2", "--canaries", "6", "--models", "12",
    ]  # fmt: skip
    assert further == ["lidp", "resume", str(tmp_path / "a.db"), "--trials", "24"]
    for words in (plan, further):
        commands.check(words)
    assert "does not mean true" in next_steps(result, None)


def test_a_fixed_size_method_is_not_extended(tmp_path):
    steps = commands_of(next_steps(run(SILENT, method=OneRun(), trials=4), tmp_path / "a.db"))
    assert "resume" not in [words[1] for words in steps]


@pytest.mark.parametrize(
    ("design", "delta"), [(ReplaceOne(4, 4), 1e-5), (CoinFlip(4), 0.0)], ids=["replace-one", "no delta"]
)
def test_what_the_planner_cannot_simulate_is_not_suggested(design, delta):
    result = run(SILENT, design=design, claim=Claim(1.0, delta, claim_for(design).neighbours), trials=4)
    assert commands_of(next_steps(result, None)) == []


def test_a_claimed_curve_is_planned_by_its_noise():
    result = run(SILENT, claim=Claim.gaussian(0.5), trials=4)
    (plan,) = commands_of(next_steps(result, None))
    assert plan[-6:-4] == ["--noise-ratio", "0.8"]
    commands.check(plan)


def test_pairs_need_more_runs(tmp_path):
    result = audit_pair(silent, [0.0], [1.0], claim=Claim(1.0), runs=200)
    assert "more --runs" in next_steps(result, tmp_path / "a.db")


def test_the_steps_are_printed_apart_from_the_result_and_not_if_quiet(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    options = ("audit", "tests.sample_targets:LEAKY", "--epsilon", 1, "--canaries", 4, "--trials", 30)
    code, out, err = lidp(capsys, *options)
    assert code == 1
    assert "next:" in err
    assert "next:" not in out
    assert "next:" not in lidp(capsys, *options, "--quiet")[2]
    assert "next:" not in lidp(capsys, *options, "--json")[2]


def test_a_problem_comes_before_all_other_steps(tmp_path):
    result = replace(run(SILENT, claim=Claim(1.0, 1e-5), trials=4), warnings=("all scores are 0",))
    text = next_steps(result, tmp_path / "a.db")
    assert text.startswith("next: solve the problem above")
    assert commands_of(text) == []

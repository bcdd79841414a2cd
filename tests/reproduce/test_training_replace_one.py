"""Replace-one at the paper's size: noise, claim, models and the cells that are missing."""

import pytest

import lidp
from lidp.claim import Neighbours
from lidp.data import synthetic_purchases
from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_replace_one import ReplaceOneRun, fmnist_replace_one
from lidp.reproduce.training_trials import bounds_table
from lidp.training import calibrate
from lidp.trials.executors import Serial
from tests.reproduce.small_runs import SCHEDULE


def small_run(step):
    return ReplaceOneRun("fmnist-linear", SCHEDULE, "random-gradient", 8.0, 2, step)


def test_the_papers_size_is_16_runs_of_1000_models_with_gradients_first():
    (source,) = EXPERIMENTS["fmnist-replace-one"].sources
    runs = source.runs(Scale.PAPER)
    assert set(runs.values()) == {1000}
    assert len({run.file_name for run in runs}) == len(runs) == 2 * 2 * 2 * 2
    assert [run.canary for run in runs][:8] == ["random-gradient"] * 8
    assert {(run.nominal, run.canaries) for run in runs} == {(8.0, 16), (8.0, 1), (4.0, 16), (4.0, 1)}
    assert all(run.design.models_per_trial == 1 for run in runs)


@pytest.mark.slow
def test_noise_is_that_of_the_nominal_epsilon_under_add_remove():
    run, records = small_run("measure"), SCHEDULE.records
    published = calibrate(8.0, delta=1e-5, rate=100 / records, steps=2, accountant="rdp")
    assert len(synthetic_purchases(classes=10)) > records
    assert run.claim.neighbours is Neighbours.REPLACE_ONE
    assert run.claim.epsilon > 8
    assert run.target.facts["noise multiplier"] == pytest.approx(published.sigma, rel=1e-3)
    assert run.target.dataset.replaces


@pytest.mark.slow
def test_bounds_table_counts_one_model_per_trial_and_as_many_for_tuning(tmp_path):
    rows = [row for step in ("tune", "measure") for row in small_run(step).audit(tmp_path, 4, Serial())]
    assert rows[0]["scores"].neighbours is Neighbours.REPLACE_ONE
    models = {(row["method"], row["trials"]): row["models"] for row in bounds_table(rows, (4,)) if row["score"] == "raw"}
    assert models["2nd-order Wilson", 4] == 8
    assert models["lifted betting", 4] == 4


def row(method, trials, epsilon, canaries):
    settings = {"pair": "fmnist-linear", "canary": "random-gradient", "nominal_epsilon": 8.0, "score": "centred"}
    settings |= {"candidates": "tail", "canaries": canaries, "models": 2 * trials}
    return settings | {"method": method, "trials": trials, "epsilon_hat": epsilon}


def test_findings_name_missing_cells_and_trials_so_far():
    table = [row("DP + Wilson", 125, 0.1, 1), row("DP + Wilson", 250, 0.2, 1)]
    table += [row("2nd-order Wilson", 125, 0.2, 16), row("2nd-order Wilson", 250, 0.4, 16)]
    findings = {finding.statement: finding for finding in fmnist_replace_one.findings(table)}
    factor = findings["random-gradient, ε = 8, n = 250: times fewer trials than one canary, 2nd-order Wilson"]
    assert (factor.ours, factor.paper, factor.note) == (2.0, 5.98, "so far 250 of 1,000 trials")
    missing = [statement for statement in findings if statement.endswith("trials finished")]
    assert sorted(missing) == [
        "random-gradient, ε = 4: trials finished",
        "tail-example, ε = 4: trials finished",
        "tail-example, ε = 8: trials finished",
    ]


def test_findings_wait_for_both_numbers_of_canaries():
    findings = list(fmnist_replace_one.findings([row("2nd-order Wilson", 125, 0.2, 16)]))
    assert [finding.ours for finding in findings] == [0.0] * 4


def test_lifted_betting_takes_replace_one_scores(tmp_path):
    scores = small_run("measure").audit(tmp_path, 2, Serial())[0]["scores"]
    assert lidp.LiftedBetting().bound(scores, delta=1e-5, failure_probability=0.05).neighbours is Neighbours.REPLACE_ONE

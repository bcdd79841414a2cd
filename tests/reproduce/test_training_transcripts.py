"""Audits of all steps: bounds after numbers of models, beside what intervals on final models can show."""

import numpy as np
import pytest

from lidp.reproduce import EXPERIMENTS
from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_transcripts import CURVE, INTERVAL, POINT, TranscriptRun, fmnist_transcripts, predict_interval
from lidp.trials.executors import Serial
from tests.reproduce.small_runs import SCHEDULE


def make_run(true_noise=1.0):
    return TranscriptRun("purchases-mlp", SCHEDULE, "dirac-gradient", 8.0, 64, "flip", 0, true_noise)


@pytest.mark.slow
def test_transcript_run_is_the_same_from_its_store(tmp_path):
    run = make_run()
    (audited,), (recalled,) = run.audit(tmp_path, 2, Serial()), run.recall(tmp_path)
    assert audited["paths"] == recalled["paths"]
    assert set(audited["paths"]) == {CURVE, POINT}
    assert (audited["scores"].trials, audited["pilots"]) == (2, 0)
    assert 0 <= audited["accuracy"] <= 1


@pytest.mark.slow
def test_too_little_noise_shows_more(tmp_path):
    correct, broken = (make_run(noise).audit(tmp_path, 2, Serial())[0]["paths"][CURVE] for noise in (1.0, 0.3))
    assert max((epsilon for _, epsilon in correct), default=0) < max(epsilon for _, epsilon in broken)


@pytest.mark.parametrize("name", ["fmnist-transcripts", "cifar10-transcripts"])
def test_runs_of_the_papers_size_are_different_and_few(name):
    (source,) = EXPERIMENTS[name].sources
    runs = source.runs(Scale.PAPER)
    assert sum(runs.values()) <= 200
    assert len({run.file_name for run in runs}) == len(runs)


def test_predict_interval_grows_with_trials_and_epsilon():
    four, eight = (predict_interval("fmnist-linear", nominal) for nominal in (4.0, 8.0))
    mean = {(row["nominal_epsilon"], row["models"]): [] for row in four + eight}
    for row in four + eight:
        mean[row["nominal_epsilon"], row["models"]].append(row["epsilon"])
    assert np.mean(mean[8.0, 250]) < np.mean(mean[8.0, 2000])
    assert np.mean(mean[4.0, 2000]) < np.mean(mean[8.0, 2000]) < 1


def test_findings_give_the_first_measured_number_of_models_for_as_much():
    def row(method, models, epsilon, canaries=64):
        settings = {"pair": "fmnist-linear", "nominal_epsilon": 8.0, "noise": 1.0, "canaries": canaries}
        return settings | {"method": method, "models": models, "epsilon_hat": epsilon, "standard_error": 0.1}

    table = [row(INTERVAL, 2000, 0.5, 16), row(CURVE, 1, 0.2), row(CURVE, 4, 0.8), row(POINT, 1, 0.0), row(POINT, 4, 0.4)]
    findings = {finding.statement: finding for finding in fmnist_transcripts.findings(table)}
    assert findings[f"ε = 8, noise x 1, K = 64, {CURVE}: models for as much"].ours == 4
    assert findings[f"ε = 8, noise x 1, K = 64, {POINT}: models for as much"].ours is None

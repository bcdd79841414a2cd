"""Scores that tell nothing are named, in results, stores and progress; the verdict is the same."""

import json

import numpy as np
import pytest

import lidp
from lidp import AuditResult, Scores, Target
from lidp.engine.uninformative_scores import warn_of_uninformative_scores
from lidp.store import Store
from tests.sample_targets import Numbers, closeness, leaky, run
from tests.waiting import PATIENCE

RNG = np.random.default_rng(0)
COINS = RNG.integers(0, 2, (20, 4))
VARIED = RNG.normal(size=(20, 4))


def warning_of(scores, **options):
    return warn_of_uninformative_scores(Scores(scores=scores, coins=COINS[: len(scores)], **options))


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.full((20, 4), 2.5), "all 80 scores are 2.5"),
        (np.tile(VARIED[0], (20, 1)), "all 20 trials have the same scores"),
        (np.repeat(VARIED[:, :1], 4, axis=1), "all 4 canaries of a trial have the same score"),
    ],
)
def test_scores_without_information_are_named(scores, words):
    assert words in warning_of(scores)
    changed = scores.copy()
    changed[-1, -1] += 1
    assert not warning_of(changed)


def test_few_trials_say_nothing():
    assert not warning_of(np.zeros((7, 4)))
    assert warning_of(np.zeros((8, 4)))


def test_failed_runs_do_not_count():
    scores, failed = np.zeros((20, 4)), np.arange(20) >= 8
    scores[failed] = 5.0
    assert "all 32 scores are 0" in warning_of(scores, failed=failed)
    assert not warning_of(scores, failed=np.arange(20) >= 7)


def test_scores_of_two_arms_are_looked_at():
    assert warn_of_uninformative_scores(Scores(inserted=np.ones((9, 2)), held_out=np.ones((9, 3))))
    assert not warn_of_uninformative_scores(Scores(inserted=np.ones((9, 2)), held_out=np.zeros((9, 3))))


def without_noise(dataset, rng):
    return float(np.sum(dataset)) + 0.25


def test_warnings_are_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("lidp.trials.repeated_noise._SECONDS", PATIENCE)
    seen = []
    target = Target(without_noise, Numbers(), lambda output, canary: 1.0, name="silent")
    result = run(target, store=tmp_path / "a.db", watch=seen.append)
    noise, scores = result.warnings
    assert "silent returned exactly the same output in 64 runs" in noise
    assert "all 240 scores are 1" in scores
    assert f"  problem    {noise}\n  problem    {scores}\n" in str(result)
    assert seen[0].warnings == (noise,)
    assert seen[-1].warnings == (noise, scores)
    assert lidp.result_of(tmp_path / "a.db").warnings == result.warnings
    assert AuditResult.from_json(result.to_json()).warnings == result.warnings
    assert json.loads(result.to_json())["verdict"] == "not refuted"


@pytest.mark.parametrize("fact", [5, True, {"a": 1}, "text", [["nested"], 5]], ids=str)
def test_warnings_of_a_strangers_store_may_be_any_json(fact, tmp_path):
    target = Target(leaky, Numbers(), closeness, dataset=[0.5, -0.5])
    run(target, store=tmp_path / "a.db")
    with Store.open(tmp_path / "a.db") as store:
        store.keep_fact("warnings", fact)
    assert lidp.result_of(tmp_path / "a.db").warnings == ()


def test_a_sound_audit_has_no_warnings():
    assert run(Target(leaky, Numbers(), closeness, dataset=[0.5, -0.5])).warnings == ()

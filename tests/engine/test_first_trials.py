"""Audits whose first trials all fail: stopped early with the reason, without a verdict, and resumable."""

import re

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, PairTarget, Target
from lidp.designs.trial_record import WHOLE_TRIAL, TrialRecord
from lidp.engine.first_trials import MOST_FIRST_FAILURES, FirstTrials
from lidp.errors import AuditFailed
from lidp.store import Store
from tests.sample_targets import Numbers, claim_for, closeness, leaky, run, same

N = MOST_FIRST_FAILURES


def failed_trial(index):
    return TrialRecord(index, {"coins": np.ones(2), "scores": np.full(2, np.nan)}, {WHOLE_TRIAL: "killed"})


def scored_trial(index):
    return TrialRecord(index, {"coins": np.ones(2), "scores": np.zeros(2)})


def broken(dataset, rng):
    raise RuntimeError("never works")


LINE = broken.__code__.co_firstlineno + 1


class BrokenScore:
    def __call__(self, output, canary):
        raise KeyError("weights")


def usually_broken(dataset, rng):
    """Fails in most trials; which ones depends on its stream alone."""
    if rng.random() < 0.9:
        raise RuntimeError("seldom works")
    return leaky(dataset, rng)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("design", [CoinFlip(4), LeaveOneOut(4, 4)], ids=str)
def test_the_audit_stops_with_the_users_own_line(tmp_path, workers, design):
    where = re.escape(f"RuntimeError: never works ({__file__}:{LINE}, in broken)")
    with pytest.raises(AuditFailed, match=rf"the first \d+ trials all failed.*{where}") as caught:
        run(
            Target(broken, Numbers(), closeness),
            claim=claim_for(design),
            design=design,
            trials=5000,
            workers=workers,
            store=tmp_path / "a.db",
        )
    (traceback,) = caught.value.__notes__
    assert traceback.splitlines()[-1] == "RuntimeError: never works"
    with Store.read(tmp_path / "a.db") as store:
        assert N <= len(store.finished()) < 5000


def test_a_score_that_never_works_stops_the_audit_too():
    with pytest.raises(AuditFailed, match=rf"the first {N} trials all failed.*KeyError: 'weights' \(.*in __call__\)"):
        run(Target(leaky, Numbers(), BrokenScore()), trials=300)


def test_resuming_runs_further_trials_and_stops_again(tmp_path):
    target = Target(broken, Numbers(), closeness)
    with pytest.raises(AuditFailed, match=f"the first {N} trials"):
        run(target, trials=300, store=tmp_path / "a.db")
    with pytest.raises(AuditFailed, match=f"the next {N} trials"):
        run(target, trials=300, store=tmp_path / "a.db")
    with Store.read(tmp_path / "a.db") as store:
        assert store.finished() == list(range(2 * N))


def test_a_resumed_audit_is_the_same_as_one_that_was_never_stopped(tmp_path, monkeypatch):
    settings = {"target": Target(usually_broken, Numbers(), closeness), "trials": 60, "stop_when": "never", "seed": 5}
    with pytest.raises(AuditFailed, match="the first 8 trials all failed"):
        run(store=tmp_path / "a.db", **settings)
    resumed = run(store=tmp_path / "a.db", **settings)
    monkeypatch.setattr("lidp.engine.first_trials.MOST_FIRST_FAILURES", 100)
    whole = run(**settings)
    assert N < whole.failed_runs < 60
    same(resumed, whole)


def test_stored_trials_with_scores_let_the_audit_go_on():
    first = FirstTrials()
    first.recall([failed_trial(0), scored_trial(1)])
    first.look_at([failed_trial(index) for index in range(2, 50)])


def test_failures_after_the_first_score_never_stop_an_audit():
    first = FirstTrials()
    first.look_at([failed_trial(index) for index in range(N - 1)])
    first.look_at([scored_trial(N - 1)])
    first.look_at([failed_trial(index) for index in range(N, 50)])


def test_a_score_in_the_same_batch_counts():
    FirstTrials().look_at([*(failed_trial(index) for index in range(50)), scored_trial(50)])


def test_failures_of_an_earlier_session_do_not_count():
    first = FirstTrials()
    first.recall([failed_trial(index) for index in range(50)])
    first.look_at([failed_trial(50)])
    with pytest.raises(AuditFailed, match=f"the next {N} trials all failed.*killed"):
        first.look_at([failed_trial(index) for index in range(51, 50 + N)])


def test_a_pair_that_always_raises_names_the_line():
    with pytest.raises(AuditFailed, match=re.escape(f"RuntimeError: never works ({__file__}:{LINE}, in broken)")):
        lidp.audit_pair(PairTarget(broken, [1], [1, 2]), claim=Claim(1.0), runs=200)

"""``audit_pair``: what a result holds, and how audits run."""

import numpy as np
import pytest

import lidp
from lidp import Claim, InvalidArgument, Verdict, audit_pair
from tests.pairs.mechanisms import Laplace, one_by_one

ONE = Claim(1.0)


def test_audit_restores_the_global_generators():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    audit_pair(one_by_one(1.0), 0, 1, claim=ONE, runs=100)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_same_seed_gives_the_same_result():
    first, second = (audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=3) for _ in range(2))
    timeless = {"seconds": 0, "trial_seconds": 0, "trial_notes": []}
    assert first.to_dict() | timeless == second.to_dict() | timeless
    other = audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=4)
    assert (other.scores.flips()[0][:50] != first.scores.flips()[0][:50]).any()


def test_scores_of_an_unfinished_audit_are_marked():
    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(lidp.AuditInterrupted) as interrupted:
        audit_pair(Laplace(2.0), 0, 1, claim=ONE, runs=5000, watch=interrupt)
    result = interrupted.value.result
    assert result.bound.trials == result.scores.trials < 5000
    with pytest.raises(lidp.MethodNotApplicable, match="the audit is not finished"):
        lidp.bound(result.scores, "one-run", delta=0)
    assert not audit_pair(Laplace(2.0), 0, 1, claim=ONE, runs=200).scores.stopped_early


def test_recheck_reproduces_the_bound_of_the_witness():
    result = audit_pair(Laplace(0.5), 0, 1, claim=ONE)
    assert lidp.recheck(result.witness()).epsilon == result.bound.epsilon > 1
    assert result.bound.trials < result.planned_trials
    assert result.witness()["stopped_early"]
    assert result.bound.trials == result.scores.trials
    assert "refuted: Laplace claims (1, 0)-DP" in str(result)
    assert "leak       value" in str(result)
    forged = result.witness() | {"epsilon": 3.0}
    with pytest.raises(InvalidArgument, match=r"states ε ≥ 3\.0"):
        lidp.recheck(forged)


def test_runs_that_raise_are_counted_and_not_bet_on():
    def mechanism(dataset, rng):
        if rng.random() < 0.2:
            raise RuntimeError("no luck")
        return dataset + rng.laplace(0, 1.0)

    result = audit_pair(mechanism, 0, 1, claim=ONE, runs=2000)
    assert 300 < result.failed_runs < 500
    assert result.verdict is Verdict.NOT_REFUTED
    assert "runs failed (kept, not bet on)" in str(result)


def test_too_few_runs_are_inconclusive():
    assert audit_pair(Laplace(1e-9), 0, 1, claim=ONE, runs=5).verdict is Verdict.INCONCLUSIVE
    # Nothing is staked on the first runs.
    assert audit_pair(Laplace(1e-9), 0, 1, claim=Claim(0.01), runs=32).verdict is Verdict.INCONCLUSIVE


def test_watch_receives_progress_up_to_the_last_run():
    seen = []
    audit_pair(Laplace(1.0), 0, 1, claim=ONE, runs=5000, watch=seen.append)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[-1].done == seen[-1].planned == 5000
    assert "5,000/5,000 runs" in str(seen[-1])


def test_classifier_of_the_user_sees_coins_after_its_predictions():
    order = []  # of the copy that the audit uses

    class Sign:
        def predict(self, outputs):
            order.append("predict")
            return np.where(outputs.select(["value"])[:, 0] > 0.5, 1.2, -1.2)

        def learn(self, outputs, coins):
            order.append(("learn", len(outputs), len(coins)))

        def explain(self):
            return "above a half"

    result = audit_pair(Laplace(0.2), 0, 1, claim=ONE, runs=1000, classifier=Sign())
    assert result.verdict is Verdict.REFUTED
    assert result.leak == "above a half"
    assert order[:2] == ["predict", ("learn", 32, 32)]
    # Of the last block it is shown what the result counts.
    assert sum(step[1] for step in order if step != "predict") == result.bound.trials < result.planned_trials


def test_predictions_do_not_depend_on_where_the_audit_stops():
    stopped = audit_pair(one_by_one(0.4), 0, 1, claim=ONE, runs=3000)
    whole = audit_pair(one_by_one(0.4), 0, 1, claim=ONE, runs=3000, stop_when="never")
    seen = stopped.bound.trials
    np.testing.assert_array_equal(stopped.scores.flips()[0], whole.scores.flips()[0][:seen])
    assert stopped.bound.epsilon == whole.bound.epsilon_after(seen)


def test_bound_is_for_the_neighbours_of_the_claim():
    claim = Claim(1.0, neighbours="replace-one")
    assert audit_pair(Laplace(0.2), 0, 1, claim=claim, runs=2_000).verdict is Verdict.REFUTED
    assert audit_pair(Laplace(1.0), 0, 1, claim=claim, runs=500).bound.neighbours == "replace-one"

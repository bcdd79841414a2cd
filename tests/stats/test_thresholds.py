import numpy as np
import pytest

from lidp import (
    CentralGrid,
    ClopperPearson,
    FixedThreshold,
    InvalidArgument,
    MethodNotApplicable,
    Scores,
    SplitThreshold,
    TailQuantiles,
    UnionThreshold,
    Wilson,
)


def arms(trials=200, canaries=4, seed=0):
    rng = np.random.default_rng(seed)
    return Scores(inserted=1 + rng.standard_normal((trials, canaries)), held_out=rng.standard_normal((trials, canaries)))


def test_split_uses_the_later_trials_only():
    """Rewriting the tuning trials may move the threshold; rewriting the others may not."""
    scores = arms()
    strategy = SplitThreshold(0.5)
    result = Wilson(threshold=strategy).bound(scores, delta=0, failure_probability=0.05)
    inserted, held_out = (array.copy() for array in scores.arms())
    inserted[100:], held_out[100:] = 0.0, 0.0
    same = Wilson(threshold=strategy).bound(Scores(inserted=inserted, held_out=held_out), delta=0, failure_probability=0.05)
    assert same.thresholds == result.thresholds
    assert same.epsilon == 0


def test_split_equals_a_fixed_threshold_on_the_rest():
    scores = arms()
    tuned = Wilson(threshold=SplitThreshold(0.25), direction="forward").bound(scores, delta=0, failure_probability=0.05)
    fixed = Wilson(threshold=FixedThreshold(tuned.thresholds["forward"]), direction="forward")
    assert fixed.bound(scores[50:], delta=0, failure_probability=0.05).epsilon == tuned.epsilon


def test_union_divides_the_failure_probability():
    scores = arms()
    union = Wilson(threshold=UnionThreshold((0.5, 1.0, 1.5)), direction="forward")
    best = max(
        Wilson(threshold=FixedThreshold(t), direction="forward")
        .bound(scores, delta=0, failure_probability=0.05 / 3)
        .epsilon
        for t in (0.5, 1.0, 1.5)
    )
    assert union.bound(scores, delta=0, failure_probability=0.05).epsilon == pytest.approx(best, rel=1e-12)


def test_union_takes_its_grid_from_pilot_trials():
    scores = arms()
    method = Wilson(threshold=UnionThreshold(8, pilot=0.1))
    result = method.bound(scores, delta=0, failure_probability=0.05)
    pilot_values = np.concatenate([arm[:20].ravel() for arm in scores.arms()])
    assert all(value in pilot_values for value in result.thresholds.values())
    assert result.epsilon > 0


def test_split_of_a_single_trial_is_refused():
    with pytest.raises(MethodNotApplicable, match="at least 2 trials"):
        Wilson().bound(arms(trials=1), delta=0, failure_probability=0.05)


def test_candidate_thresholds():
    values = np.random.default_rng(1).standard_normal(10_000)
    tails = TailQuantiles(100)(values[:5000], values[5000:])
    assert tails[0] == values.min()
    assert tails[-1] == values.max()
    assert (np.diff(tails) > 0).all()
    central = CentralGrid(500)(values, values + 7)
    assert len(central) == 500
    assert central[[0, -1]] == pytest.approx(np.quantile(values, (0.1, 0.9)))
    assert TailQuantiles(1)(values, values)[0] == pytest.approx(np.median(values), abs=1e-3)
    assert len(CentralGrid()(np.ones(10), np.zeros(10))) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedThreshold(float("nan")),
        lambda: FixedThreshold("high"),
        lambda: SplitThreshold(0),
        lambda: SplitThreshold(1.0),
        lambda: UnionThreshold(0),
        lambda: UnionThreshold(2.5),
        lambda: UnionThreshold(10**6),
        lambda: UnionThreshold(()),
        lambda: UnionThreshold((0.0, float("inf"))),
        lambda: TailQuantiles(0),
        lambda: CentralGrid(10, 0.9, 0.1),
    ],
)
def test_invalid_strategies_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_empty_arm_gives_a_bound_of_zero():
    only_in = Scores(scores=np.ones((20, 1)), coins=np.ones((20, 1)))
    assert ClopperPearson().bound(only_in, delta=0, failure_probability=0.05).epsilon == 0


def test_different_strategies_have_different_texts():
    strategies = [
        FixedThreshold(0.123456789),
        FixedThreshold(0.123457),
        UnionThreshold(3),
        UnionThreshold(3, pilot=0.4),
        UnionThreshold((0.1, 0.5, 1.0)),
        SplitThreshold(0.5),
        SplitThreshold(0.5, CentralGrid()),
    ]
    assert len({str(strategy) for strategy in strategies}) == len(strategies)

"""What the figures show, against plain loops and numpy's own functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lidp import CoinFlip, LeaveOneOut, Scores, Wilson
from lidp.report.figure_data import BINS, STEPS, BoundPath, CanaryCorrelation, Gauge, ScoreDistributions, thinned
from tests.report.results import CASES, as_guarantee, result_like, scores_like


def test_gauge_holds_claim_bound_and_labels():
    result = result_like(scores_like(CoinFlip(6), 120), claim=0.5)
    data = Gauge.of(result)
    assert (data.bound, data.claim) == (result.bound.epsilon, 0.5)
    assert data.most > max(data.bound, data.claim)
    assert data.refuted
    assert data.bound_words == f"at least {result.bound.epsilon:g}"
    assert data.claim_words == "claimed 0.5"
    assert Gauge.of(as_guarantee(result, "credible")).bound_words.startswith("credible ")
    early = Gauge.of(result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), planned=500))
    assert early.bound_words.startswith("provisional ")
    nothing = result_like(scores_like(CoinFlip(6), shift=0.0), claim=0.0)
    assert Gauge.of(nothing).most == 1.0


def test_path_equals_that_of_the_bound():
    result = result_like(scores_like(CoinFlip(6), 120))
    data = BoundPath.of(result)
    assert (data.trials[0], data.epsilons[0]) == (0, 0.0)
    assert (data.trials[-1], data.epsilons[-1]) == (120, result.bound.epsilon)
    for trials, epsilon in zip(data.trials, data.epsilons, strict=True):
        assert epsilon == result.bound.epsilon_after(int(trials))
    assert data.has_path


def test_path_of_a_single_bound_has_only_its_end():
    result = result_like(scores_like(LeaveOneOut(4, 3)), Wilson())
    data = BoundPath.of(result)
    assert not data.has_path
    assert data.trials.tolist() == [0, 48]
    assert data.epsilons.tolist() == [0.0, result.bound.epsilon]


def test_thinned_path_keeps_the_refutation():
    from dataclasses import replace

    result = result_like(scores_like(CoinFlip(6), 120), claim=1.234)
    path = tuple((i + 1, (i + 1) / 1000) for i in range(5000))
    result = replace(result, bound=replace(result.bound, path=path, epsilon=5.0, trials=5000))
    data = BoundPath.of(result)
    assert len(data.trials) <= STEPS
    assert (np.diff(data.epsilons) > 0).all()
    assert 1235 in data.trials
    assert set(zip(data.trials.tolist(), data.epsilons.tolist(), strict=True)) <= {(0, 0.0), *path}


@given(st.integers(1, 3000), st.integers(3, 50), st.data())
def test_thinned_keeps_first_last_and_required_indices(size, most, data):
    keep = data.draw(st.integers(0, size - 1))
    kept = thinned(size, most, keep=(keep,))
    assert len(kept) <= max(most, 3)
    assert {0, size - 1, keep} <= set(kept)
    assert kept == sorted(set(kept))


@pytest.mark.parametrize("design", CASES.values(), ids=CASES)
def test_shares_of_scores_equal_those_of_a_loop(design):
    scores = scores_like(design, failed=2)
    data = ScoreDistributions.of(scores)
    inserted, held_out = [], []
    for trial in range(2, scores.trials):
        if scores.has_coins:
            for score, coin in zip(*(array[trial] for array in scores.flips()), strict=True):
                (inserted if coin else held_out).append(score)
        else:
            inserted.extend(scores.arms()[0][trial])
            held_out.extend(scores.arms()[1][trial])
    assert (data.count_inserted, data.count_held_out) == (len(inserted), len(held_out))
    assert data.mean_inserted == pytest.approx(np.mean(inserted))
    for shares, arm in ((data.inserted, inserted), (data.held_out, held_out)):
        for low, high, share in zip(data.edges, data.edges[1:], shares, strict=False):
            last = high == data.edges[-1]
            assert share == pytest.approx(sum(low <= x < high or (last and x == high) for x in arm) / len(arm))


def test_outlier_does_not_stretch_the_bins():
    values = np.random.default_rng(0).standard_normal((400, 10))
    values[3, 3] = 1e12
    coins = np.random.default_rng(1).integers(0, 2, values.shape)
    data = ScoreDistributions.of(Scores(scores=values, coins=coins))
    assert data.edges[-1] < 10
    assert 1 <= data.outside <= 4
    assert len(data.edges) == BINS + 1


@pytest.mark.parametrize("value", [0.0, 1e300, -5.0])
def test_equal_scores_have_bins(value):
    coins = np.random.default_rng(1).integers(0, 2, (9, 4))
    data = ScoreDistributions.of(Scores(scores=np.full((9, 4), value), coins=coins))
    assert data.inserted.sum() == pytest.approx(1)
    assert data.outside == 0
    assert CanaryCorrelation.of(Scores(scores=np.full((9, 4), value), coins=coins)) == ()


def test_correlations_of_arms_equal_numpy():
    scores = scores_like(LeaveOneOut(5, 3), 200, failed=3)
    correlations = CanaryCorrelation.of(scores)
    assert [one.arm for one in correlations] == ["inserted", "held-out"]
    for one, arm in zip(correlations, scores.arms(), strict=True):
        expected = np.corrcoef(arm[3:].T)
        np.testing.assert_allclose(one.matrix, expected, atol=1e-12)
        others = expected[~np.eye(len(expected), dtype=bool)]
        assert one.mean == pytest.approx(others.mean(), abs=1e-12)
        assert one.noise == pytest.approx(1 / np.sqrt(197))


def test_correlations_of_coins_exclude_the_effect_of_insertion():
    independent = scores_like(CoinFlip(8), 20_000, shift=50.0, shared=0.0)
    (correlation,) = CanaryCorrelation.of(independent)
    assert abs(correlation.mean) < 0.01
    assert correlation.effective == pytest.approx(8, rel=0.05)
    (shared,) = CanaryCorrelation.of(scores_like(CoinFlip(8), 20_000, shift=50.0, shared=1.0))
    assert shared.mean == pytest.approx(0.5, abs=0.02)
    assert shared.effective == pytest.approx(8 / (1 + 7 * 0.5), rel=0.05)


def test_correlations_of_coins_equal_those_of_a_loop():
    scores = scores_like(CoinFlip(3), 60)
    (correlation,) = CanaryCorrelation.of(scores)
    values, coins = (np.array(array) for array in scores.flips())
    for canary in range(3):
        for side in (True, False):
            rows = coins[:, canary] == side
            values[rows, canary] -= values[rows, canary].mean()
    np.testing.assert_allclose(correlation.matrix, np.corrcoef(values.T), atol=1e-9)


def test_mean_correlation_includes_canaries_that_are_not_shown():
    scores = scores_like(LeaveOneOut(200, 2), 80, shared=1.0)
    correlation = CanaryCorrelation.of(scores)[0]
    assert correlation.matrix.shape == (CanaryCorrelation.LARGEST, CanaryCorrelation.LARGEST)
    whole = np.corrcoef(scores.arms()[0].T)
    assert correlation.mean == pytest.approx(whole[~np.eye(200, dtype=bool)].mean(), abs=1e-12)
    np.testing.assert_allclose(correlation.matrix, whole[np.ix_(correlation.shown, correlation.shown)], atol=1e-12)


@pytest.mark.parametrize("design", [CoinFlip(1), LeaveOneOut(1, 1)])
def test_one_canary_has_no_correlation(design):
    assert CanaryCorrelation.of(scores_like(design)) == ()


def test_two_trials_have_no_correlation():
    assert CanaryCorrelation.of(scores_like(CoinFlip(4), 2)) == ()


@pytest.mark.parametrize("design", [CoinFlip(5), LeaveOneOut(5, 4)])
def test_figures_do_not_depend_on_the_order_of_trials_or_canaries(design):
    scores = scores_like(design, 50)
    arrays = scores.to_arrays()
    rows = np.random.default_rng(0).permutation(50)
    mixed = {name: array[rows][:, ::-1] for name, array in arrays.items()}
    other = Scores(**mixed, neighbours=scores.neighbours)
    a, b = ScoreDistributions.of(scores), ScoreDistributions.of(other)
    np.testing.assert_allclose(a.inserted, b.inserted)
    np.testing.assert_allclose(a.edges, b.edges)
    for one, another in zip(CanaryCorrelation.of(scores), CanaryCorrelation.of(other), strict=True):
        assert one.mean == pytest.approx(another.mean)
        np.testing.assert_allclose(one.matrix, another.matrix[::-1, ::-1], atol=1e-12)

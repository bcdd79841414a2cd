"""The ROC curve: against loops, by properties, and by the coverage of its band for canaries that are copies of each other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from lidp import Claim, CoinFlip, LeaveOneOut, Scores
from lidp.errors import InvalidArgument
from lidp.report.roc import RocCurve, allowed_region, distance
from tests.report.results import CASES, pair_result, result_like, scores_like


@pytest.mark.parametrize("design", CASES.values(), ids=CASES)
def test_rates_equal_those_of_a_loop(design):
    scores = scores_like(design, failed=3)
    roc = RocCurve.of_scores(scores, 0.05)
    if scores.has_coins:
        values, coins = scores.flips()
        arms = values[coins], values[~coins]
    else:
        arms = scores.arms()
    for threshold, *rates in zip(roc.thresholds[:-1], roc.inserted, roc.held_out, strict=False):
        for arm, rate in zip(arms, rates, strict=True):
            # A failed run counts, and is below: comparing NaN is false.
            assert rate == pytest.approx(sum(score >= threshold for score in arm.ravel()) / arm.size)
    assert (roc.inserted[-1], roc.held_out[-1], roc.thresholds[-1]) == (1.0, 1.0, -np.inf)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 5))
def test_curve_rises_to_one_within_its_band(trials, canaries, coins, anytime, seed):
    design = CoinFlip(canaries) if coins else LeaveOneOut(canaries, canaries)
    scores = scores_like(design, trials, seed=seed)
    roc = RocCurve.of_scores(scores, 0.05, anytime=anytime)
    assert (np.diff(roc.inserted) >= 0).all()
    assert (np.diff(roc.held_out) >= 0).all()
    assert (np.diff(roc.thresholds) < 0).all()
    assert 0 <= roc.area <= 1
    upper, lower = roc.upper(), roc.lower()
    for x, y in (upper, lower):
        assert (np.diff(x) >= 0).all()
        assert (np.diff(y) >= 0).all()
    # The band holds the curve: every point of it is right of and below the upper edge, left of and above the lower one.
    for x, y in zip(roc.held_out, roc.inserted, strict=True):
        assert y <= _height(upper, x, highest=True) + 1e-12
        assert y >= _height(lower, x, highest=False) - 1e-12


def _height(edge, x, *, highest):
    """The edge's height at x: the highest of a staircase's upper edge, the lowest of its lower one."""
    at = edge[1][edge[0] <= x + 1e-12] if highest else edge[1][edge[0] >= x - 1e-12]
    if len(at):
        return at.max() if highest else at.min()
    return 0.0 if highest else 1.0


@pytest.mark.parametrize("design", [CoinFlip(5), LeaveOneOut(5, 4)])
def test_order_of_trials_and_canaries_does_not_matter(design):
    scores = scores_like(design, 50)
    rows = np.random.default_rng(0).permutation(50)
    other = Scores(**{name: array[rows][:, ::-1] for name, array in scores.to_arrays().items()})
    a, b = RocCurve.of_scores(scores, 0.05), RocCurve.of_scores(other, 0.05)
    for name in ("thresholds", "inserted", "held_out"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name))


def test_area_is_the_probability_that_an_inserted_canary_scores_higher():
    scores = scores_like(LeaveOneOut(1, 1), 90)
    inserted, held_out = (arm.ravel() for arm in scores.arms())
    wins = np.mean([(x > y) + (x == y) / 2 for x in inserted for y in held_out])
    assert RocCurve.of_scores(scores, 0.05).area == pytest.approx(wins, abs=0.01)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 1e-5), (2.0, 0.1), (30.0, 0.0), (1000.0, 0.0)])
def test_allowed_region_satisfies_the_claim(epsilon, delta):
    """For each held-out rate, its edges are the largest and smallest inserted rate that all four inequalities allow."""
    x, y = allowed_region(Claim(epsilon, delta))
    factor = math.exp(min(epsilon, 600))
    for held_out in np.linspace(0.001, 0.999, 97):
        highest = min(1.0, factor * held_out + delta, 1 - (1 - held_out - delta) / factor)
        lowest = max(0.0, (held_out - delta) / factor, 1 - factor * (1 - held_out) - delta)
        assert np.interp(held_out, x[1:5], y[1:5]) == pytest.approx(highest, abs=1e-9)
        assert np.interp(held_out, x[[0, 7, 6, 5]], y[[0, 7, 6, 5]]) == pytest.approx(lowest, abs=1e-9)


def test_distance_is_slightly_larger_than_for_one_canary_per_trial():
    for beta in (0.2, 0.05, 1e-6):
        massart = math.sqrt(math.log(2 / beta) / 2 / 100)
        assert massart < distance(100, beta, coins=False, anytime=False) < 1.25 * massart
        assert distance(100, beta, coins=True, anytime=False) < distance(100, beta, coins=False, anytime=False)
        assert distance(100, beta, coins=False, anytime=True) > distance(100, beta, coins=False, anytime=False)


def test_distance_decreases_with_the_number_of_trials():
    for coins in (False, True):
        far = [distance(n, 0.05, coins=coins, anytime=False) for n in (1, 2, 3, 10, 100, 1000, 65_536)]
        assert far == sorted(far, reverse=True)


def _misses(curve, inserted, held_out):
    """Whether the true rates leave the band at some threshold of the curve."""
    thresholds = curve.thresholds[:-1]
    off = np.abs(curve.inserted[:-1] - inserted(thresholds)).max() > curve.reach_inserted
    return off or np.abs(curve.held_out[:-1] - held_out(thresholds)).max() > curve.reach_held_out


@pytest.mark.parametrize("coins", [False, True])
def test_band_covers_when_canaries_of_a_trial_are_copies(coins):
    beta, repeats, trials, canaries = 0.3, 400, 40, 16
    rng = np.random.default_rng(5)
    missed = pooled = 0
    for _ in range(repeats):
        shared = rng.standard_normal((trials, 1))
        if coins:
            flips = rng.integers(0, 2, (trials, canaries))
            scores = Scores(scores=shared + flips, coins=flips)
        else:
            other = rng.standard_normal((trials, 1))
            copies = np.ones((1, canaries))
            scores = Scores(inserted=(shared + 1) * copies, held_out=other * copies)
        curve = RocCurve.of_scores(scores, beta, anytime=False)
        missed += _misses(curve, lambda t: ndtr(1 - t), lambda t: ndtr(-t))
        # What counting every canary as independent would have said.
        naive = math.sqrt(math.log(4 / beta) / 2 / (trials * canaries / (2 if coins else 1)))
        pooled += np.abs(curve.inserted[:-1] - ndtr(1 - curve.thresholds[:-1])).max() > naive
    assert missed <= repeats * beta
    assert pooled > repeats / 2  # so this test would see it


def test_anytime_band_covers_at_the_worst_stopping_time():
    beta, repeats, trials = 0.3, 150, 128
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(repeats):
        scores = Scores(inserted=rng.standard_normal((trials, 1)) + 1, held_out=rng.standard_normal((trials, 1)))
        missed += any(
            _misses(RocCurve.of_scores(scores[:n], beta), lambda t: ndtr(1 - t), lambda t: ndtr(-t))
            for n in (2, 4, 8, 11, 16, 24, 32, 48, 64, 90, 128)
        )
    assert missed <= repeats * beta


def test_band_depends_on_the_stopping_rule():
    result = result_like(scores_like(CoinFlip(6)))
    assert RocCurve.of(result).anytime
    settled = result_like(scores_like(CoinFlip(6)), configuration={"stop_when": "never"})
    assert not RocCurve.of(settled).anytime
    assert RocCurve.of(settled).reach_inserted < RocCurve.of(result).reach_inserted
    learned = RocCurve.of(pair_result())
    assert learned.reach_inserted is None
    assert len(learned.upper()[0]) == 0


def test_curve_with_one_run_that_did_not_fail():
    scores = scores_like(CoinFlip(4), 5, failed=4)
    roc = RocCurve.of_scores(scores, 0.05)
    assert roc.inserted[-2] <= 1
    assert roc.inserted[-1] == 1


def test_invalid_failure_probability_is_refused():
    with pytest.raises(InvalidArgument, match="failure_probability"):
        RocCurve.of_scores(scores_like(CoinFlip(2)), 1.5)

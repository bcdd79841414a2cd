"""The same counts in, the same numbers out as the peers on PyPI give, where those are right."""

import numpy as np
import pytest

from lidp import FixedThreshold, GaussianDP, OneRun, OneRunFDP, Scores, UnionThreshold, Wilson
from lidp.stats.one_run import Guesses
from lidp.stats.xbern import tail_histogram


@pytest.mark.parametrize("canaries", [1, 2, 16])
@pytest.mark.parametrize("rate", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("failure_probability", [0.2, 0.05, 0.001])
def test_wilson_equals_xbern_confidence_intervals(canaries, rate, failure_probability):
    peer = pytest.importorskip("xbern_confidence_intervals", reason="xbern-confidence-intervals is in the peers extra")
    samples = (np.random.default_rng(canaries).beta(2, 2, (200, 1)) < rate).astype(float)
    samples = np.where(np.random.default_rng(7).random((200, canaries)) < 0.5, samples, rate > 0.5).astype(float)
    left, right = peer.get_wilson_confidence_intervals(samples, failure_probability)
    histogram = tail_histogram(samples, np.array([0.5]))
    methods = {"1st-Order Wilson": Wilson(1), "2nd-Order Wilson": Wilson(2), "4th-Order Wilson": Wilson(4, as_printed=True)}
    for name in left.index:
        assert methods[name].lower(histogram, failure_probability)[0] == pytest.approx(left[name], abs=1e-9)
        assert methods[name].upper(histogram, failure_probability)[0] == pytest.approx(right[name], abs=1e-9)


@pytest.fixture(scope="module")
def auditing():
    return pytest.importorskip("jax_privacy.auditing", reason="jax-privacy is in the peers extra")


def noisy_coins(seed, coins, shift):
    rng = np.random.default_rng(seed)
    inserted = rng.integers(0, 2, coins).astype(bool)
    return inserted, shift * inserted + rng.standard_normal(coins)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("shift", "delta"), [(1.0, 1e-5), (3.0, 1e-5), (2.0, 1e-3)])
@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_one_run_equals_jax_privacy(auditing, seed, shift, delta, threshold):
    inserted, scores = noisy_coins(seed, 400, shift)
    peer = auditing.CanaryScoreAuditor(scores[inserted], scores[~inserted])
    made, right = int((scores >= threshold).sum()), int((scores[inserted] >= threshold).sum())
    guesses = Guesses(coins=400, made=made, right=right)
    explicit = auditing.Explicit(threshold)
    ours = OneRun().epsilon(guesses, delta=delta, failure_probability=0.05)
    assert ours == pytest.approx(peer.epsilon_one_run(0.05, delta, threshold_strategy=explicit), abs=1e-5)
    ours = OneRunFDP().epsilon(guesses, delta=delta, failure_probability=0.05)
    assert ours == pytest.approx(peer.epsilon_one_run_fdp(0.05, delta, threshold_strategy=explicit), abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_dp_equals_jax_privacy(auditing, seed):
    """Two-valued scores have few thresholds, over which jax-privacy takes a union; so do we, over the same."""
    rng = np.random.default_rng(seed)
    inserted, held_out = (rng.random(300) < 0.8).astype(float), (rng.random(300) < 0.3).astype(float)
    peer = auditing.CanaryScoreAuditor(inserted, held_out)
    scores = Scores(inserted=inserted.reshape(-1, 1), held_out=held_out.reshape(-1, 1))
    thresholds = tuple(float(min(t, 2.0)) for t in peer._thresholds)
    ours = GaussianDP(threshold=UnionThreshold(thresholds)).bound(scores, delta=1e-5, failure_probability=0.05)
    assert ours.epsilon == pytest.approx(peer.epsilon_from_gdp(0.05, 1e-5), abs=1e-5)
    assert ours.epsilon > 1
    assert (
        GaussianDP(threshold=FixedThreshold(1.0)).bound(scores, delta=1e-5, failure_probability=0.05).epsilon > ours.epsilon
    )

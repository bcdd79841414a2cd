"""Audits of claimed privacy curves: both verdicts, the same result however they run, and what is tested by default."""

import json

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, CurveWager, InvalidArgument, LeaveOneOut, Target, Verdict
from lidp.curves import GaussianCurve
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.testing.simulations import assert_covers
from tests.sample_targets import InterruptedAfter, same

CLAIM = Claim.gaussian(mu=0.5)
DIMENSION = 400


def gaussian(sigma, **options):
    """Return a Gaussian mechanism with noise ``sigma``, of which 2 is claimed."""
    return Target(GaussianSum(sigma, DIMENSION), lidp.UniformSphere(DIMENSION), InnerProduct(), **options)


def noisy_count(data, rng):
    return len(data) + 1.5 * rng.standard_normal()


@pytest.mark.parametrize("design", [CoinFlip(32), LeaveOneOut(16, 16)], ids=str)
def test_half_the_noise_is_refuted_by_the_curve_first(design):
    result = lidp.audit(gaussian(1.0), claim=CLAIM, design=design, trials=200)
    assert result.verdict is Verdict.REFUTED
    assert result.verdicts["curve"] is Verdict.REFUTED
    assert result.bound.fell_at == result.bound.trials < 200
    assert result.bound.effective_noise <= 1
    assert result.bound.epsilon >= CLAIM.epsilon
    assert "its noise multiplier were" in str(result)


def test_a_correct_mechanism_stands_and_its_noise_is_bounded():
    result = lidp.audit(gaussian(2.0), claim=CLAIM, design=CoinFlip(64), trials=128)
    assert result.verdicts == {"curve": Verdict.NOT_REFUTED, "point": Verdict.NOT_REFUTED}
    assert 1 < result.bound.effective_noise < 1.5
    assert result.bound.epsilon_point < result.bound.epsilon < CLAIM.epsilon


def test_the_result_is_the_same_with_store_resume_and_workers(tmp_path):
    options = {"claim": CLAIM, "design": CoinFlip(8), "trials": 40, "seed": 3, "stop_when": "never"}
    expected = lidp.audit(gaussian(1.5), **options)
    same(lidp.audit(gaussian(1.5), workers=2, **options), expected)
    store = tmp_path / "a.db"
    with pytest.raises(lidp.AuditInterrupted):
        lidp.audit(gaussian(1.5), store=store, executor=InterruptedAfter(10), **options)
    same(lidp.audit(gaussian(1.5), store=store, **options), expected)
    stored = lidp.result_of(store)
    same(stored, expected)
    assert stored.claim == CLAIM
    assert stored.bound.point == expected.bound.point
    assert lidp.recheck(json.loads(json.dumps(expected.witness()))) == expected.bound


def test_pairs_of_data_sets_are_audited_against_a_curve(tmp_path):
    options = {"claim": CLAIM, "runs": 20_000, "seed": 1}
    result = lidp.audit_pair(noisy_count, [], [1], **options)
    assert result.verdicts["curve"] is Verdict.REFUTED
    assert result.bound.fell_at == result.bound.trials
    stored = lidp.audit_pair(noisy_count, [], [1], store=tmp_path / "a.db", workers=2, **options)
    same(stored, result)
    same(lidp.result_of(tmp_path / "a.db"), result)


def test_the_curve_of_a_target_is_tested_where_its_point_is_claimed():
    point = Claim(2.0, 1e-5)
    target = gaussian(1.0, curve=GaussianCurve(0.5))
    options = {"claim": point, "design": CoinFlip(32), "trials": 30}
    by_curve = lidp.audit(target, **options)
    assert by_curve.claim.curve == GaussianCurve(0.5)
    assert by_curve.claim.epsilon == 2.0
    assert by_curve.verdicts["curve"] is Verdict.REFUTED
    for method in ("coin-wager", lidp.CoinWager()):
        by_point = lidp.audit(target, method=method, **options)
        assert by_point.claim == point
        assert by_point.verdicts == {"point": Verdict.NOT_REFUTED}
    # A claim that does not follow from the curve is tested alone.
    assert lidp.audit(target, **{**options, "claim": Claim(1.0, 1e-5)}).claim.curve is None


def test_a_curve_method_needs_a_curve():
    with pytest.raises(lidp.MethodNotApplicable, match="tests a whole privacy curve, and none is claimed"):
        lidp.audit(gaussian(1.0), claim=Claim(2.0, 1e-5), method="curve-wager", trials=2)
    with pytest.raises(InvalidArgument, match="curve-wager tests 0.25-GDP, but the claim is"):
        lidp.audit(gaussian(1.0), claim=CLAIM, method=CurveWager(GaussianCurve(0.25)), trials=20)


@pytest.mark.slow
@pytest.mark.parametrize("canaries", [1, 8])
def test_both_verdicts_on_true_claims_have_one_failure_probability(canaries):
    """A mechanism at exactly the claimed curve: neither the curve, nor the point after it, falls too often."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([16, seed])
        coins = rng.integers(0, 2, (320 // canaries, canaries))
        scores = lidp.Scores(scores=coins + 2 * rng.standard_normal(coins.shape), coins=coins)
        alarms += any(lidp.bound(scores, claim=CLAIM, failure_probability=0.2).verdicts(CLAIM).values())
    assert_covers(alarms, 200, 0.2)

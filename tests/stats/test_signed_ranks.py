"""Signed ranks: what they accept, what they count, and how strong they are."""

import numpy as np
import pytest

import lidp
from lidp import CurveWager, GaussianCurve, InvalidArgument, MethodNotApplicable, Scores, SignedRanks
from tests.stats.curve_nulls import GaussianAlone, coins_of, gaussian_scores


def draw(mu, coins, seed=0, trials=1):
    return coins_of(gaussian_scores(mu), trials, coins)(np.random.default_rng(seed))


def bound(scores, mu=0.5, beta=0.05, **options):
    return SignedRanks(GaussianCurve(mu), **options).bound(scores, delta=1e-5, failure_probability=beta)


def test_twice_the_claimed_information_is_refuted_by_one_run():
    result = bound(draw(1.0, 1000))
    assert result.fell_at == 1
    assert result.hypothesis is lidp.Hypothesis.CURVE_BY_CANARY
    assert result.effective_noise < 1
    assert result.epsilon > GaussianCurve(0.5).epsilon(1e-5)
    assert result.rates["p_value"] < 0.05


@pytest.mark.slow
def test_one_run_of_many_canaries_shows_nearly_the_true_epsilon():
    """True ε 1.99; the most powerful test, which knows all but the noise, has a median of 1.85 with 10,000 coins."""
    bounds = [bound(draw(0.5, 10_000, seed)).epsilon for seed in range(5)]
    assert 1.75 < np.median(bounds) < GaussianCurve(0.5).epsilon(1e-5)


def test_bound_lies_between_members_of_the_family():
    result = bound(draw(0.5, 10_000))
    assert result.effective_noise not in lidp.stats.curve_family.NOISE_RATIOS
    assert result.epsilon == pytest.approx(GaussianCurve(0.5).with_noise(result.effective_noise).epsilon(1e-5))


@pytest.mark.parametrize("ones", [485, 515])
def test_scores_that_tell_every_coin_refute_everything(ones):
    """Of two values, the median is one."""
    coins = np.random.default_rng(0).permutation(np.arange(1000) < ones).reshape(1, -1)
    assert bound(Scores(scores=1.0 * coins, coins=coins), mu=2.0).fell_at == 1


def test_only_ranks_count():
    scores = draw(0.7, 500)
    values, coins = scores.flips()
    centred = values - np.median(values)
    stretched = Scores(scores=np.sign(centred) * np.abs(centred) ** 3, coins=coins)
    assert bound(stretched).rates == bound(scores).rates


def test_log_odds_are_centred_at_zero():
    scores = draw(1.0, 2000)
    values, coins = scores.flips()
    shifted = Scores(scores=values - 5, coins=coins)
    assert bound(shifted).rates["p_value"] < 1e-3
    assert bound(shifted, log_odds=True).rates["p_value"] == 1.0  # all guesses are "out"


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_one_direction_uses_half_of_the_guesses_well(direction):
    assert bound(draw(1.5, 2000), direction=direction).fell_at == 1


def test_runs_are_pooled():
    scores = draw(0.75, 250, trials=8)
    assert bound(scores).fell_at == 8
    assert bound(scores).rates["coins"] == 2000
    assert bound(scores).rates["p_value"] < bound(scores[:4]).rates["p_value"]


def test_failed_runs_count_as_wrong():
    scores = draw(1.0, 500, trials=2)
    values, coins = scores.flips()
    failed = Scores(scores=values, coins=coins, failed=[0, 1])
    assert bound(failed).rates["coins"] == 1000
    assert bound(failed).rates["p_value"] > bound(scores).rates["p_value"]


def test_all_runs_failed():
    values, coins = draw(1.0, 50).flips()
    assert bound(Scores(scores=values, coins=coins, failed=[1])).epsilon == 0


def test_small_failure_probabilities_are_possible():
    """The normal bound cannot fall below the error of the approximation, the exponential one can."""
    assert bound(draw(1.0, 4000), beta=1e-9).fell_at == 1


def test_scores_without_information_bound_nothing():
    rng = np.random.default_rng(0)
    result = bound(Scores(scores=rng.random((1, 1000)), coins=rng.integers(0, 2, (1, 1000))))
    assert result.epsilon < 0.5
    assert result.fell_at is None


def test_equal_scores_bound_nothing():
    coins = np.random.default_rng(0).integers(0, 2, (1, 1000))
    assert bound(Scores(scores=np.zeros((1, 1000)), coins=coins)).epsilon < 0.5


def test_curve_without_a_family():
    scores = draw(4.0, 1000)
    result = SignedRanks(GaussianAlone(0.5)).bound(scores, delta=1e-5, failure_probability=0.05)
    assert result.fell_at == 1
    assert result.epsilon == GaussianAlone(0.5).epsilon(1e-5)
    assert result.effective_noise == 1


@pytest.mark.slow
def test_stronger_than_the_wager_on_one_run():
    """The wager may be looked at after every coin, and pays for it."""
    wager = CurveWager(GaussianCurve(0.5), canary_by_canary=True)
    ranks = [bound(draw(0.75, 1000, seed)).fell_at is not None for seed in range(10)]
    bets = [wager.bound(draw(0.75, 1000, seed), delta=1e-5, failure_probability=0.05).fell_at for seed in range(10)]
    assert sum(ranks) >= sum(fell is not None for fell in bets)
    assert sum(ranks) >= 9


def test_arms_are_refused():
    scores = Scores(inserted=[[1.0, 2.0]], held_out=[[0.0, 0.5]])
    with pytest.raises(MethodNotApplicable, match="needs independent fair coins"):
        bound(scores)


def test_sequential_scores_are_refused():
    values, coins = draw(1.0, 50).flips()
    with pytest.raises(MethodNotApplicable, match="use coins"):
        bound(Scores(scores=values, coins=coins, sequential=True))


def test_other_neighbours_are_refused():
    claim = lidp.Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=2, neighbours="replace-one")
    with pytest.raises(MethodNotApplicable, match="replace-one"):
        SignedRanks(claim.curve).bound(draw(1.0, 50), delta=1e-5, failure_probability=0.05)


@pytest.mark.parametrize("options", [{"curve": 0.5}, {"curve": GaussianCurve(1.0), "log_odds": 1}])
def test_wrong_parameters_are_refused(options):
    with pytest.raises(InvalidArgument):
        SignedRanks(**options)


def test_all_methods_leave_it_out_and_say_why():
    methods = lidp.applicable(draw(1.0, 50), lidp.Claim.gaussian(mu=0.5))
    assert "assumes that the canaries of one run are independent" in methods["signed-ranks"]


def test_audit_of_canaries_that_interfere_refuses_it():
    target = lidp.Target(lambda data, rng: 0.0, lidp.UniformSphere(3), np.dot, interference="they overlap")
    with pytest.raises(InvalidArgument, match="not independent: they overlap"):
        lidp.audit(target, claim=lidp.Claim.gaussian(mu=0.5), trials=2, method="signed-ranks")

import math

import numpy as np
import pytest

from lidp import CoinWager, InvalidArgument, InvalidScores, LeaveOneOut, MethodNotApplicable, Scores
from lidp._compiled.curve_wager import wager
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve
from lidp.curves.gaussian import sigma_for
from lidp.epsilon_bound import Hypothesis
from lidp.stats.bet_sizes import gambler_caps, log_charge
from lidp.stats.curve_family import family_of
from lidp.stats.curve_wager import CurveWager

GAUSSIAN = GaussianCurve(0.8)


def flips(trials, canaries, mu=1.6, seed=0, **options):
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (trials, canaries))
    return Scores(scores=mu * coins + rng.standard_normal(coins.shape), coins=coins, **options)


def bound(scores, method=None):
    return (method or CurveWager(GAUSSIAN)).bound(scores, delta=1e-5, failure_probability=0.05)


METHODS = {
    "coin wager": CoinWager(),
    "curve wager": CurveWager(GAUSSIAN),
    "forward": CurveWager(GAUSSIAN, direction="forward"),
    "laplace": CurveWager(LaplaceCurve(0.9)),
    "point": CurveWager(PointCurve(1.0, 1e-5)),
    "canary by canary": CurveWager(GAUSSIAN, canary_by_canary=True),
    "given log-odds": CurveWager(GAUSSIAN, log_odds=True),
}


@pytest.mark.parametrize(("trials", "canaries"), [(150, 1), (60, 8), (20, 64)])
@pytest.mark.parametrize(
    ("name", "sequential"),
    # Scores that use coins of other canaries are refused canary by canary.
    [(name, use) for name in METHODS for use in (False, True) if (name, use) != ("canary by canary", True)],
)
def test_run_gives_the_same_bits_in_one_update_or_many(name, sequential, trials, canaries):
    method = METHODS[name]
    failed = np.zeros(trials, dtype=bool)
    failed[[0, trials // 3, trials - 1]] = True
    scores = flips(trials, canaries, failed=failed, sequential=sequential)
    whole = bound(scores, method)
    assert whole.epsilon > 0  # else nothing was compared
    for cuts in ([*range(1, trials)], [1], [trials // 3, trials // 3 + 1], [trials - 1]):
        run = method.begin(delta=1e-5, failure_probability=0.05)
        live = [(stop, run.update(scores[start:stop])) for start, stop in zip([0, *cuts], [*cuts, trials], strict=True)]
        assert run.bound() == whole
        assert all(whole.epsilon_after(seen) == epsilon for seen, epsilon in live)


def naive_wealths(logits, coins, odds, caps, charges, kinds):
    """Return the log-wealths of all gamblers at the end, written as the method is described. Nobody stops or gives up."""
    log_wealth = np.zeros(caps.shape[:2])
    for h, g in np.ndindex(log_wealth.shape):
        for row, answers in zip(logits, coins, strict=True):
            wealth = 1.0
            for logit, coin in zip(row, answers, strict=True):
                if logit == 0 or (logit > 0 and "in" not in kinds) or (logit < 0 and "out" not in kinds):
                    continue
                chance = 1 / (1 + math.exp(-abs(logit)))
                won = lost = wealth
                for rung_odds, cap in zip(odds[h], caps[h, g], strict=True):
                    stake = chance * lost / rung_odds - (1 - chance) * won
                    if stake <= 0:
                        break
                    won, lost = won + min(stake, cap), lost - rung_odds * min(stake, cap)
                    if stake <= cap:
                        break
                wealth = won if coin == (logit > 0) else lost
                assert wealth >= 0
            log_wealth[h, g] += math.log(wealth) - charges[h, g]
    return log_wealth


@pytest.mark.parametrize("kinds", [("in", "out"), ("in",), ("out",)])
@pytest.mark.parametrize("curve", [GAUSSIAN, LaplaceCurve(0.7), PointCurve(0.5, 0.01)], ids=str)
def test_compiled_wager_equals_a_naive_one(curve, kinds):
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.0, (12, 10))
    logits[3] = 0
    coins = rng.random(logits.shape) < 1 / (1 + np.exp(-0.5 * logits))
    family = family_of(curve, 0.01)
    caps = gambler_caps(family, 10)
    prices = ("in" in kinds) * family.forward + ("out" in kinds) * family.backward
    charges = log_charge(caps, prices[:, None, :], 10)
    log_wealth, counts = np.zeros(caps.shape[:2]), np.zeros((2, 1), np.int64)
    wager(
        logits, coins, np.exp(family.rungs), caps, charges, 1e9, -1e9, "in" in kinds, "out" in kinds, log_wealth,
        np.zeros(len(family)), counts[0], counts[1], 0, family.claimed, len(family), np.empty((12, 2), np.int64),
    )  # fmt: skip
    expected = naive_wealths(logits, coins, np.exp(family.rungs), caps, charges, kinds)
    assert log_wealth == pytest.approx(expected, abs=1e-9)
    sides = ("in" in kinds) * (logits > 0) + ("out" in kinds) * (logits < 0)
    assert counts[0, 0] == sides.sum()
    assert counts[1, 0] == (sides & (coins == (logits > 0))).sum()


def test_all_coins_are_charged_though_nothing_is_staked():
    family = family_of(GAUSSIAN, 1e-5)
    charges = log_charge(gambler_caps(family, 16), (family.forward + family.backward)[:, None, :], 16)
    run = CurveWager(GAUSSIAN, log_odds=True).begin(delta=1e-5, failure_probability=0.05)
    coins = np.random.default_rng(0).integers(0, 2, (1, 16))
    run.update(Scores(scores=np.zeros(coins.shape), coins=coins))
    assert run._log_wealth[family.claimed] == pytest.approx(-charges[family.claimed])


def test_a_gambler_who_stopped_within_a_trial_has_paid_for_all_its_coins():
    """Certain, right predictions: the goal is reached before the last coin, and the wealth is the target over the whole charge."""
    coins = np.random.default_rng(0).integers(0, 2, (1, 2000))
    method = CurveWager(GAUSSIAN, log_odds=True)
    result = bound(Scores(scores=30.0 * (2 * coins - 1), coins=coins), method)
    assert result.fell_at == 1
    run = method.begin(delta=1e-5, failure_probability=0.05)
    run.update(Scores(scores=30.0 * (2 * coins - 1), coins=coins))
    # The last coin may overshoot by a factor of 2; without a stop the wealth would be astronomical.
    assert math.log(20) <= run._reached[run._family.claimed] < math.log(3 * 2 * 20)


def test_odds_beyond_the_largest_float_are_not_bet_at():
    odds = np.array([[1.0, 2.0], [1.0, math.inf]])
    log_wealth = np.zeros((2, 1))
    wager(
        np.full((1, 4), 3.0), np.ones((1, 4), bool), odds, np.full((2, 1, 2), 0.1), np.zeros((2, 1)), 1e9, -1e9, True, True,
        log_wealth, np.zeros(2), np.zeros(1, np.int64), np.zeros(1, np.int64), 0, 0, 2, np.empty((1, 2), np.int64),
    )  # fmt: skip
    assert np.isfinite(log_wealth).all()
    assert log_wealth[0, 0] > log_wealth[1, 0] > 0


def test_path_never_falls_and_names_the_trial_at_which_the_claim_fell():
    result = bound(flips(60, 32))
    epsilons = [epsilon for _, epsilon in result.path]
    assert epsilons == sorted(set(epsilons))
    assert epsilons[-1] == result.epsilon > GAUSSIAN.epsilon(1e-5)
    assert result.fell_at == next(seen for seen, epsilon in result.path if epsilon >= GAUSSIAN.epsilon(1e-5))
    assert result.effective_noise < 1
    assert result.epsilon == pytest.approx(GaussianCurve(0.8 / result.effective_noise).epsilon(1e-5))


def test_claim_that_stands_has_no_trial_of_refutation():
    result = bound(flips(40, 8, mu=0.4))
    assert result.fell_at is None
    assert result.hypothesis is Hypothesis.CURVE
    assert result.curve == GAUSSIAN


def test_later_trials_do_not_change_the_earlier_path():
    scores = flips(60, 16)
    values, coins = scores.flips()
    changed = coins.copy()
    changed[40:] ^= True
    one, other = bound(scores), bound(Scores(scores=values, coins=changed))
    assert [one.epsilon_after(t) for t in range(41)] == [other.epsilon_after(t) for t in range(41)]


@pytest.mark.parametrize(("epsilon", "ratio", "models"), [(8, 1.25, 15), (2, 2.0, 8)])
def test_too_little_noise_is_noticed_within_few_models(epsilon, ratio, models):
    """The median of nine seeds, 64 canaries per model, predictions learned; ``python -m benchmarks curves`` has more."""
    mu = 1 / sigma_for(epsilon, 1e-5)
    method = CurveWager(GaussianCurve(mu))
    fell = [bound(flips(3 * models, 64, mu=ratio * mu, seed=seed), method).fell_at or math.inf for seed in range(9)]
    assert np.median(fell) <= models


def test_bound_of_one_run_with_many_canaries_is_not_held_back():
    """A fifth of the claimed noise: the bound reaches beyond the hypotheses next to the claim though there is a single trial."""
    result = bound(flips(1, 16_384, mu=4.0))
    family = family_of(GAUSSIAN, 1e-5)
    assert result.effective_noise < family.noise[family.claimed + 15]


def test_bound_on_a_correct_mechanism_is_near_its_epsilon():
    mu = 1 / sigma_for(2.0, 1e-5)
    bounds = [bound(flips(256, 64, mu=mu, seed=seed), CurveWager(GaussianCurve(mu))) for seed in range(9)]
    assert 0.85 * 2 <= np.median([each.epsilon for each in bounds]) < 2


def test_canary_by_canary_needs_one_run():
    scores = flips(1, 2000, mu=1.6)
    result = bound(scores, CurveWager(GAUSSIAN, canary_by_canary=True))
    assert result.fell_at == 1
    assert result.hypothesis is Hypothesis.CURVE_BY_CANARY
    assert any("independent of the others" in assumption for assumption in result.assumptions)


def test_scores_that_use_other_coins_are_refused_canary_by_canary():
    method = CurveWager(GAUSSIAN, canary_by_canary=True)
    with pytest.raises(MethodNotApplicable, match="coins of other canaries"):
        bound(flips(10, 8, sequential=True), method)


def test_arms_are_refused():
    with pytest.raises(MethodNotApplicable, match="no coins"):
        CurveWager(GAUSSIAN).check(LeaveOneOut(4, 4))
    rng = np.random.default_rng(0)
    with pytest.raises(MethodNotApplicable):
        bound(Scores(inserted=rng.standard_normal((5, 4)), held_out=rng.standard_normal((5, 4))))


def test_scores_for_other_neighbours_than_the_curve_are_refused():
    event = '{"event": "GaussianDpEvent", "noise_multiplier": 1.0}'
    for curve, scores in (("add-remove", "replace-one"), ("replace-one", "add-remove")):
        with pytest.raises(MethodNotApplicable, match=f"for {curve} neighbours, these scores are for {scores}"):
            bound(flips(10, 8, neighbours=scores), CurveWager(EventCurve(event, curve)))
    assert bound(flips(10, 8, neighbours="replace-one"), CurveWager(EventCurve(event, "replace-one"))).epsilon >= 0


def test_bound_before_the_first_trial_is_refused():
    with pytest.raises(InvalidScores, match="no trial"):
        CurveWager(GAUSSIAN).begin(delta=1e-5, failure_probability=0.05).bound()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"curve": None}, "curve must be a PrivacyCurve"),
        ({"curve": {"kind": "gaussian", "mu": 1.0}}, "curve must be a PrivacyCurve"),
        ({"curve": GAUSSIAN, "direction": "up"}, "direction"),
        ({"curve": GAUSSIAN, "canary_by_canary": 1}, "canary_by_canary must be True or False"),
        ({"curve": GAUSSIAN, "log_odds": "yes"}, "log_odds must be True or False"),
    ],
)
def test_invalid_parameters_are_refused(options, match):
    with pytest.raises(InvalidArgument, match=match):
        CurveWager(**options)


def test_delta_at_which_the_curve_promises_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="no finite ε at delta=1e-05"):
        bound(flips(10, 8), CurveWager(PointCurve(1.0, 1e-3)))

"""One run against any privacy curve: agreement with the Gaussian formula, with linear programmes, and what the bound says."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from lidp import Direction, Guarantee, InvalidArgument, OneRunFDP, RankGuesses, SplitThreshold, UnionThreshold
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve
from lidp.curves.gaussian import gaussian_epsilon
from lidp.epsilon_bound import EpsilonBound, Hypothesis
from lidp.stats.curve_family import family_of
from lidp.stats.guess_trade_off import rejects_curve, trade_off_of
from lidp.stats.one_run import Guesses, last_rejected
from lidp.stats.one_run_fdp import rejects_gaussian
from lidp.stats.storable import from_plain, to_plain
from tests.stats.curve_nulls import Interpolated, coins_of, gaussian_scores, laplace_scores, p_value, sampled_event

BETA = 0.05
OPTIONS = {"delta": 1e-5, "failure_probability": BETA}
CHECK = Guesses(coins=1000, made=100, right=95)


def test_published_number_is_reproduced_by_the_general_curve():
    mu = last_rejected(lambda value: rejects_curve(CHECK, GaussianCurve(max(value, 1e-6)), BETA))
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(3.323, abs=1e-3)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_trade_off_is_the_gaussian_one_up_to_the_grid_and_never_above(mu):
    trade_off = trade_off_of(GaussianCurve(mu), Direction.BOTH)
    right = np.concatenate([np.geomspace(1e-4, 0.5, 200), 1 - np.geomspace(1e-4, 0.5, 200)])
    bounds = np.array([trade_off.least_wrong(x) for x in right])
    exact = ndtr(ndtri(right) - mu)
    assert (bounds <= exact).all()
    assert bounds == pytest.approx(exact, rel=1e-3)


def test_general_curve_agrees_with_the_gaussian_formula():
    rng = np.random.default_rng(0)
    decisions = []
    for _ in range(60):
        coins = int(rng.integers(10, 3000))
        made = int(rng.integers(1, coins + 1))
        guesses = Guesses(coins, made, int(rng.integers(made // 2, made + 1)))
        mu = float(np.exp(rng.uniform(np.log(0.3), np.log(3))))
        decision = rejects_curve(guesses, GaussianCurve(mu), BETA)
        decisions.append(decision)
        assert not decision or rejects_gaussian(guesses, mu, BETA)
        assert decision or not rejects_gaussian(guesses, mu * 1.002, BETA)
    assert 10 < sum(decisions) < 50


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_guesses_in_one_direction_are_tested_at_least_as_sharply(direction):
    curve = GaussianCurve(1.0)
    for right in (60, 80, 95):
        one_sided = p_value(Guesses(1000, 100, right), curve, Direction(direction))
        assert one_sided <= p_value(Guesses(1000, 100, right), curve) + 1e-12


def most_likely(coins, made, right, curve, direction):
    """The largest probability of so many right guesses under any mechanism with the curve, by linear programming."""
    sides = {Direction.BOTH: (0, 1), Direction.FORWARD: (1,), Direction.BACKWARD: (0,)}[direction]
    outputs = [
        dict(zip(chosen, guess, strict=True))
        for chosen in itertools.combinations(range(coins), made)
        for guess in itertools.product(sides, repeat=made)
    ]
    inputs = list(itertools.product((0, 1), repeat=coins))
    width, size = len(outputs), len(outputs) * len(inputs)
    column = {flips: i * width for i, flips in enumerate(inputs)}
    constraints = []
    for flips in inputs:
        for k in range(coins):
            other = (*flips[:k], 1 - flips[k], *flips[k + 1 :])
            values = curve.forward_values if flips[k] == 1 else curve.backward_values
            constraints += [(column[flips], column[other], np.exp(e), h) for e, h in zip(curve.at, values, strict=True)]
    total = size + width * len(constraints)
    # For each constraint, slacks t ≥ P(y | flips) - e^e P(y | other), t ≥ 0, whose sum is at most h.
    rows, limits = np.zeros((len(constraints) * (width + 1), total)), np.zeros(len(constraints) * (width + 1))
    for i, (one, other, odds, h) in enumerate(constraints):
        start, row = size + i * width, i * (width + 1)
        for y in range(width):
            rows[row + y, one + y], rows[row + y, other + y], rows[row + y, start + y] = 1, -odds, -1
        rows[row + width, start : start + width], limits[row + width] = 1, h
    sums = np.zeros((len(inputs), total))
    gain = np.zeros(total)
    for i, flips in enumerate(inputs):
        sums[i, i * width : (i + 1) * width] = 1
        for y, guess in enumerate(outputs):
            gain[i * width + y] = (sum(flips[k] == side for k, side in guess.items()) >= right) / len(inputs)
    solution = linprog(-gain, rows, limits, sums, np.ones(len(inputs)), bounds=(0, None), method="highs")
    assert solution.success
    return -solution.fun


ASYMMETRIC = Interpolated(1.0, (0.0, 0.5, 1.5), (0.5, 0.35, 0.2), (0.5, 0.3, 0.02))
SMALL = Interpolated(1.0, (0.0, 0.4, 1.0), (0.3, 0.15, 0.0), (0.3, 0.12, 0.0))
SIZES = [(1, 1, 1), (2, 1, 1), (2, 2, 2), (2, 2, 1), (3, 2, 2), (3, 3, 3), (3, 1, 1)]


@pytest.mark.parametrize("direction", list(Direction), ids=str)
@pytest.mark.parametrize("curve", [ASYMMETRIC, SMALL], ids=["asymmetric", "small"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_no_mechanism_beats_the_p_value(sizes, curve, direction):
    coins, made, right = sizes
    best = most_likely(coins, made, right, curve, direction)
    allowed = p_value(Guesses(coins, made, right), curve, direction)
    assert best <= allowed + 1e-7
    if made == right and direction is Direction.BOTH:
        assert best == pytest.approx(allowed, abs=1e-6 if made == 1 else 0.005)


def test_programmes_notice_an_optimistic_curve():
    optimistic = Interpolated(
        1.0,
        ASYMMETRIC.at,
        *(tuple(0.7 * h for h in values) for values in (ASYMMETRIC.forward_values, ASYMMETRIC.backward_values)),
    )
    for coins, made, right in SIZES[:3]:
        best = most_likely(coins, made, right, ASYMMETRIC, Direction.BOTH)
        assert best > p_value(Guesses(coins, made, right), optimistic) + 0.01


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_point_curve_is_tested_like_any(delta):
    """Randomised response with these (ε, δ) guesses one coin right with probability δ + (1 - δ) e^ε/(1 + e^ε), and no more."""
    chance = delta + (1 - delta) / (1 + np.exp(-1.0))
    assert p_value(Guesses(1, 1, 1), PointCurve(1.0, delta)) == pytest.approx(chance, abs=1e-4)


def draw(mu=2.0, trials=2, canaries=500, seed=0):
    return coins_of(gaussian_scores(mu), trials, canaries)(np.random.default_rng(seed))


def test_bound_says_which_curve_fell_and_for_how_much_noise():
    curve = GaussianCurve(0.8)
    bound = OneRunFDP(curve=curve).bound(draw(), **OPTIONS)
    family = family_of(curve, 1e-5)
    row = int(np.flatnonzero(family.noise == bound.effective_noise)[0])
    assert row > family.claimed
    assert bound.epsilon == family.epsilons[row]
    assert (bound.hypothesis, bound.curve, bound.fell_at) == (Hypothesis.CURVE, curve, 2)
    assert bound.guarantee is Guarantee.FINITE_SAMPLE
    assert not any("Gaussian mechanism" in text for text in bound.assumptions)
    assert EpsilonBound.from_json(bound.to_json()) == bound
    # Up to a step of the family it is the bound of the Gaussian formula.
    alone = OneRunFDP().bound(draw(), **OPTIONS)
    assert bound.epsilon <= alone.epsilon <= family.epsilons[row + 1] * 1.001
    assert alone.guarantee is Guarantee.CONDITIONAL
    assert alone.hypothesis is Hypothesis.POINT


def test_true_claim_stands():
    bound = OneRunFDP(curve=GaussianCurve(2.0)).bound(draw(), **OPTIONS)
    assert bound.fell_at is None
    assert bound.effective_noise > 1
    nothing = OneRunFDP(curve=GaussianCurve(2.0)).bound(draw(mu=0.0), **OPTIONS)
    assert (nothing.epsilon, nothing.effective_noise, nothing.fell_at) == (0.0, None, None)


@pytest.mark.parametrize("strategy", [RankGuesses(0.2), UnionThreshold(4), SplitThreshold(0.5)], ids=str)
@pytest.mark.parametrize(
    ("curve", "law"),
    [(GaussianCurve(1.0), gaussian_scores(2.0)), (LaplaceCurve(0.7), laplace_scores(0.35))],
    ids=["gaussian", "laplace"],
)
def test_half_the_noise_is_noticed(curve, law, strategy):
    scores = coins_of(law, 2, 3000)(np.random.default_rng(1))
    bound = OneRunFDP(strategy, curve=curve).bound(scores, **OPTIONS)
    assert bound.fell_at == 2
    assert bound.effective_noise < 1


def test_curve_without_finite_epsilon_is_refused():
    with pytest.raises(InvalidArgument, match=r"no finite ε at delta=0"):
        OneRunFDP(curve=GaussianCurve(1.0)).bound(draw(), delta=0, failure_probability=BETA)
    assert OneRunFDP(curve=LaplaceCurve(1.0)).bound(draw(), delta=0, failure_probability=BETA).fell_at == 2
    with pytest.raises(InvalidArgument, match="curve must be a PrivacyCurve"):
        OneRunFDP(curve="gaussian")


def test_method_without_a_curve_is_stored_as_before_there_were_curves():
    plain = to_plain(OneRunFDP())
    assert "curve" not in plain
    assert from_plain(plain) == OneRunFDP()


def test_method_with_a_curve_is_stored():
    method = OneRunFDP(RankGuesses(0.1), curve=EventCurve(sampled_event()))
    restored = from_plain(to_plain(method))
    assert restored == method
    assert restored.guarantee is Guarantee.FINITE_SAMPLE

"""Lifted betting against a claimed privacy curve: streaming, what the bound says, strength, bad input. Coverage is elsewhere."""

import numpy as np
import pytest

from lidp import Direction, InvalidArgument, LiftedBetting, Scores
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve
from lidp.epsilon_bound import EpsilonBound, Hypothesis
from lidp.stats.curve_family import family_of
from lidp.stats.lifted_bets import Counter
from lidp.stats.lifted_hypotheses import CurveHypotheses
from lidp.stats.storable import from_plain, to_plain
from tests.stats.curve_nulls import GaussianAlone, arms_of, gaussian_scores, laplace_scores, sampled_event

CURVE = GaussianCurve(0.6)
OPTIONS = {"delta": 1e-5, "failure_probability": 0.05}


def arms(trials=120, canaries=16, mu=1.2, seed=0, failed=0.0):
    rng = np.random.default_rng(seed)
    inserted = mu + rng.standard_normal((trials, canaries))
    held_out = rng.standard_normal((trials, canaries + 2))
    return Scores(inserted=inserted, held_out=held_out, failed=rng.random((trials, 2)) < failed)


@pytest.mark.parametrize(
    ("direction", "failed"), [("forward", 0.0), ("backward", 0.0), ("both", 0.0), ("both", 0.1)], ids=str
)
def test_run_gives_the_same_bits_in_one_update_or_many(direction, failed):
    scores = arms(failed=failed)
    method = LiftedBetting(direction=direction, curve=CURVE)
    whole = method.bound(scores, **OPTIONS)
    assert whole.fell_at is not None
    for cuts in ([*range(1, 120)], [1, 2, 7, 40, 41]):
        run = method.begin(**OPTIONS)
        live = []
        for start, stop in zip([0, *cuts], [*cuts, 120], strict=True):
            live.append((stop, run.update(scores[start:stop])))
        assert run.bound() == whole
        assert all(whole.epsilon_after(seen) == epsilon for seen, epsilon in live)


def test_bound_says_which_curve_fell_when_and_for_how_much_noise():
    bound = LiftedBetting(curve=CURVE).bound(arms(), **OPTIONS)
    family = family_of(CURVE, 1e-5)
    assert (bound.hypothesis, bound.curve) == (Hypothesis.CURVE, CURVE)
    row = int(np.flatnonzero(family.noise == bound.effective_noise)[0])
    assert bound.epsilon == family.epsilons[row] == bound.path[-1][1]
    assert 0.45 < bound.effective_noise < 1
    assert bound.rates["wealth"] >= 20
    # The claim falls at the first trial after which its ε is among those that are rejected.
    assert bound.fell_at == next(seen for seen, epsilon in bound.path if epsilon >= family.epsilons[family.claimed])
    assert EpsilonBound.from_json(bound.to_json()) == bound


def test_true_claim_stands_and_more_noise_is_excluded():
    bound = LiftedBetting(curve=GaussianCurve(1.2)).bound(arms(), **OPTIONS)
    assert bound.fell_at is None
    assert 1 < bound.effective_noise < 1.6
    assert bound.epsilon < GaussianCurve(1.2).epsilon(1e-5)


def test_nothing_is_excluded_if_arms_are_alike():
    bound = LiftedBetting(curve=CURVE).bound(arms(mu=0.0), **OPTIONS)
    assert (bound.epsilon, bound.effective_noise, bound.fell_at, bound.path) == (0.0, None, None, ())


def test_bets_depend_on_earlier_trials_only():
    scores = arms()
    inserted, held_out = (array.copy() for array in scores.arms())
    inserted[60:] -= 50
    method = LiftedBetting(curve=CURVE)
    a = method.bound(scores, **OPTIONS)
    b = method.bound(Scores(inserted=inserted, held_out=held_out), **OPTIONS)
    assert [a.epsilon_after(t) for t in range(61)] == [b.epsilon_after(t) for t in range(61)]


@pytest.mark.parametrize("curve", [CURVE, LaplaceCurve(0.5), GaussianCurve(3.0)], ids=str)
def test_wealth_stays_nonnegative_for_any_scores(curve):
    """Bets made on a huge difference, then the worst trials there can be."""
    run = LiftedBetting(curve=curve).begin(delta=1e-5, failure_probability=1e-90)
    run.update(arms(trials=40, mu=30))
    low, high = np.full((30, 16), -100.0), np.full((30, 18), 100.0)
    with np.errstate(all="raise", under="ignore"):
        run.update(Scores(inserted=low, held_out=high))
    assert np.isfinite(run._wealth.log_wealth).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("curve", "law"), [(GaussianCurve(0.6), gaussian_scores(1.2)), (LaplaceCurve(1.0), laplace_scores(0.5))]
)
def test_half_the_noise_is_noticed_within_forty_trials(curve, law, neighbours):
    for seed in range(3):
        inserted, held_out = arms_of(law, 40, 32)(np.random.default_rng(seed)).arms()
        scores = Scores(inserted=inserted, held_out=held_out, neighbours=neighbours)
        bound = LiftedBetting(curve=curve).bound(scores, **OPTIONS)
        assert bound.fell_at is not None
        assert bound.effective_noise < 1


def test_curve_falls_where_its_point_does_not():
    scores = arms(trials=150, canaries=32)
    point = LiftedBetting().bound(scores, **OPTIONS)
    assert point.epsilon < CURVE.epsilon(1e-5)
    assert LiftedBetting(curve=CURVE).bound(scores, **OPTIONS).fell_at < 60


class CoarseGaussian(GaussianCurve):
    """A curve whose small values are mostly rounding error."""

    least_value = 0.05


def test_rungs_that_are_rounding_errors_are_not_bet_on():
    curve = CoarseGaussian(0.6)
    family = family_of(curve, 1e-5)
    assert (np.maximum(family.forward, family.backward) <= curve.least_value).any(axis=1).mean() > 0.9
    bets, _ = CurveHypotheses(curve, 1e-5, 0.05).choose_bets(Counter(arms(mu=30)), Direction.BOTH)
    staked = np.add(*bets.stakes) > 0
    assert len(staked) == len(family)
    assert staked.mean() > 0.5
    assert (np.maximum(bets.hypotheses.forward, bets.hypotheses.backward)[staked] > curve.least_value).all()
    free, _ = CurveHypotheses(GaussianCurve(0.6), 1e-5, 0.05).choose_bets(Counter(arms(mu=30)), Direction.BOTH)
    assert (np.maximum(free.hypotheses.forward, free.hypotheses.backward) <= curve.least_value).any()


def test_curve_without_usable_rung_is_not_bet_against():
    class Doubtful(GaussianAlone):
        least_value = 1.0

    tested = CurveHypotheses(Doubtful(0.6), 1e-5, 0.05)
    bets, _ = tested.choose_bets(Counter(arms(mu=30)), Direction.BOTH)
    assert np.add(*bets.stakes).tolist() == [0.0]


def test_laplace_curve_has_a_bound_at_a_delta_of_zero_and_a_gaussian_one_has_not():
    draw = arms_of(laplace_scores(0.5), 60, 16)
    bound = LiftedBetting(curve=LaplaceCurve(1.0)).bound(draw(np.random.default_rng(1)), delta=0, failure_probability=0.05)
    assert bound.fell_at is not None
    assert bound.epsilon > 1
    with pytest.raises(InvalidArgument, match=r"no finite ε at delta=0; name a larger delta"):
        LiftedBetting(curve=CURVE).bound(arms(), delta=0, failure_probability=0.05)


def test_object_that_is_no_curve_is_refused():
    with pytest.raises(InvalidArgument, match="curve must be a PrivacyCurve"):
        LiftedBetting(curve=0.5)


def test_method_without_a_curve_is_stored_as_before_there_were_curves():
    plain = to_plain(LiftedBetting())
    assert "curve" not in plain
    assert from_plain(plain) == LiftedBetting()


def test_method_with_a_curve_is_stored():
    method = LiftedBetting(direction="forward", curve=EventCurve(sampled_event()))
    assert from_plain(to_plain(method)) == method
    assert list(method.parameters) == ["curve"]  # there is no grid of ε
    assert method.parameters["curve"].startswith("DP-SGD")
    assert list(LiftedBetting().parameters) == ["resolution", "largest"]

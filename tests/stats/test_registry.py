"""Bounds by every method of lidp: strength, invariances, refusals. Their contract is in test_method_contract."""

import dataclasses

import numpy as np
import pytest

from lidp import (
    METHODS,
    ClopperPearson,
    CoinFlip,
    CoinWager,
    CurveWager,
    CurveWagerWithGuesses,
    EpsilonBound,
    FixedThreshold,
    GaussianCurve,
    GaussianDP,
    InvalidArgument,
    JointBeta,
    LiftedBetting,
    MethodNotApplicable,
    OneRun,
    OneRunFDP,
    RankGuesses,
    Scores,
    SignedRanks,
    UnionThreshold,
    Wilson,
    applicable,
    bound,
)
from lidp.stats.method import ALIKE, Method
from lidp.stats.registry import point_method
from tests.stats.every_method import CLAIM, method_with_defaults


def arms(canaries=8, trials=300, shift=1.5, seed=0, neighbours="add-remove"):
    rng = np.random.default_rng(seed)
    return Scores(
        inserted=shift + rng.standard_normal((trials, canaries)),
        held_out=rng.standard_normal((trials, canaries)),
        neighbours=neighbours,
    )


def coins(canaries=8, trials=300, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    flips = rng.integers(0, 2, (trials, canaries))
    return Scores(scores=shift * flips + rng.standard_normal(flips.shape), coins=flips)


def scores_for(method: Method) -> Scores:
    for candidate in (arms(), coins(), arms(canaries=1)):
        try:
            method.check(candidate.design)
        except MethodNotApplicable:
            continue
        return candidate
    raise AssertionError(f"no scores for {method}")


def with_fixed_threshold(method: Method) -> Method:
    """Without tuning, monotonicity is exact: tuning may choose another threshold at another β."""
    fixed = RankGuesses(0.5) if isinstance(method, (OneRun, OneRunFDP, CurveWagerWithGuesses)) else FixedThreshold(0.7)
    names = {item.name for item in dataclasses.fields(method)}
    return dataclasses.replace(method, threshold=fixed) if "threshold" in names else method


every = pytest.mark.parametrize("name", list(METHODS))


@every
def test_clear_difference_gives_a_bound_above_0_3(name):
    method = method_with_defaults(name)
    scores = scores_for(method)
    result = bound(scores, method, delta=1e-5, failure_probability=0.05)
    assert result.epsilon > 0.3
    assert result.method == name
    assert result.guarantee is method.guarantee
    assert (result.trials, result.canaries, result.models) == (scores.trials, scores.canaries, scores.models)
    assert result.neighbours is scores.neighbours
    assert result.rates
    assert result.assumptions
    assert (ALIKE in result.assumptions) == (not scores_for(method_with_defaults(name)).has_coins)
    assert EpsilonBound.from_json(result.to_json()) == result
    assert name in str(result)


@every
def test_more_trials_give_a_larger_bound_on_average(name):
    method = with_fixed_threshold(method_with_defaults(name))
    few, many = (
        np.mean(
            [method.bound(_resized(method, n, seed), delta=1e-5, failure_probability=0.05).epsilon for seed in range(5)]
        )
        for n in (10, 600)
    )
    assert many > few


def _resized(method: Method, trials: int, seed: int) -> Scores:
    like = scores_for(method)
    make = coins if like.has_coins else arms
    return make(like.canaries, trials, seed=seed)


@every
def test_positive_affine_change_of_scores_changes_nothing(name):
    """A positive affine change of all scores changes nothing (a threshold is chosen, or counts ranks)."""
    method = method_with_defaults(name)
    scores = scores_for(method)
    arrays = scores.to_arrays()
    changed = Scores(**{key: value if key == "coins" else 4.0 * value - 1.0 for key, value in arrays.items()})
    expected = method.bound(scores, delta=1e-5, failure_probability=0.05).epsilon
    assert method.bound(changed, delta=1e-5, failure_probability=0.05).epsilon == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["wilson", "bernstein", "lifted-betting", "gaussian-dp"])
def test_order_of_canaries_within_a_trial_changes_nothing(name):
    scores = arms()
    rng = np.random.default_rng(9)
    shuffled = Scores(**{key: rng.permuted(value, axis=1) for key, value in scores.to_arrays().items()})
    expected = bound(scores, name, delta=1e-5).epsilon
    assert bound(shuffled, name, delta=1e-5).epsilon == expected


@every
def test_every_direction_gives_a_bound(name):
    """On symmetric evidence one direction is never better informed, but may be cheaper; both must work."""
    method = method_with_defaults(name)
    scores = scores_for(method)
    for direction in ("forward", "backward", "both"):
        result = dataclasses.replace(method, direction=direction).bound(scores, delta=1e-5, failure_probability=0.05)
        assert result.direction == direction
        assert result.epsilon > 0.2


@every
def test_one_to_three_trials_are_bounded(name):
    method = with_fixed_threshold(method_with_defaults(name))
    for trials in (1, 2, 3):
        result = method.bound(_resized(method, trials, 0), delta=1e-5, failure_probability=0.05)
        assert result.epsilon >= 0


def test_designs_that_are_not_covered_are_refused_with_the_reason():
    cases = [
        (OneRun(), arms(), "independent fair coins"),
        (OneRunFDP(), arms(), "independent fair coins"),
        (ClopperPearson(), arms(), "canaries of one model are dependent"),
        (JointBeta(), arms(), "canaries of one model are dependent"),
        (Wilson(), coins(), "how many are inserted varies"),
        (GaussianDP(), coins(), "use one-run-fdp"),
        (LiftedBetting(), coins(), "CoinWager"),
        (CoinWager(), arms(), "LiftedBetting"),
        (Wilson(16), arms(), "order 16 needs at least 16 canaries per trial, these scores have 8; use order=8"),
        (OneRun(FixedThreshold(0.0), direction="forward"), coins(), "random number of guesses"),
        (OneRun(UnionThreshold((0.0, 1.0))), coins(), "numbers of guesses"),
    ]
    for method, scores, reason in cases:
        with pytest.raises(MethodNotApplicable, match=reason):
            bound(scores, method, delta=1e-5)


def test_one_coin_per_trial_is_covered_by_all_methods_but_lifted_betting():
    one = coins(canaries=1, trials=600)
    result = {name for name, method in applicable(one, CLAIM).items() if not isinstance(method, str)}
    assert result == set(METHODS) - {"lifted-betting"}
    for name in result:
        assert bound(one, name, claim=CLAIM).epsilon > 0


def test_applicable_methods_give_bounds_and_others_a_reason():
    for scores in (arms(), arms(canaries=1), coins(), coins(canaries=1)):
        for method in applicable(scores).values():
            if isinstance(method, str):
                assert len(method) > 20
            else:
                bound(scores, method, delta=1e-5)


def test_default_is_the_betting_method_of_the_design():
    assert bound(arms(), delta=1e-5).method == "lifted-betting"
    assert bound(coins(), delta=1e-5).method == "coin-wager"


def test_bound_on_replace_one_scores_is_for_replace_one_neighbours():
    assert bound(arms(neighbours="replace-one"), delta=1e-5).neighbours == "replace-one"


def test_invalid_arguments_of_bound_are_named():
    with pytest.raises(InvalidArgument, match="unknown method 'magic'"):
        bound(arms(), "magic", delta=1e-5)
    with pytest.raises(InvalidArgument, match="got ndarray"):
        bound(np.ones((2, 2)), delta=1e-5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="method object or a name"):
        bound(arms(), 3, delta=1e-5)  # type: ignore[arg-type]


def test_delta_of_zero_is_bounded_or_refused():
    for method in (Wilson(), LiftedBetting(), CoinWager(), OneRun()):
        assert bound(scores_for(method), method, delta=0).epsilon > 0.3
    for method in (GaussianDP(), OneRunFDP()):
        with pytest.raises(InvalidArgument, match="delta must lie strictly between"):
            bound(scores_for(method), method, delta=0)


@every
def test_few_failed_runs_lower_the_bound_little(name):
    method = method_with_defaults(name)
    scores = scores_for(method)
    failed = np.zeros(scores.failed.shape, dtype=bool)
    failed[::50] = True
    marked = Scores(**scores.to_arrays(), failed=failed)
    clean = bound(scores, method, delta=1e-5).epsilon
    assert 0.6 * clean < bound(marked, method, delta=1e-5).epsilon


def test_sequential_scores_are_covered_by_the_wager_only():
    plain = coins(canaries=70)
    marked = Scores(**plain.to_arrays(), sequential=True)
    assert bound(marked, CoinWager(), delta=1e-5).epsilon > 0.5
    with pytest.raises(MethodNotApplicable, match="sequential"):
        bound(marked, OneRun(), delta=1e-5)
    with pytest.raises(InvalidArgument, match="interval must be"):
        GaussianDP(interval="wilson")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'0.01'"):
        CoinWager(resolution="0.01")  # type: ignore[arg-type]


@every
@pytest.mark.parametrize("directly", [True, False])
def test_only_anytime_valid_methods_bound_trials_that_were_stopped_early(name, directly):
    method = method_with_defaults(name)
    stopped = scores_for(method).stopped()
    for scores in (stopped, stopped[:200]):

        def compute(scores=scores):
            make = method.bound if directly else lambda given, **options: bound(given, method, **options)
            return make(scores, delta=1e-5, failure_probability=0.05)

        if method.anytime:
            assert compute().epsilon > 0.3
        else:
            with pytest.raises(MethodNotApplicable, match="were stopped when the claim was refuted.*stop_when='never'"):
                compute()
            assert "not anytime-valid" in applicable(scores, CLAIM)[name]


def test_method_of_a_user_cannot_bound_trials_that_were_stopped_early():
    class Careless(ClopperPearson):
        name = "careless"

        def check(self, design, *, sequential=False):
            """Checks nothing."""

    stopped = arms(canaries=1).stopped()
    for compute in (Careless().bound, lambda scores, **options: bound(scores, Careless(), **options)):
        with pytest.raises(MethodNotApplicable, match="stopped when the claim was refuted"):
            compute(stopped, delta=1e-5, failure_probability=0.05)


@every
@pytest.mark.parametrize(
    ("delta", "beta", "named"),
    [(-0.1, 0.05, "delta"), (1.0, 0.05, "delta"), (1e-5, 0.0, "failure_probability"), (1e-5, 1.0, "failure_probability")],
)
def test_invalid_probabilities_are_refused_by_the_method_itself(name, delta, beta, named):
    method = method_with_defaults(name)
    with pytest.raises(InvalidArgument, match=named):
        method.bound(scores_for(method), delta=delta, failure_probability=beta)


@pytest.mark.parametrize("kind", [CurveWager, CurveWagerWithGuesses, SignedRanks])
@pytest.mark.parametrize("log_odds", [True, False])
def test_point_beside_a_curve_takes_the_same_scores_for_log_odds(kind, log_odds):
    method = kind(GaussianCurve(1.0), log_odds=log_odds)
    assert point_method(CoinFlip(1), like=method).log_odds is log_odds

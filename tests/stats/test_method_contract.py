"""What every method owes its user, whichever it is."""

import dataclasses

import numpy as np
import pytest

from lidp import (
    METHODS,
    ClopperPearson,
    CoinWager,
    EpsilonBound,
    FixedThreshold,
    GaussianDP,
    InvalidArgument,
    JointBeta,
    LiftedBetting,
    MethodNotApplicable,
    OneRun,
    OneRunFDP,
    RankGuesses,
    Scores,
    UnionThreshold,
    Wilson,
    applicable,
    bound,
)
from lidp.stats.method import ALIKE, Method


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
    fixed = RankGuesses(0.5) if isinstance(method, (OneRun, OneRunFDP)) else FixedThreshold(0.7)
    names = {item.name for item in dataclasses.fields(method)}
    return dataclasses.replace(method, threshold=fixed) if "threshold" in names else method


every = pytest.mark.parametrize("name", list(METHODS))


@every
def test_a_clear_difference_gives_a_bound_and_its_whole_story(name):
    method = METHODS[name]()
    scores = scores_for(method)
    found = bound(scores, method, delta=1e-5, failure_probability=0.05)
    assert found.epsilon > 0.3
    assert found.method == name
    assert found.guarantee is method.guarantee
    assert (found.trials, found.canaries, found.models) == (scores.trials, scores.canaries, scores.models)
    assert found.neighbours is scores.neighbours
    assert found.rates
    assert found.assumptions
    assert (ALIKE in found.assumptions) == (not scores_for(METHODS[name]()).has_coins)
    assert EpsilonBound.from_json(found.to_json()) == found
    assert name in str(found)


@every
def test_no_difference_gives_zero(name):
    method = METHODS[name]()
    like = scores_for(method)
    blind = coins(like.canaries, shift=0, seed=1) if like.has_coins else arms(like.canaries, shift=0, seed=1)
    assert bound(blind, method, delta=1e-5, failure_probability=1e-4).epsilon == 0


@every
def test_monotone_in_the_failure_probability(name):
    method = with_fixed_threshold(METHODS[name]())
    scores = scores_for(method)
    epsilons = [method.bound(scores, delta=1e-5, failure_probability=b).epsilon for b in (1e-6, 1e-3, 0.01, 0.05, 0.3)]
    assert epsilons == sorted(epsilons)
    assert epsilons[0] < epsilons[-1]


@every
def test_monotone_in_delta(name):
    method = with_fixed_threshold(METHODS[name]())
    scores = scores_for(method)
    epsilons = [method.bound(scores, delta=d, failure_probability=0.05).epsilon for d in (1e-6, 1e-4, 1e-2, 0.2)]
    # The betting methods choose other stakes at another δ, so there the order may be off by a few grid steps.
    slack = 0.03 if isinstance(method, (LiftedBetting, CoinWager)) else 1e-9
    assert all(later <= earlier + slack for earlier, later in zip(epsilons, epsilons[1:], strict=False))
    assert epsilons[-1] < epsilons[0]


@every
def test_more_trials_give_more(name):
    method = with_fixed_threshold(METHODS[name]())
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
def test_only_the_order_of_scores_matters(name):
    """A positive affine change of all scores changes nothing (a threshold is chosen, or counts ranks)."""
    method = METHODS[name]()
    scores = scores_for(method)
    arrays = scores.to_arrays()
    changed = Scores(**{key: value if key == "coins" else 4.0 * value - 1.0 for key, value in arrays.items()})
    expected = method.bound(scores, delta=1e-5, failure_probability=0.05).epsilon
    assert method.bound(changed, delta=1e-5, failure_probability=0.05).epsilon == pytest.approx(expected, abs=1e-9)


@every
def test_swapping_in_and_out_swaps_the_directions(name):
    method = METHODS[name]()
    scores = scores_for(method)
    arrays = scores.to_arrays()
    if scores.has_coins:
        mirrored = Scores(scores=-arrays["scores"], coins=1 - arrays["coins"].astype(int))
    else:
        mirrored = Scores(inserted=-arrays["held_out"], held_out=-arrays["inserted"])
    forward = dataclasses.replace(method, direction="forward").bound(scores, delta=1e-5, failure_probability=0.05)
    backward = dataclasses.replace(method, direction="backward").bound(mirrored, delta=1e-5, failure_probability=0.05)
    assert forward.epsilon > 0
    assert backward.epsilon == pytest.approx(forward.epsilon, rel=0.05, abs=0.03)


@pytest.mark.parametrize("name", ["wilson", "bernstein", "lifted-betting", "gaussian-dp"])
def test_canaries_of_a_trial_may_be_relabelled(name):
    scores = arms()
    rng = np.random.default_rng(9)
    shuffled = Scores(**{key: rng.permuted(value, axis=1) for key, value in scores.to_arrays().items()})
    expected = bound(scores, name, delta=1e-5).epsilon
    assert bound(shuffled, name, delta=1e-5).epsilon == expected


@every
def test_one_direction_costs_less_than_both(name):
    """On symmetric evidence one direction is never better informed, but may be cheaper; both must work."""
    method = METHODS[name]()
    scores = scores_for(method)
    for direction in ("forward", "backward", "both"):
        found = dataclasses.replace(method, direction=direction).bound(scores, delta=1e-5, failure_probability=0.05)
        assert found.direction == direction
        assert found.epsilon > 0.2


@every
@pytest.mark.parametrize(
    ("delta", "failure_probability", "message"),
    [(-0.1, 0.05, "delta"), (1.0, 0.05, "delta"), (1e-5, 0, "failure_probability"), (1e-5, 1, "failure_probability")],
)
def test_bad_probabilities(name, delta, failure_probability, message):
    method = METHODS[name]()
    with pytest.raises(InvalidArgument, match=message):
        bound(scores_for(method), method, delta=delta, failure_probability=failure_probability)


@every
def test_bad_direction(name):
    with pytest.raises(InvalidArgument, match="sideways"):
        METHODS[name](direction="sideways")  # type: ignore[call-arg]


@every
def test_a_tiny_sample_is_no_reason_to_fail(name):
    method = with_fixed_threshold(METHODS[name]())
    for trials in (1, 2, 3):
        found = method.bound(_resized(method, trials, 0), delta=1e-5, failure_probability=0.05)
        assert found.epsilon >= 0


@every
def test_constant_scores_are_no_reason_to_fail(name):
    method = METHODS[name]()
    like = scores_for(method)
    arrays = like.to_arrays()
    constant = Scores(**{key: value if key == "coins" else 0 * value for key, value in arrays.items()})
    assert method.bound(constant, delta=1e-5, failure_probability=0.05).epsilon == 0


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


def test_one_coin_a_trial_suits_binomial_methods():
    one = coins(canaries=1, trials=600)
    found = {name for name, method in applicable(one).items() if not isinstance(method, str)}
    assert found == set(METHODS) - {"lifted-betting"}
    for name in found:
        assert bound(one, name, delta=1e-5).epsilon > 0


def test_applicable_methods_are_those_that_work():
    for scores in (arms(), arms(canaries=1), coins(), coins(canaries=1)):
        for method in applicable(scores).values():
            if isinstance(method, str):
                assert len(method) > 20
            else:
                bound(scores, method, delta=1e-5)


def test_the_default_is_the_betting_method_of_the_design():
    assert bound(arms(), delta=1e-5).method == "lifted-betting"
    assert bound(coins(), delta=1e-5).method == "coin-wager"


def test_replace_one_stays_replace_one():
    assert bound(arms(neighbours="replace-one"), delta=1e-5).neighbours == "replace-one"


def test_bound_names_what_it_got():
    with pytest.raises(InvalidArgument, match="unknown method 'magic'"):
        bound(arms(), "magic", delta=1e-5)
    with pytest.raises(InvalidArgument, match="got ndarray"):
        bound(np.ones((2, 2)), delta=1e-5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="method object or a name"):
        bound(arms(), 3, delta=1e-5)  # type: ignore[arg-type]


def test_delta_zero():
    for method in (Wilson(), LiftedBetting(), CoinWager(), OneRun()):
        assert bound(scores_for(method), method, delta=0).epsilon > 0.3
    for method in (GaussianDP(), OneRunFDP()):
        with pytest.raises(InvalidArgument, match="delta must lie strictly between"):
            bound(scores_for(method), method, delta=0)


@every
def test_failed_runs_are_no_evidence(name):
    """However clear the scores: if every run failed, there is nothing to go by."""
    method = METHODS[name]()
    scores = scores_for(method)
    found = bound(Scores(**scores.to_arrays(), failed=np.ones_like(scores.failed)), method, delta=1e-5)
    assert found.epsilon == 0
    assert EpsilonBound.from_json(found.to_json()) == found


@every
def test_a_few_failed_runs_cost_little(name):
    method = METHODS[name]()
    scores = scores_for(method)
    failed = np.zeros(scores.failed.shape, dtype=bool)
    failed[::50] = True
    marked = Scores(**scores.to_arrays(), failed=failed)
    clean = bound(scores, method, delta=1e-5).epsilon
    assert 0.6 * clean < bound(marked, method, delta=1e-5).epsilon


def test_sequential_scores_are_for_the_wager_only():
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
    method = METHODS[name]()
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
            assert "not anytime-valid" in applicable(scores)[name]


def test_a_method_of_ones_own_cannot_bound_stopped_trials_either():
    class Careless(ClopperPearson):
        name = "careless"

        def check(self, design, *, sequential=False):
            """Checks nothing."""

    stopped = arms(canaries=1).stopped()
    for compute in (Careless().bound, lambda scores, **options: bound(scores, Careless(), **options)):
        with pytest.raises(MethodNotApplicable, match="stopped when the claim was refuted"):
            compute(stopped, delta=1e-5, failure_probability=0.05)

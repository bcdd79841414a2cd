import numpy as np
import pytest

from lidp import Direction, InvalidArgument, InvalidScores, LiftedBetting, Scores
from lidp.stats.lifted_bets import Counter


def arms(trials=150, canaries=6, shift=1.2, seed=0):
    rng = np.random.default_rng(seed)
    return Scores(
        inserted=shift + rng.standard_normal((trials, canaries)), held_out=rng.standard_normal((trials, canaries + 2))
    )


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_run_gives_the_same_bits_in_one_update_or_many(direction):
    scores = arms()
    method = LiftedBetting(direction=direction)
    whole = method.bound(scores, delta=1e-5, failure_probability=0.05)
    for cuts in ([*range(1, 150)], [1, 7, 8, 9, 40, 41], [149]):
        run = method.begin(delta=1e-5, failure_probability=0.05)
        live = []
        for start, stop in zip([0, *cuts], [*cuts, 150], strict=True):
            live.append((stop, run.update(scores[start:stop])))
        assert run.bound() == whole
        assert all(whole.epsilon_after(seen) == epsilon for seen, epsilon in live)


def test_path_never_falls_and_ends_at_the_bound():
    result = LiftedBetting().bound(arms(), delta=1e-5, failure_probability=0.05)
    epsilons = [epsilon for _, epsilon in result.path]
    assert epsilons == sorted(set(epsilons))
    assert result.path[-1][1] == result.epsilon
    assert result.path[-1][0] <= result.trials


def test_bets_depend_on_earlier_trials_only():
    """What happens after trial t cannot change the bound after trial t."""
    scores = arms()
    inserted, held_out = (array.copy() for array in scores.arms())
    inserted[100:] -= 50
    changed = Scores(inserted=inserted, held_out=held_out)
    a = LiftedBetting().bound(scores, delta=1e-5, failure_probability=0.05)
    b = LiftedBetting().bound(changed, delta=1e-5, failure_probability=0.05)
    assert [a.epsilon_after(t) for t in range(101)] == [b.epsilon_after(t) for t in range(101)]


def test_no_bet_is_made_during_the_warm_up():
    scores = arms(trials=8, shift=50)
    assert LiftedBetting().bound(scores, delta=0, failure_probability=0.05).epsilon == 0


def test_wealth_stays_nonnegative_for_any_scores():
    """Bets made on a huge difference, then the worst trials there can be."""
    good = arms(trials=100, shift=30)
    run = LiftedBetting().begin(delta=0.1, failure_probability=1e-12)
    run.update(good)
    low, high = np.full((50, 6), -100.0), np.full((50, 8), 100.0)
    with np.errstate(all="raise"):
        run.update(Scores(inserted=low, held_out=high))
    assert np.isfinite(run._wealth.log_wealth).all()


def test_both_directions_find_what_either_alone_finds():
    """Canaries found by low scores of the held-out only, then by high scores of the inserted only."""
    rng = np.random.default_rng(3)
    n, k = 400, 8
    common = rng.random((n, k)) + 1
    rare = np.where(rng.random((n, k)) < 0.2, 5.0, rng.random((n, k)) + 1)
    rare_low = np.where(rng.random((n, k)) < 0.2, -5.0, rng.random((n, k)) + 1)
    for scores in (Scores(inserted=rare, held_out=common), Scores(inserted=common, held_out=rare_low)):
        assert LiftedBetting().bound(scores, delta=0, failure_probability=0.05).epsilon > 1.5


def test_run_refuses_trials_of_another_design():
    run = LiftedBetting().begin(delta=0, failure_probability=0.05)
    with pytest.raises(InvalidScores, match="no trial"):
        run.bound()
    run.update(arms(canaries=6))
    with pytest.raises(InvalidScores, match="the run began with"):
        run.update(arms(canaries=7))


@pytest.mark.parametrize(
    "options", [{"resolution": 0}, {"largest": -1}, {"resolution": 1, "largest": 0.5}, {"resolution": 1e-9}]
)
def test_invalid_grids_are_refused(options):
    with pytest.raises(InvalidArgument, match="resolution|largest"):
        LiftedBetting(**options)


def test_bound_lies_on_the_grid():
    result = LiftedBetting(resolution=0.25).bound(arms(), delta=0, failure_probability=0.05)
    assert result.epsilon in {0.25 * i for i in range(20)}


def test_counts_with_and_without_failed_runs_agree():
    """The short cut for blocks without failed runs adds what the long way adds."""
    scores = arms(trials=40)
    short, long = Counter(scores), Counter(scores)
    counts = short.count(scores)
    long.trials += scores.trials
    long._add(counts)
    for part in Direction.BOTH.parts:
        np.testing.assert_array_equal(short.sums[part], long.sums[part])
    for pair in short.products:
        np.testing.assert_array_equal(short.products[pair], long.products[pair])


def test_one_update_and_many_agree_with_failed_runs():
    whole = arms()
    failed = np.random.default_rng(5).random((150, 2)) < 0.1
    scores = Scores(**whole.to_arrays(), failed=failed)
    expected = LiftedBetting().bound(scores, delta=1e-5, failure_probability=0.05)
    assert expected.epsilon > 0
    run = LiftedBetting().begin(delta=1e-5, failure_probability=0.05)
    for t in range(150):
        run.update(scores[t : t + 1])
    assert run.bound() == expected

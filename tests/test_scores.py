import numpy as np
import pytest
from scipy import stats

from lidp import CoinFlip, InvalidArgument, InvalidScores, LeaveOneOut, MethodNotApplicable, Neighbours, ReplaceOne, Scores
from lidp.scores import _chance_of


def test_two_arms_make_leave_one_out_scores():
    scores = Scores(inserted=np.ones((5, 3)), held_out=np.zeros((5, 2)))
    assert scores.design == LeaveOneOut(canaries=3, held_out=2)
    assert (scores.trials, scores.canaries, scores.models) == (5, 3, 10)
    assert scores.neighbours is Neighbours.ADD_REMOVE
    with pytest.raises(MethodNotApplicable, match="no coins"):
        scores.flips()


def test_replace_one_neighbours_make_replace_one_scores():
    scores = Scores(inserted=[[1]], held_out=[[0]], neighbours="replace-one")
    assert scores.design == ReplaceOne(1, 1)
    assert scores.models == 1


def test_coins_make_coin_flip_scores():
    scores = Scores(scores=[[1, 2], [3, 4]], coins=[[0, 1], [1, 0]])
    assert scores.design == CoinFlip(2)
    assert scores.flips()[1].dtype == bool
    with pytest.raises(MethodNotApplicable, match="no fixed arms"):
        scores.arms()


def test_arrays_are_read_only_copies():
    mine = np.ones((2, 2))
    scores = Scores(inserted=mine, held_out=mine)
    mine[0, 0] = 7
    inserted, _ = scores.arms()
    assert inserted[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        inserted[0, 0] = 7


def test_slices_are_by_trial():
    scores = Scores(scores=np.arange(6).reshape(3, 2), coins=np.zeros((3, 2)))
    assert scores[1:].trials == 2
    assert scores[1:].flips()[0][0, 0] == 2
    with pytest.raises(InvalidScores, match="no trial"):
        scores[3:]
    with pytest.raises(TypeError, match="sliced by trial"):
        scores[0]  # type: ignore[index]


GOOD = np.ones((3, 2))


def spoiled(value):
    bad = np.ones((3, 2))
    bad[2, 1] = value
    return bad


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"inserted": spoiled(np.nan), "held_out": GOOD}, "inserted must be finite, got nan at trial 2, canary 1"),
        ({"inserted": GOOD, "held_out": spoiled(np.inf)}, "held_out must be finite, got inf at trial 2, canary 1"),
        ({"scores": spoiled(-np.inf), "coins": GOOD}, "scores must be finite, got -inf at trial 2, canary 1"),
        ({"scores": GOOD, "coins": spoiled(2)}, "coins must be 0 or 1, got 2.0 at trial 2, canary 1"),
        ({"scores": GOOD, "coins": spoiled(np.nan)}, "coins must be 0 or 1, got nan at trial 2, canary 1"),
        ({"scores": GOOD, "coins": GOOD[:2]}, r"coins must have the shape of scores, \(3, 2\), got \(2, 2\)"),
        ({"inserted": GOOD, "held_out": GOOD[:2]}, "inserted has 3 trials but held_out has 2"),
        ({"inserted": GOOD[0], "held_out": GOOD}, r"inserted must have two axes.*got shape \(2,\)"),
        ({"inserted": GOOD[:0], "held_out": GOOD[:0]}, "at least one trial"),
        ({"inserted": GOOD[:, :0], "held_out": GOOD}, "at least one canary"),
        ({"inserted": [[1, 2], [3]], "held_out": GOOD}, "rows differ in length"),
        ({"inserted": [["a"]], "held_out": [[1]]}, "real numbers"),
        ({"inserted": [[1j]], "held_out": [[1]]}, "real numbers"),
        ({"inserted": GOOD}, "got inserted"),
        ({"inserted": GOOD, "coins": GOOD}, "got coins and inserted"),
        ({}, "got nothing"),
        ({"scores": np.ones((4, 32)), "coins": np.ones((4, 32))}, "coins must be fair, but 128 of 128 are 1"),
        (
            {"scores": np.ones((50, 4)), "coins": [[0, 1, 1, 0]] * 50},
            "exactly 2 of the 4 canaries are inserted in every trial",
        ),
        ({"scores": GOOD, "coins": GOOD, "failed": [1, 0]}, r"failed must be 3 trials x 1 runs"),
        ({"inserted": GOOD, "held_out": GOOD, "failed": [1, 0, 0]}, r"failed must be 3 trials x 2 runs"),
        ({"inserted": np.array([["1e4000"]], dtype=np.longdouble), "held_out": [[1]]}, "got inf at trial 0"),
    ],
)
def test_invalid_arrays_are_refused_with_the_reason(arrays, message):
    with pytest.raises(InvalidScores, match=message):
        Scores(**arrays)


def test_unknown_neighbours_are_refused():
    with pytest.raises(InvalidArgument, match="'next-door'"):
        Scores(inserted=GOOD, held_out=GOOD, neighbours="next-door")


def test_failed_runs_are_kept_and_marked():
    scores = Scores(inserted=spoiled(np.nan), held_out=GOOD, failed=[[0, 0], [0, 0], [1, 0]])
    inserted, held_out = scores.arms()
    assert np.isnan(inserted[2]).all()
    assert (held_out == 1).all()
    assert scores[2:].failed.tolist() == [[True, False]]
    assert scores.to_arrays()["failed"].sum() == 1
    with pytest.raises(InvalidScores, match="mark it in failed="):
        Scores(inserted=spoiled(np.nan), held_out=GOOD, failed=[[1, 0], [0, 0], [0, 0]])


def test_join_inverts_slicing():
    rng = np.random.default_rng(0)
    scores = Scores(scores=rng.standard_normal((5, 3)), coins=rng.integers(0, 2, (5, 3)), failed=[0, 1, 0, 0, 1])
    again = Scores.join([scores[:2], scores[2:3], scores[3:]])
    assert again.design == scores.design
    for name, array in scores.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)
    with pytest.raises(InvalidScores, match="no trial"):
        Scores.join([])


def sorted_by_coin(trials, canaries, seed=0):
    """Pure noise whose canaries were put in the order of their coins: per trial, or over all trials if each has one."""
    rng = np.random.default_rng(seed)
    coins = np.sort(rng.integers(0, 2, (trials, canaries)), axis=1 if canaries > 1 else 0)
    return {"scores": rng.standard_normal(coins.shape), "coins": coins[:, ::-1]}


@pytest.mark.parametrize(
    ("trials", "canaries", "seen"),
    [
        (1, 256, "1 of 255 neighbouring canaries of a trial differ"),
        (16, 64, "16 of 1,008 neighbouring canaries of a trial differ"),
        (256, 1, "1 of 255 coins of consecutive trials differ"),
    ],
)
def test_coins_in_an_order_unlikely_for_fair_coins_are_refused(trials, canaries, seen):
    with pytest.raises(InvalidScores, match=f"{seen}.*were they sorted by coin.*in which they were drawn"):
        Scores(**sorted_by_coin(trials, canaries))


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize(("trials", "canaries"), [(60, 2), (250, 8), (100, 64), (40, 255)])
def test_trials_ordered_by_their_number_of_inserted_canaries_are_refused(trials, canaries, step):
    rng = np.random.default_rng(trials)
    coins = rng.integers(0, 2, (trials, canaries))
    coins = coins[np.argsort(coins.sum(axis=1), kind="stable")][::step]
    with pytest.raises(InvalidScores, match="1 of [0-9]+ majorities of coins of consecutive trials differ.*sorted by coin"):
        Scores(scores=rng.standard_normal(coins.shape), coins=coins)


@pytest.mark.parametrize("sequential", [False, True])
def test_alternating_and_repeated_coins_are_refused(sequential):
    alternating = np.arange(100).reshape(1, 100) % 2
    with pytest.raises(InvalidScores, match="99 of 99 neighbouring"):
        Scores(scores=np.zeros((1, 100)), coins=alternating, sequential=sequential)
    repeated = [[0, 0, 1, 0, 1, 1, 0, 1, 1]] * 20
    with pytest.raises(InvalidScores, match="0 of 171 coins of consecutive trials differ"):
        Scores(scores=np.zeros((20, 9)), coins=repeated, sequential=sequential)


@pytest.mark.parametrize(("trials", "canaries"), [(1, 1), (1, 30), (8, 4), (40, 1), (1, 40), (1000, 64), (20_000, 1)])
def test_fair_coins_are_accepted(trials, canaries):
    """Each of these seeds is refused with a probability of about 2e-6."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        coins = rng.integers(0, 2, (trials, canaries))
        assert Scores(scores=rng.standard_normal(coins.shape), coins=coins).trials == trials


@pytest.mark.parametrize(("heads", "accepted"), [(500, True), (575, True), (425, True), (580, False), (420, False)])
def test_unfair_coins_are_refused_at_one_in_a_million(heads, accepted):
    coins = np.random.default_rng(1).permutation(np.arange(1000) < heads).reshape(1, -1)
    arrays = {"scores": np.zeros((1, 1000)), "coins": coins}
    if accepted:
        assert Scores(**arrays).trials == 1
    else:
        with pytest.raises(InvalidScores, match=f"coins must be fair, but {heads} of 1,000 are 1"):
            Scores(**arrays)
    assert Scores.of_block(**arrays, neighbours=Neighbours.ADD_REMOVE).trials == 1  # one block of many may be uneven


@pytest.mark.parametrize("size", [1, 2, 9, 40, 1001])
def test_chance_of_uneven_coins_is_an_upper_bound_that_is_tight_in_the_tail(size):
    for heads in range(size + 1):
        exact = min(1.0, 2 * stats.binom.sf(max(heads, size - heads) - 1, size, 0.5))
        assert exact * (1 - 1e-9) <= _chance_of(heads, size) <= 1
        if 1e-300 < exact < 1e-3:
            assert _chance_of(heads, size) < 1.1 * exact


def test_stopped_early_mark_survives_slicing_and_joining():
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (6, 3))
    scores = Scores(scores=rng.standard_normal((6, 3)), coins=coins, stopped_early=True)
    assert scores.stopped_early
    assert scores[:4].stopped_early
    whole = Scores(scores=rng.standard_normal((6, 3)), coins=coins)
    assert not whole.stopped_early
    assert not whole[:4].stopped_early
    assert whole.stopped().stopped_early
    assert not whole.stopped_early
    assert Scores.join([whole, scores[2:]]).stopped_early

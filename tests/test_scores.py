import numpy as np
import pytest

from lidp import CoinFlip, InvalidArgument, InvalidScores, LeaveOneOut, MethodNotApplicable, Neighbours, ReplaceOne, Scores


def test_arms():
    scores = Scores(inserted=np.ones((5, 3)), held_out=np.zeros((5, 2)))
    assert scores.design == LeaveOneOut(canaries=3, held_out=2)
    assert (scores.trials, scores.canaries, scores.models) == (5, 3, 10)
    assert scores.neighbours is Neighbours.ADD_REMOVE
    with pytest.raises(MethodNotApplicable, match="no coins"):
        scores.flips()


def test_replace_one():
    scores = Scores(inserted=[[1]], held_out=[[0]], neighbours="replace-one")
    assert scores.design == ReplaceOne(1, 1)
    assert scores.models == 1


def test_coins():
    scores = Scores(scores=[[1, 2], [3, 4]], coins=[[0, 1], [1, 0]])
    assert scores.design == CoinFlip(2)
    assert scores.flips()[1].dtype == bool
    with pytest.raises(MethodNotApplicable, match="no fixed arms"):
        scores.arms()


def test_the_arrays_are_copies_and_cannot_be_changed():
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
        ({"scores": np.ones((50, 4)), "coins": [[0, 1, 1, 0]] * 50}, "exactly 2 of the 4 canaries are in, in every trial"),
        ({"scores": GOOD, "coins": GOOD, "failed": [1, 0]}, r"failed must be 3 trials x 1 runs"),
        ({"inserted": GOOD, "held_out": GOOD, "failed": [1, 0, 0]}, r"failed must be 3 trials x 2 runs"),
        ({"inserted": np.array([["1e4000"]], dtype=np.longdouble), "held_out": [[1]]}, "got inf at trial 0"),
    ],
)
def test_what_is_wrong_is_named(arrays, message):
    with pytest.raises(InvalidScores, match=message):
        Scores(**arrays)


def test_an_unknown_relation():
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


def test_joining_is_the_inverse_of_slicing():
    rng = np.random.default_rng(0)
    scores = Scores(scores=rng.standard_normal((5, 3)), coins=rng.integers(0, 2, (5, 3)), failed=[0, 1, 0, 0, 1])
    again = Scores.join([scores[:2], scores[2:3], scores[3:]])
    assert again.design == scores.design
    for name, array in scores.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)
    with pytest.raises(InvalidScores, match="no trial"):
        Scores.join([])

import pytest

from lidp import Claim, CoinFlip, Direction, InvalidArgument, LeaveOneOut, Neighbours, ReplaceOne


def test_claim_as_text():
    assert str(Claim(2, 1e-5)) == "(2, 1e-05)-DP under add-remove neighbours"


@pytest.mark.parametrize(
    ("epsilon", "delta", "names"),
    [(-1, 0, "epsilon"), (float("nan"), 0, "epsilon"), (float("inf"), 0, "epsilon"), (1, 1, "delta"), (1, -0.1, "delta")],
)
def test_claim_outside_its_range_is_refused(epsilon, delta, names):
    with pytest.raises(InvalidArgument, match=names):
        Claim(epsilon, delta)


def test_claim_that_is_not_a_number_is_refused():
    with pytest.raises(InvalidArgument, match="'two'"):
        Claim("two")  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda: Claim(1, 0, "bogus"), lambda: CoinFlip(3, "bogus")])
def test_unknown_neighbours_are_refused(make):
    with pytest.raises(InvalidArgument, match="'bogus'"):
        make()


def test_designs_have_models_per_trial_and_neighbours():
    assert (LeaveOneOut(8, 4).models_per_trial, LeaveOneOut(8, 4).neighbours) == (2, Neighbours.ADD_REMOVE)
    assert (ReplaceOne(8, 4).models_per_trial, ReplaceOne(8, 4).neighbours) == (1, Neighbours.REPLACE_ONE)
    assert (CoinFlip(8).models_per_trial, CoinFlip(8).neighbours) == (1, Neighbours.ADD_REMOVE)
    assert CoinFlip(8, "replace-one").neighbours is Neighbours.REPLACE_ONE


@pytest.mark.parametrize(
    "make",
    [lambda: LeaveOneOut(0, 1), lambda: LeaveOneOut(1, 0), lambda: CoinFlip(1.5), lambda: LeaveOneOut(float("inf"), 1)],
)
def test_design_with_an_invalid_count_is_refused(make):
    with pytest.raises(InvalidArgument, match="whole number"):
        make()


def test_direction_both_consists_of_forward_and_backward():
    assert Direction.BOTH.parts == (Direction.FORWARD, Direction.BACKWARD)
    assert Direction.FORWARD.parts == (Direction.FORWARD,)

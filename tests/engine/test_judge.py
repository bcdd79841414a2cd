"""``judge``: every way from a bound to a verdict."""

import pytest

from lidp import Claim, InvalidArgument, Neighbours, Verdict
from lidp.claim import Direction
from lidp.engine.judge import judge
from lidp.epsilon_bound import EpsilonBound, Guarantee

CLAIM = Claim(1.0, 1e-5)


def bound_of(epsilon, neighbours=Neighbours.ADD_REMOVE):
    return EpsilonBound(
        epsilon=epsilon,
        delta=CLAIM.delta,
        failure_probability=0.05,
        method="lifted betting",
        guarantee=Guarantee.FINITE_SAMPLE,
        neighbours=neighbours,
        direction=Direction.BOTH,
        trials=10,
        canaries=4,
        models=10,
    )


@pytest.mark.parametrize(
    ("epsilon", "provisional", "could_refute", "verdict"),
    [
        (1.5, False, True, Verdict.REFUTED),
        (1.5, False, False, Verdict.REFUTED),
        (1.0, False, True, Verdict.NOT_REFUTED),  # a bound equal to the claim does not contradict it
        (0.0, False, True, Verdict.NOT_REFUTED),
        (0.0, False, False, Verdict.INCONCLUSIVE),
        (1.5, True, True, Verdict.INCONCLUSIVE),
        (0.0, True, True, Verdict.INCONCLUSIVE),
        (0.0, True, False, Verdict.INCONCLUSIVE),
    ],
)
def test_verdict(epsilon, provisional, could_refute, verdict):
    assert judge(bound_of(epsilon), CLAIM, provisional=provisional, could_refute=could_refute) is verdict


def test_a_bound_for_other_neighbours_gives_no_verdict():
    with pytest.raises(InvalidArgument, match="a bound for one relation says nothing about the other"):
        judge(bound_of(1.5, Neighbours.REPLACE_ONE), CLAIM, provisional=False, could_refute=True)

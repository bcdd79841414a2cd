"""The claim of an accountant follows from what it was told."""

import pytest

from lidp import Claim, InvalidArgument
from lidp.integrations.accounted_steps import AccountedSteps

STEPS = AccountedSteps(2.0, 0.5, 10)


def test_the_claim_is_that_of_dp_sgd():
    expected = Claim.dpsgd(noise_multiplier=2.0, sampling_rate=0.5, steps=10, delta=1e-6)
    assert STEPS.choose(1e-6, None) == expected
    assert STEPS.curve == expected.curve


def test_a_given_claim_is_kept():
    assert STEPS.choose(None, Claim(3.0)) == Claim(3.0)


@pytest.mark.parametrize(("delta", "claim"), [(None, None), (1e-5, Claim(1.0))])
def test_delta_and_claim_together_or_neither_are_refused(delta, claim):
    with pytest.raises(InvalidArgument, match="give either delta, for the claim of PLD accounting, or a claim"):
        STEPS.choose(delta, claim)


def test_steps_that_promise_nothing_have_no_curve():
    assert AccountedSteps(0.01, 1.0, 1000).curve is None


@pytest.mark.parametrize("told", [(0.0, 0.5, 10), (1.0, 1.5, 10), (1.0, 0.5, 0)])
def test_impossible_steps_are_refused(told):
    with pytest.raises(InvalidArgument):
        AccountedSteps(*told)

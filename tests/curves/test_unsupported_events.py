"""Events without a curve are refused by name, with a claim that can be made instead and is true."""

import re

import dp_accounting
import pytest
from dp_accounting import NeighboringRelation, pld, rdp
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from lidp import Claim, InvalidArgument

GAUSSIAN = dp_accounting.GaussianDpEvent(1.0)


def tree(noise_multiplier, step_counts):
    return dp_accounting.SingleEpochTreeAggregationDpEvent(noise_multiplier, step_counts)


def refusal(event):
    with pytest.raises(InvalidArgument) as refused:
        Claim.from_event(event)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_the_accountant_has_no_curve_of_tree_aggregation():
    """When this fails, ``Claim.from_event`` can take these events."""
    for relation in NeighboringRelation:
        assert not pld.PLDAccountant(relation).supports(tree(1.0, 8))


@pytest.mark.parametrize(("steps", "depth"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), ([3, 8, 2], 4), ((3,), 2)])
def test_tree_aggregation_is_refused_with_the_curve_of_its_deepest_path(steps, depth):
    message = refusal(tree(2.0, steps))
    assert message.startswith(
        "the PLD accountant has no privacy curve for SingleEpochTreeAggregationDpEvent; a record changes"
    )
    mu = float(re.search(r"Claim\.gaussian\(mu=([\d.]+)\)", message).group(1))
    rho = float(re.search(r"Claim\.zcdp\(rho=([\d.]+)\)", message).group(1))
    assert mu == pytest.approx(depth**0.5 / 2, rel=1e-3)
    assert rho == pytest.approx(depth / 8, rel=1e-3)
    assert mu >= depth**0.5 / 2
    assert rho >= depth / 8


@pytest.mark.parametrize("steps", [5, [5, 3]])
def test_the_claims_named_for_tree_aggregation_follow_from_the_accountant(steps):
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(tree(2.0, steps))
    gaussian = rdp.RdpAccountant()
    gaussian.compose(dp_accounting.GaussianDpEvent(2.0 / 3**0.5))
    assert accountant.get_epsilon(1e-5) == pytest.approx(gaussian.get_epsilon(1e-5), rel=1e-9)
    exact, concentrated = Claim.gaussian(3**0.5 / 2), Claim.zcdp(3 / 8)
    assert exact.epsilon <= concentrated.epsilon <= accountant.get_epsilon(1e-5) * 1.001


@pytest.mark.parametrize(
    ("event", "remedy"),
    [
        (dp_accounting.ZCDpEvent(0.1), r"claim Claim.zcdp\(rho=0.1\)$"),
        (dp_accounting.ZCDpEvent(0.1, 0.2), r"RDPAccountant states, Claim\(epsilon, delta\)$"),
        (RepeatAndSelectDpEvent(GAUSSIAN, 10.0, 1.0), r"RDPAccountant states, Claim\(epsilon, delta\)$"),
        (dp_accounting.SampledWithoutReplacementDpEvent(10, 2, GAUSSIAN), "neighbours='replace-one'"),
        (dp_accounting.SampledWithReplacementDpEvent(10, 2, GAUSSIAN), "use one of ComposedDpEvent"),
        (dp_accounting.NonPrivateDpEvent(), "use one of ComposedDpEvent"),
    ],
)
def test_other_events_are_refused_with_a_remedy(event, remedy):
    assert re.search(remedy, refusal(event))


@pytest.mark.parametrize(
    "wrapped", [lambda e: dp_accounting.SelfComposedDpEvent(e, 3), lambda e: dp_accounting.ComposedDpEvent([e])]
)
def test_tree_aggregation_within_other_events_is_refused_too(wrapped):
    assert "for k epochs, take √k times this mu" in refusal(wrapped(tree(1.0, 4)))


@pytest.mark.parametrize(
    "event",
    [
        tree(0.0, 4),
        tree(1.0, 0),
        tree(1.0, []),
        tree("1", 4),
        tree(1.0, None),
        tree(1e-300, 4),
        dp_accounting.ZCDpEvent(-1.0),
    ],
)
def test_events_with_impossible_values_are_refused_by_name(event):
    assert "use one of ComposedDpEvent" in refusal(event)

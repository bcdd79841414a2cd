"""Events from users and from stores: what cannot be claimed is refused in one line."""

import json

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from dp_accounting.dp_event import MixtureOfGaussiansDpEvent

from lidp import Claim, InvalidArgument
from lidp.curves import EventCurve, curve_from_json
from lidp.curves.events import (
    check_event,
    count_steps,
    describe_event,
    event_from_plain,
    event_to_plain,
    has_scalable_noise,
    noise_of,
    scale_noise,
)

GAUSSIAN = dp_accounting.GaussianDpEvent(1.0)
PLAIN = {"event": "GaussianDpEvent", "noise_multiplier": 1.0}


def nested(depth):
    event = PLAIN
    for _ in range(depth):
        event = {"event": "SelfComposedDpEvent", "count": 1, "of": event}
    return event


def deeply_nested_event(depth):
    event = GAUSSIAN
    for _ in range(depth):
        event = dp_accounting.SelfComposedDpEvent(event, 1)
    return event


def one_line(call, match=None):
    with pytest.raises(InvalidArgument, match=match) as refused:
        call()
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 600


@pytest.mark.parametrize(
    ("event", "match"),
    [
        ("GaussianDpEvent(1.0)", "an event of dp_accounting"),
        (None, "an event of dp_accounting"),
        (np.zeros(100_000), "an event of dp_accounting"),
        (dp_accounting.ZCDpEvent(0.1), "no privacy curve for ZCDpEvent"),
        (dp_accounting.NonPrivateDpEvent(), "no privacy curve for NonPrivateDpEvent"),
        (dp_accounting.UnsupportedDpEvent(), "no privacy curve for UnsupportedDpEvent"),
        (dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.ComposedDpEvent([GAUSSIAN])), "ComposedDpEvent"),
        (dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN)), "samples"),
        (dp_accounting.PoissonSampledDpEvent(1.1, GAUSSIAN), "sampling_probability must be above 0 and at most 1, got 1.1"),
        (dp_accounting.PoissonSampledDpEvent(0.0, GAUSSIAN), "sampling_probability"),
        (dp_accounting.SampledWithoutReplacementDpEvent(10, 2, GAUSSIAN), "SampledWithoutReplacementDpEvent"),
        (dp_accounting.GaussianDpEvent(0.0), "noise_multiplier must be above 0"),
        (dp_accounting.GaussianDpEvent(float("nan")), "noise_multiplier must be a number, got nan"),
        (dp_accounting.GaussianDpEvent(-1.0), "noise_multiplier"),
        (dp_accounting.GaussianDpEvent("1"), "noise_multiplier must be a number"),
        (dp_accounting.SelfComposedDpEvent(GAUSSIAN, 0), "count must be a whole number"),
        (dp_accounting.SelfComposedDpEvent(GAUSSIAN, 10**12), "at most 10,000,000 steps"),
        (dp_accounting.SelfComposedDpEvent(GAUSSIAN, 10**6), "promises nothing"),
        (dp_accounting.ComposedDpEvent([]), "events must be a list of 1 to 1,000"),
        (dp_accounting.ComposedDpEvent(5), "events must be a list"),
        (dp_accounting.ComposedDpEvent([GAUSSIAN] * 10_001), "events must be a list of 1 to 1,000"),
        (dp_accounting.ComposedDpEvent([GAUSSIAN, 5]), "an event of dp_accounting"),
        (MixtureOfGaussiansDpEvent(1.0, ["a", 1.0], [0.5, 0.5]), "sensitivities must be a number"),
        (MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.7]), "no curve for"),
        (MixtureOfGaussiansDpEvent(1.0, 1.0, 1.0), "sensitivities must be a list"),
        (dp_accounting.RandomizedResponseDpEvent(0.5, 2), "add-remove neighbours"),
        (deeply_nested_event(20), "nested more than 16 levels"),
    ],
)
def test_event_without_a_curve_is_refused_in_one_line(event, match):
    one_line(lambda: Claim.from_event(event), match)


def test_optimistic_estimates_cannot_be_claimed():
    """A claim takes events, never a loss distribution that was computed elsewhere: there is no place to give one."""
    optimistic = pld.privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False
    )
    one_line(lambda: Claim.from_event(optimistic), "no privacy curve for PrivacyLossDistribution")
    one_line(lambda: Claim.from_event(pld.PLDAccountant()), "no privacy curve for PLDAccountant")
    one_line(
        lambda: check_event(PLAIN | {"pessimistic_estimate": False}), "GaussianDpEvent has event, noise_multiplier, got"
    )


def test_a_class_of_the_same_name_from_elsewhere_is_refused():
    stranger = type("GaussianDpEvent", (), {"__module__": "dp_accounting_of_a_stranger", "noise_multiplier": 1.0})
    one_line(lambda: Claim.from_event(stranger()), "an event of dp_accounting")


@pytest.mark.parametrize(
    "plain",
    [
        None,
        5,
        "gaussian",
        [],
        [1] * 100_000,
        {},
        {"kind": None},
        {"kind": []},
        {"kind": {}},
        {"kind": "GaussianCurve"},
        {"kind": "__import__('os').system('true')"},
        {"kind": "gaussian"},
        {"kind": "gaussian", "mu": None},
        {"kind": "gaussian", "mu": "0.5"},
        {"kind": "gaussian", "mu": True},
        {"kind": "gaussian", "mu": float("nan")},
        {"kind": "gaussian", "mu": -0.5},
        {"kind": "gaussian", "mu": 10**400},
        {"kind": "gaussian", "mu": 0.5, "sigma": 2.0},
        {"kind": "gaussian", **{str(number): 0 for number in range(10_000)}},
        {"kind": "laplace", "noise_scale": 0},
        {"kind": "zcdp", "rho": float("inf")},
        {"kind": "point", "at_epsilon": 1.0},
        {"kind": "point", "at_epsilon": 1.0, "delta": 1.0},
        {"kind": "dp-event", "event": PLAIN},
        {"kind": "dp-event", "event": PLAIN, "neighbours": "all"},
        {"kind": "dp-event", "event": PLAIN, "neighbours": None},
    ],
    ids=lambda plain: repr(plain)[:40],
)
def test_malformed_curve_in_a_store_is_refused_in_one_line(plain):
    one_line(lambda: curve_from_json(plain))


@pytest.mark.parametrize(
    "event",
    [
        None,
        5,
        "GaussianDpEvent",
        [PLAIN],
        {},
        object(),
        {"event": []},
        {"event": "os.system"},
        {"event": "__class__"},
        {"event": "UnsupportedDpEvent"},
        {"event": "GaussianDpEvent"},
        {"event": "GaussianDpEvent", "noise_multiplier": None},
        {"event": "GaussianDpEvent", "noise_multiplier": [1.0]},
        {"event": "GaussianDpEvent", "noise_multiplier": 1.0, "__class__": "object"},
        {"event": "GaussianDpEvent", "noise_multiplier": float("inf")},
        {"event": "ComposedDpEvent", "events": 5},
        {"event": "ComposedDpEvent", "events": "ab"},
        {"event": "ComposedDpEvent", "events": {"a": PLAIN}},
        {"event": "ComposedDpEvent", "events": [PLAIN] * 20_000},
        {"event": "MixtureOfGaussiansDpEvent", "standard_deviation": 1, "sensitivities": 3, "sampling_probs": [1.0]},
        {"event": "SelfComposedDpEvent", "count": 1.5, "of": PLAIN},
        {"event": "SelfComposedDpEvent", "count": 1e300, "of": PLAIN},
        {"event": "SelfComposedDpEvent", "count": 2, "event_of": PLAIN},
        nested(20),
        nested(5000),
    ],
    ids=lambda event: str(event.get("event") if isinstance(event, dict) else type(event).__name__),
)
def test_malformed_event_in_a_store_is_refused_in_one_line(event):
    one_line(lambda: curve_from_json({"kind": "dp-event", "event": event, "neighbours": "add-remove"}))


@pytest.mark.parametrize("text", ["", "{", None, 5, '{"event":' * 100_000, "NaN", b"\xff"])
def test_text_that_is_no_event_is_refused(text):
    one_line(lambda: EventCurve(text))


@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN,
        dp_accounting.LaplaceDpEvent(0.5),
        MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
        dp_accounting.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0),
        dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(0.25, GAUSSIAN), 7),
        dp_accounting.ComposedDpEvent([GAUSSIAN, dp_accounting.NoOpDpEvent()]),
    ],
)
def test_event_round_trips_through_json(event):
    plain = json.loads(json.dumps(event_to_plain(event)))
    assert event_from_plain(check_event(plain)) == event


def test_noise_is_scaled_in_every_part():
    event = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(0.25, GAUSSIAN), 7),
            dp_accounting.dp_event.DiscreteLaplaceDpEvent(0.5, 1),
        ]
    )
    scaled = event_from_plain(scale_noise(event_to_plain(event), 2.0))
    assert scaled.events[0].event.event.noise_multiplier == 2.0
    assert scaled.events[1].noise_parameter == 0.25
    assert noise_of(event_to_plain(event)) is None
    assert noise_of(event_to_plain(event.events[0])) == 1.0
    assert count_steps(event_to_plain(event)) == 8
    assert has_scalable_noise(event_to_plain(event))
    assert not has_scalable_noise(event_to_plain(dp_accounting.RandomizedResponseDpEvent(0.5, 2)))


def test_events_in_words():
    sampled = dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(0.25, GAUSSIAN), 7000)
    assert describe_event(event_to_plain(sampled)) == "DP-SGD with noise multiplier 1, sampling rate 0.25 and 7,000 steps"
    many = dp_accounting.ComposedDpEvent([GAUSSIAN] * 12)
    assert describe_event(event_to_plain(many)).endswith(", then 9 more")


def test_randomized_response_has_a_curve_for_replaced_records_but_no_family():
    claim = Claim.from_event(dp_accounting.RandomizedResponseDpEvent(0.5, 2), neighbours="replace-one")
    assert claim.epsilon == pytest.approx(np.log(3), abs=2e-3)
    assert not claim.curve.has_family

"""A diagnosis as text and as JSON, and what a claim says of the training."""

import json

import numpy as np
import pytest

from lidp import Claim
from lidp.diagnosis.claimed import claimed_training
from lidp.diagnosis.diagnosis import NO_BOUND, Claimed, Measurement, Part, Quantity, describe_limits
from lidp.errors import InvalidArgument
from tests.diagnosis.simulated_runs import CLAIMED, Training, diagnosed
from tests.diagnosis.stored_runs import claim_of_dpsgd


def test_the_text_has_findings_first_then_all_limits_and_how_sure_they_are():
    lines = str(diagnosed(Training(noise=0.8).runs(2, np.random.default_rng(0)))).splitlines()
    assert lines[0] == "simulated: 2 trials, claimed noise multiplier 1, sampling rate 0.1, 200 steps"
    assert lines[1].startswith("  noise 0.7")
    assert lines[2].split() == ["quantity", "where", "measured", "claimed"]
    assert lines[-3].split() == ["steps", "all", "200", "200"]
    assert (
        lines[-2]
        == "All limits hold together except with probability 0.05, if noise is Gaussian, as large for all parameters of "
        "a group and all steps of a stretch, and runs are independent."
    )
    assert lines[-1] == NO_BOUND


def test_the_json_has_all_limits():
    diagnosis = diagnosed(Training(noise=0.8).runs(2, np.random.default_rng(0)))
    plain = json.loads(diagnosis.to_json())
    assert plain["claimed"] == {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 200}
    assert len(plain["measurements"]) == len(diagnosis.measurements)
    first = plain["measurements"][0]
    assert (first["quantity"], first["part"], first["where"], first["claimed"]) == ("noise", "all", "all", 1.0)
    assert 0.7 < first["lower"] < 0.8 < first["upper"] < 0.9
    assert plain["findings"] == list(diagnosis.summary)
    assert plain["failure_probability"] == 0.05
    assert NO_BOUND in plain["certainty"]


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.98765, 1.00001, "0.987 to 1.001"),
        (-0.0123456, 0.5, "-0.0124 to 0.5"),
        (-0.9, -0.12345, "-0.9 to -0.123"),
        (None, 0.76543, "at most 0.766"),
        (0.76543, None, "at least 0.765"),
        (None, None, "unknown"),
        (0.0, 0.0, "0 to 0"),
    ],
)
def test_limits_are_rounded_outwards(lower, upper, text):
    assert describe_limits(lower, upper) == text


def test_a_measurement_deviates_only_if_its_limits_exclude_the_claim():
    def measured(lower, upper):
        return Measurement(Quantity.NOISE, Part.ALL, "all", lower, upper, 1.0)

    assert measured(0.9, 1.1).as_claimed
    assert measured(0.9, 1.0).as_claimed
    assert measured(0.5, 0.9).below
    assert measured(1.1, None).above
    assert measured(None, None).as_claimed


def test_the_claim_of_dpsgd_says_all():
    assert claimed_training(claim_of_dpsgd()) == CLAIMED


def test_a_claim_without_sampling_has_the_rate_one():
    assert claimed_training(Claim.dpsgd(noise_multiplier=5.0, sampling_rate=1.0, steps=3)) == Claimed(5.0, 1.0, 3)


def test_numbers_that_are_given_replace_those_of_the_claim():
    assert claimed_training(claim_of_dpsgd(), steps=100).steps == 100
    given = {"noise_multiplier": 2.0, "sampling_rate": 0.5, "steps": 7}
    assert claimed_training(Claim(1.0, 1e-5), **given) == Claimed(**given)


@pytest.mark.parametrize("claim", [Claim(1.0, 1e-5), Claim.gaussian(0.5)])
def test_what_the_claim_does_not_say_must_be_given(claim):
    with pytest.raises(InvalidArgument, match="name it: --noise-multiplier"):
        claimed_training(claim)
    with pytest.raises(InvalidArgument, match="name it: --steps"):
        claimed_training(claim, noise_multiplier=1.0, sampling_rate=0.1)


def test_claimed_numbers_are_checked():
    with pytest.raises(InvalidArgument, match="noise_multiplier"):
        claimed_training(claim_of_dpsgd(), noise_multiplier=0.0)

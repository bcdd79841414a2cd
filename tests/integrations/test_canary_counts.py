"""The default number of canaries follows from sizes that are known before the first coin is drawn."""

import numpy as np
import pytest

import lidp
from lidp import CoinFlip
from lidp.integrations.canary_counts import MOST_OVERLAPPING, count_overlapping, count_pooled, count_separate
from lidp.integrations.torch import count_parameters, torch_target
from lidp.integrations.trainers import trainer_target
from tests.integrations.noisy_loop import RECORDS, SIZES, NoisyLoop


@pytest.mark.parametrize(("parameters", "number"), [(1, 1), (20, 16), (171, 128), (7850, 512), (10**9, 512)])
def test_coordinates_are_as_many_as_there_are_parameters(parameters, number):
    assert count_separate(parameters).number == number


@pytest.mark.parametrize(
    ("parameters", "records", "shift", "number"),
    [
        (10**6, 10**5, 1.0, MOST_OVERLAPPING),
        (100, 10**5, 1.0, 128),  # the variance of 64 others is .64 of the noise
        (100, 10**5, 4.0, 8),
        (10**6, 100, 1.0, 64),
        (10**6, 10**5, 0.0, MOST_OVERLAPPING),
    ],
)
def test_directions_that_overlap_are_fewer(parameters, records, shift, number):
    assert count_overlapping(parameters, records, shift).number == number


def test_the_reason_names_what_limits_directions():
    assert "records limit them" in count_overlapping(10**6, 100).reason
    assert "parameters limit them" in count_overlapping(100, 10**5).reason
    assert "limit" not in count_overlapping(10**6, 10**5).reason


@pytest.mark.parametrize(("pool", "records", "number"), [(2000, 2000, 512), (100, 2000, 32), (2000, 100, 32), (1, 5, 1)])
def test_records_rarely_occur_twice_in_a_trial(pool, records, number):
    assert count_pooled(pool, records).number == number


def test_parameters_are_counted_without_training():
    class Untrained(NoisyLoop):
        def watch(self, model, planting):
            super().watch(model, planting)
            raise AssertionError("the loop went on")

    target = torch_target(Untrained(), RECORDS, scores="transcript", name="untrained")
    assert target.canary_count.number == 128
    assert f"of {sum(SIZES)}" in target.canary_count.reason


def test_a_loop_that_fails_before_it_tells_its_parameters_gets_the_usual_number():
    class Broken(NoisyLoop):
        def watch(self, model, planting):
            raise ValueError("no model")

    target = torch_target(Broken(), RECORDS, scores="transcript", name="broken")
    assert count_parameters(target.mechanism, target.dataset) is None
    assert target.canary_count.number == 64
    assert "not known" in target.canary_count.reason


@pytest.mark.slow
def test_a_training_says_how_many_canaries_were_chosen():
    target = torch_target(NoisyLoop(), RECORDS, scores="transcript", name="loop")
    claim = lidp.Claim.dpsgd(noise_multiplier=2.0, sampling_rate=0.5, steps=10, delta=1e-5)
    result = lidp.audit(target, claim=claim, trials=2)
    assert result.design == CoinFlip(128)
    assert "\n  canaries   128 per model, chosen by default: each along a parameter of its own, of 171," in str(result)
    given = lidp.audit(target, claim=claim, trials=2, design=CoinFlip(8))
    assert given.design == CoinFlip(8)
    assert "canaries" not in given.facts


def test_trainers_of_records_count_their_pool():
    data = np.arange(40.0)
    target = trainer_target(lambda records, seed: records.mean(), lambda model, record: abs(model - record), data, data[:9])
    assert target.canary_count.number == 4

"""Mechanisms whose noise is the same in every run are named."""

import os
import time

import numpy as np
import pytest

from lidp import CoinFlip, Target, UniformSphere
from lidp.trials.processes import Processes
from lidp.trials.repeated_noise import count_equal_runs, warn_of_repeated_noise
from lidp.trials.serial import Serial
from lidp.trials.trial import TrialSetup
from tests.waiting import PATIENCE


def constant_seed(vectors, rng):
    return np.sum(vectors, axis=0) + np.random.default_rng(7).standard_normal(5)


def reseeded_global(vectors, rng):
    np.random.seed(1)  # noqa: NPY002  # the fault
    return np.sum(vectors, axis=0) + np.random.standard_normal(5)  # noqa: NPY002


def from_rng(vectors, rng):
    return np.sum(vectors, axis=0) + rng.standard_normal(5)


def from_global(vectors, rng):
    return np.sum(vectors, axis=0) + np.random.standard_normal(5)  # noqa: NPY002  # audits seed it


def from_system(vectors, rng):
    return np.sum(vectors, axis=0) + np.random.default_rng().standard_normal(5)


def mostly_zero(vectors, rng):
    return int(rng.random() < 0.2)


def slow(vectors, rng):
    time.sleep(60)


def raises(vectors, rng):
    raise ValueError("no")


def dies(vectors, rng):
    os._exit(3)


def setup_of(mechanism, **options):
    target = Target(mechanism, UniformSphere(5), np.dot, **options)
    return TrialSetup(target, CoinFlip(4), 0)


@pytest.mark.parametrize("mechanism", [constant_seed, reseeded_global])
@pytest.mark.parametrize("executor", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_constant_noise_is_named(mechanism, executor, monkeypatch):
    monkeypatch.setattr("lidp.trials.repeated_noise._SECONDS", PATIENCE)
    warning = warn_of_repeated_noise(executor, setup_of(mechanism))
    assert f"{mechanism.__name__} returned exactly the same output in 64 runs" in warning
    assert "Draw the noise from rng" in warning


@pytest.mark.parametrize("mechanism", [from_rng, from_global, from_system, mostly_zero, raises, dies])
def test_other_mechanisms_are_not(mechanism):
    assert not warn_of_repeated_noise(Serial(), setup_of(mechanism))


def test_a_slow_mechanism_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("lidp.trials.repeated_noise._SECONDS", 0.0)
    monkeypatch.setattr("lidp.trials.repeated_noise._PATIENCE", 0.1)
    assert not warn_of_repeated_noise(Serial(), setup_of(slow))


def test_two_runs_of_a_slow_mechanism_are_too_few():
    hours = iter([0.0, 0.4, 1.1, 9.0])
    assert not count_equal_runs(setup_of(constant_seed), lambda: next(hours))
    seconds = iter([0.0, 0.4, 0.8, 1.2, 9.0])
    assert count_equal_runs(setup_of(constant_seed), lambda: next(seconds)) == 3


def test_few_equal_counts_are_no_sign_of_constant_noise():
    seconds = iter([0.0, 0.4, 0.8, 1.2])
    assert not count_equal_runs(setup_of(lambda vectors, rng: 7), lambda: next(seconds))


def test_a_mechanism_with_a_preparation_step_is_left_to_it():
    assert not warn_of_repeated_noise(Serial(), setup_of(constant_seed, prepare=lambda dataset, rng: {}))


def test_a_mechanism_that_promises_to_draw_from_rng_is_trusted():
    class Trusted:
        draws_only_from_rng = True

        def __call__(self, vectors, rng):
            return 0.5

    assert not warn_of_repeated_noise(Serial(), setup_of(Trusted(), name="trusted"))

"""The contract suites on lidp's own executors, canaries, targets and stores."""

from dataclasses import dataclass

import numpy as np
import pytest

import lidp
from lidp.canaries.coordinates import DiracGradients
from lidp.canaries.sphere import UniformSphere
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.store import Store
from lidp.testing import CanaryContract, ExecutorContract, StoreContract, TargetContract
from lidp.testing.example_targets import LEAKY, LEAKY_MANY, NormalNumbers
from lidp.trials.executors import Processes, Serial


class TestSerial(ExecutorContract):
    def make(self):
        return Serial()


class TestOneWorkerProcess(ExecutorContract):
    def make(self):
        return Processes(1)


class TestTwoWorkerProcesses(ExecutorContract):
    def make(self):
        return Processes(2)


class TestWorkerProcessesWithRetriesAndALimit(ExecutorContract):
    def make(self):
        return Processes(2, time_limit=600.0, retry=True)


class TestUniformSphere(CanaryContract):
    def make(self):
        return UniformSphere(8)


class TestDiracGradients(CanaryContract):
    def make(self):
        return DiracGradients(20, np.array([1, 5, 7]))


class TestNormalNumbers(CanaryContract):
    def make(self):
        return NormalNumbers()


@dataclass(frozen=True)
class Words:
    """Canaries that are texts."""

    def draw(self, rng, size):
        return [f"the code is {number}" for number in rng.integers(0, 10**6, size)]


class TestTexts(CanaryContract):
    def make(self):
        return Words()


class TestLeakyTarget(TargetContract):
    def make(self):
        return LEAKY


class TestTargetWithRunMany(TargetContract):
    def make(self):
        return LEAKY_MANY


class TestGaussianSum(TargetContract):
    def make(self):
        return lidp.Target(GaussianSum(1.0, 16), UniformSphere(16), InnerProduct())


def pilot_mean(dataset, rng):
    return lidp.Prepared({"centre": np.mean(dataset) + rng.standard_normal()}, models=1)


def distance_from_centre(output, canary, arrays):
    return float(abs(canary - arrays["centre"]))


class TestTargetWithPreparation(TargetContract):
    def make(self):
        return lidp.Target(LEAKY.mechanism, NormalNumbers(), distance_from_centre, dataset=[1.0, 2.0], prepare=pilot_mean)


class TestStore(StoreContract):
    def make(self):
        return Store


@pytest.mark.parametrize("suite", [TestSerial, TestUniformSphere, TestLeakyTarget, TestStore])
def test_suite_runs_without_pytest(suite):
    assert len(suite.checks()) >= 6
    suite().run()

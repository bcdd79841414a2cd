"""The contract of methods, on every method of lidp."""

import dataclasses

import pytest

from lidp import METHODS, FixedThreshold, RankGuesses
from lidp.testing import MethodContract
from tests.stats.every_method import method_with_defaults
from tests.stats.own_methods import Hoeffding

NAMES = list(METHODS)


class LidpMethodContract(MethodContract):
    name: str

    def make(self):
        return method_with_defaults(self.name)

    def make_untuned(self):
        """Without tuning, monotonicity is exact: tuning may choose another threshold at another β."""
        method = self.make()
        fixed = (
            RankGuesses(0.5) if self.name.startswith("one-run") or self.name.endswith("guesses") else FixedThreshold(0.7)
        )
        has_threshold = "threshold" in {item.name for item in dataclasses.fields(method)}
        return dataclasses.replace(method, threshold=fixed) if has_threshold else method


class TestLiftedBetting(LidpMethodContract):
    name = "lifted-betting"
    delta_slack = 0.03  # other stakes at another δ: the order may be off by a few steps of the grid


class TestCoinWager(LidpMethodContract):
    name = "coin-wager"
    delta_slack = 0.03


class TestCurveWager(LidpMethodContract):
    name = "curve-wager"


class TestCurveWagerWithGuesses(LidpMethodContract):
    name = "curve-wager-with-guesses"


class TestWilson(LidpMethodContract):
    name = "wilson"


class TestBernstein(LidpMethodContract):
    name = "bernstein"


class TestClopperPearson(LidpMethodContract):
    name = "clopper-pearson"


class TestJeffreys(LidpMethodContract):
    name = "jeffreys"


class TestOneRun(LidpMethodContract):
    name = "one-run"


class TestOneRunFDP(LidpMethodContract):
    name = "one-run-fdp"


class TestSignedRanks(LidpMethodContract):
    name = "signed-ranks"

    @pytest.mark.slow
    def test_bound_exceeds_the_truth_no_more_often_than_it_says(self):
        super().test_bound_exceeds_the_truth_no_more_often_than_it_says()


class TestGaussianDP(LidpMethodContract):
    name = "gaussian-dp"


class TestJointBeta(LidpMethodContract):
    name = "joint-beta"


class TestMethodOfAUser(MethodContract):
    def make(self):
        return Hoeffding(0.5)


def test_every_method_has_a_contract_test():
    assert {suite.name for suite in LidpMethodContract.__subclasses__()} == set(NAMES)

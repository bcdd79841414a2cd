"""Copies of records: every run has its own, and none repeats the random numbers of another."""

import random

import numpy as np
import pytest

from lidp import AuditFailed, Target
from lidp._runtime.copies import copy_for_run
from tests.engine import Numbers, closeness, run


class Record:
    """A record that draws noise of its own."""

    def __init__(self, generator):
        self.parts = {"noise": [generator]}


GENERATORS = [np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0), random.Random(0)]  # noqa: S311


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: type(generator).__name__)
def test_a_generator_in_the_records_is_refused(generator):
    with pytest.raises(AuditFailed, match="hold a random number generator"):
        copy_for_run([Record(generator)])


def test_a_target_whose_data_hold_a_generator_is_refused_before_its_first_trial():
    """Every run drew the same numbers from its copy: a true claim was refuted 20 of 20 times."""
    target = Target(lambda dataset, rng: [], Numbers(), closeness, dataset=[Record(np.random.default_rng(0))])
    with pytest.raises(AuditFailed, match="numpy.random"):
        run(target, trials=2)


def test_records_that_cannot_be_copied_are_named():
    with pytest.raises(AuditFailed, match="records of type generator cannot be copied"):
        copy_for_run(number for number in range(3))


def test_a_copy_shares_nothing():
    records = [np.zeros(2), {"a": [1]}]
    own = copy_for_run(records)
    own[0] += 1
    own[1]["a"].append(2)
    assert records[0].tolist() == [0, 0]
    assert records[1] == {"a": [1]}

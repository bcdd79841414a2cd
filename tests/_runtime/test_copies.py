"""Every run gets a separate copy of the records, without a random generator in it."""

import random

import numpy as np
import pytest

from lidp import AuditFailed, Target
from lidp._runtime.copies import copy_for_run
from tests.sample_targets import Numbers, closeness, run


class Record:
    """A record that holds a random generator."""

    def __init__(self, generator):
        self.parts = {"noise": [generator]}


GENERATORS = [np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0), random.Random(0)]  # noqa: S311


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: type(generator).__name__)
def test_records_with_a_generator_are_refused(generator):
    with pytest.raises(AuditFailed, match="hold a random number generator"):
        copy_for_run([Record(generator)])


def test_an_audit_of_records_with_a_generator_fails_before_its_first_trial():
    """Regression: every run drew the same numbers from its copy, and a true claim was refuted in 20 of 20 audits."""
    target = Target(lambda dataset, rng: [], Numbers(), closeness, dataset=[Record(np.random.default_rng(0))])
    with pytest.raises(AuditFailed, match="numpy.random"):
        run(target, trials=2)


def test_records_that_cannot_be_copied_are_refused_by_type():
    with pytest.raises(AuditFailed, match="records of type generator cannot be copied"):
        copy_for_run(number for number in range(3))


def test_changing_a_copy_leaves_the_records_unchanged():
    records = [np.zeros(2), {"a": [1]}]
    copied = copy_for_run(records)
    copied[0] += 1
    copied[1]["a"].append(2)
    assert records[0].tolist() == [0, 0]
    assert records[1] == {"a": [1]}

"""Evidence from a stranger's store is read, left out with a reason, or refused; it never breaks a diagnosis."""

import math
import random

import numpy as np
import pytest

from lidp.diagnosis.evidence import Evidence, first_trials
from lidp.errors import InvalidArgument
from lidp.training.transcript import COLUMNS
from tests.diagnosis.simulated_runs import Training, diagnosed

SMALL = Training(canaries=4, steps=20)


def spoilt(change):
    """Return two records, of which ``change`` has changed the second."""
    records = SMALL.runs(2, np.random.default_rng(0))
    change(records[1])
    return records


def replace_column(name, array):
    return lambda record: record.evidence.update({name: np.array(array, dtype=float)})


def put(name, value):
    def change(record):
        array = record.evidence[name].copy()
        array[0] = value
        record.evidence[name] = array

    return change


BAD = {
    "a column is missing": (lambda record: record.evidence.pop("square"), "the column square is missing"),
    "a column is too short": (replace_column("square", [1.0]), "one to 16 numbers per canary"),
    "all columns are empty": (lambda record: record.evidence.update({name: np.empty(0) for name in COLUMNS}), "per canary"),
    "all columns are too long": (
        lambda record: record.evidence.update({name: np.ones(4 * 17) for name in COLUMNS}),
        "per canary",
    ),
    "NaN": (put("product", math.nan), "not finite"),
    "infinite": (put("lagged", math.inf), "not finite"),
    "huge": (put("square", 1e200), "too large"),
    "a negative square": (put("square", -1.0), "negative"),
    "a fractional count": (put("count", 0.5), "whole numbers"),
    "more steps than recorded": (put("count", 1e15), "number of steps"),
    "steps as text": (lambda record: record.metadata.update(scores_steps="20"), "number of steps"),
    "steps as truth value": (lambda record: record.metadata.update(scores_steps=True), "number of steps"),
    "no steps": (lambda record: record.metadata.pop("scores_steps"), "number of steps"),
    "sums that contradict one another": (put("product", 1e9), "contradict"),
    "products that contradict squares": (put("lagged", -1e9), "contradict"),
    "a group that has no name": (put("group", 7.0), "parameter groups"),
    "half a group": (put("group", 0.5), "parameter groups"),
    "no name of any group": (lambda record: record.metadata.pop("scores_groups"), "parameter groups"),
    "names that are no text": (lambda record: record.metadata.update(scores_groups=3), "parameter groups"),
    "too few groups": (replace_column("group", [0.0]), "parameter groups"),
    "other groups": (lambda record: record.metadata.update(scores_groups="a, b, c"), "other parameter groups"),
    "no groups": (lambda record: record.evidence.pop("group"), "other parameter groups"),
    "no coins": (lambda record: record.arrays.pop("coins"), "no coins"),
    "odd coins": (lambda record: record.arrays.update(coins=np.full(4, 0.5)), "no coins"),
    "no evidence": (lambda record: record.evidence.clear(), "no transcript"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_run_whose_evidence_cannot_be_read_is_left_out(name):
    change, reason = BAD[name]
    diagnosis = diagnosed(spoilt(change))
    assert any(note.startswith("trial 1 is left out: ") and reason in note for note in diagnosis.notes)
    assert diagnosis.trials == 2


def test_evidence_of_which_nothing_can_be_read_is_refused():
    records = SMALL.runs(2, np.random.default_rng(0))
    for record in records:
        put("square", math.nan)(record)
    with pytest.raises(InvalidArgument, match=r"no transcript that can be read: trial 0 .*; audit it again"):
        Evidence.of(records)


def test_an_audit_without_transcripts_is_refused_with_the_remedy():
    records = SMALL.runs(1, np.random.default_rng(0))
    records[0].evidence.clear()
    with pytest.raises(InvalidArgument, match="x.db has no transcript; audit with --scores transcript"):
        Evidence.of(records, "x.db")
    with pytest.raises(InvalidArgument, match="no finished trial"):
        Evidence.of([])


def test_many_runs_that_are_left_out_are_summed_up():
    records = SMALL.runs(9, np.random.default_rng(0))
    for record in records[1:]:
        put("square", math.nan)(record)
    assert Evidence.of(records).notes[-1] == "5 more trials are left out"


def test_only_trials_before_the_first_missing_one_are_used():
    records = SMALL.runs(5, np.random.default_rng(0))
    assert [record.index for record in first_trials([records[4], *records[:3]])] == [0, 1, 2]
    assert first_trials(records[1:]) == []


@pytest.mark.parametrize("seed", range(60))
def test_random_numbers_in_place_of_evidence_break_nothing(seed):
    rng = random.Random(seed)  # noqa: S311
    records = SMALL.runs(3, np.random.default_rng(seed))
    any_number = [0.0, 1.0, 3.0, 1e-300, 1e-30, 1e30, 1e59, 0.1]
    odd = {"count": [0.0, 1.0], "product": [0.0, 1e-30, -0.01], "lagged": [0.0, 1e-30, -0.01], "log_ratio": [-1e59, 2.5]}
    for record in records[1:]:
        for name in rng.sample(COLUMNS, rng.randint(1, 6)):
            values = [rng.choice(odd.get(name, any_number)) for _ in record.evidence[name]]
            record.evidence[name] = np.array(values)
    for separate in (True, False):
        diagnosis = diagnosed(records, separate_canaries=separate)
        assert diagnosis.to_json()
        assert str(diagnosis)

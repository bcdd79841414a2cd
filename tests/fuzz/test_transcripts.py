"""Stores whose transcripts were replaced by odd numbers: lidp diagnoses them or prints one line of error."""

import math
import random

import numpy as np
import pytest

from tests.diagnosis.simulated_runs import Training
from tests.diagnosis.stored_runs import stored
from tests.fuzz.harness import lidp

ODD = [0.0, -0.0, 1.0, -1.0, 0.5, 20.0, 1e-310, 1e-30, 1e30, 1e60, 1e308, -1e308, math.nan, math.inf, -math.inf]
SIZES = [0, 1, 3, 4, 64, 68, 1000]
NOTES = [None, True, 0, -3, 20, 2**70, 1.5, "", "20", "a, b", "a", "\x1b[2J, b", ["a"], {}]
EXAMPLES = 10


def _spoil(rng):
    """Return a function that replaces some numbers, arrays and notes of some records by odd ones."""

    def change(records):
        for record in records:
            if rng.random() < 0.3:
                continue
            for name in rng.sample(sorted(record.evidence), rng.randint(1, 3)):
                kind = rng.randrange(4)
                if kind == 0:
                    record.evidence.pop(name)
                elif kind == 1:
                    record.evidence[name] = np.full(rng.choice(SIZES), rng.choice(ODD))
                else:
                    array = record.evidence[name].copy()
                    array[rng.randrange(len(array))] = rng.choice(ODD)
                    record.evidence[name] = array
            if rng.random() < 0.3:
                record.metadata[rng.choice(["scores_steps", "scores_groups"])] = rng.choice(NOTES)
        return records

    return change


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 12))])
def test_odd_transcripts(block, tmp_path):
    rng = random.Random(block)  # noqa: S311
    for example in range(EXAMPLES):
        training = Training(canaries=4, steps=20, grouped=rng.random() < 0.7)
        path = stored(tmp_path / f"{example}.db", training, 3, change=_spoil(rng))
        code, _, _ = lidp("diagnose", path, *rng.choice([[], ["--json"], ["--separate-canaries"]]))
        assert code in (0, 2)
        assert lidp("report", path)[0] == 0

"""The log of scores: the same rows in memory and in a file."""

import tempfile

import numpy as np
import pytest

from lidp import Scores
from lidp.engine.score_log import ScoreLog


def block(rows, seed):
    rng = np.random.default_rng(seed)
    failed = rng.random(rows) < 0.1
    scores = np.where(failed[:, None], np.nan, rng.standard_normal((rows, 3)))
    return Scores(scores=scores, coins=rng.integers(0, 2, (rows, 3)), failed=failed, sequential=True)


BLOCKS = [block(rows, seed) for seed, rows in enumerate((5, 1, 30, 2, 40))]


def same(one, other):
    assert repr(one) == repr(other)
    assert (one.sequential, one.stopped_early) == (other.sequential, other.stopped_early)
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, other.to_arrays()[name])


@pytest.mark.parametrize("most_bytes", [0, 700, 10**9], ids=["all in the file", "some in the file", "all in memory"])
def test_rows_are_the_same_wherever_they_are(most_bytes):
    log = ScoreLog(most_bytes)
    assert log.last(3) is None
    for number, part in enumerate(BLOCKS, start=1):
        log.append(part)
        whole = Scores.join(BLOCKS[:number])
        assert log.rows == whole.trials
        for rows in (1, 3, 33, 1000):
            same(log.last(rows), whole[-rows:])
        same(log.all(), whole)


def test_rows_that_were_returned_stay_as_they_are_when_more_are_added():
    log = ScoreLog(0)
    log.append(BLOCKS[0])
    before = log.all()
    log.append(BLOCKS[2])
    same(before, BLOCKS[0])


def test_many_small_blocks_are_joined():
    log = ScoreLog()
    for row in range(1000):
        log.append(BLOCKS[4][row % 40 : row % 40 + 1])
    assert len(log._blocks) < 300
    same(log.all()[:40], BLOCKS[4])


def test_without_room_for_a_file_rows_stay_in_memory(monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    log = ScoreLog(0)
    for part in BLOCKS:
        log.append(part)
    same(log.all(), Scores.join(BLOCKS))

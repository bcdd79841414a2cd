"""``CanaryScorer``: scores as the records hold them, failed runs, and audits that say nothing at all."""

import numpy as np
import pytest

from lidp import AuditFailed, CoinFlip, LeaveOneOut, ReplaceOne
from lidp.designs.trial_record import TrialRecord
from lidp.engine.scorer import CanaryScorer
from tests.designs.records import SEED, draw_numbers, record_of


def scorer_of(design, *, sequential=False):
    return CanaryScorer(design, sequential=sequential)


def lost_record(design, index, reason="Traceback\nKilled: by signal 9"):
    arrays, _ = design.lost_arrays(design.lay_out(draw_numbers, SEED, index))
    return TrialRecord(index, arrays, {"trial": reason})


def unscored_record(design, index, unscored):
    arrays = dict(record_of(design, index).arrays)
    metadata = {"scores_unscored": unscored, "scores_unscored_because": "Traceback\nZeroDivisionError: no"}
    return TrialRecord(index, arrays, metadata=metadata)


@pytest.mark.parametrize("design", [CoinFlip(6), LeaveOneOut(4, 3), ReplaceOne(4, 3)], ids=str)
def test_scores_are_those_of_the_records_in_order(design):
    records = [record_of(design, index) for index in range(4)]
    scores = scorer_of(design).score(records)
    for name, array in scores.to_arrays().items():
        np.testing.assert_array_equal(array, [record.arrays[name] for record in records])


def test_sequential_mark_is_passed_on():
    records = [record_of(CoinFlip(6), 0)]
    assert scorer_of(CoinFlip(6), sequential=True).score(records).sequential
    assert not scorer_of(CoinFlip(6)).score(records).sequential


def test_failed_run_is_marked_and_its_scores_are_ignored():
    good, other = record_of(CoinFlip(6), 0), record_of(CoinFlip(6), 1)
    failed = TrialRecord(1, other.arrays, {"scores": "raised"})
    scores = scorer_of(CoinFlip(6)).score([good, failed])
    assert scores.failed.tolist() == [[False], [True]]
    assert np.isnan(scores.to_arrays()["scores"][1]).all()


def test_failed_arm_of_leave_one_out_leaves_the_other_arm():
    record = record_of(LeaveOneOut(4, 3), 0)
    scores = scorer_of(LeaveOneOut(4, 3)).score([TrialRecord(0, record.arrays, {"held_out": "raised"})])
    assert scores.failed.tolist() == [[False, True]]
    np.testing.assert_array_equal(scores.to_arrays()["inserted"][0], record.arrays["inserted"])


def test_nothing_is_learned_or_explained():
    scorer = scorer_of(CoinFlip(6))
    record = record_of(CoinFlip(6), 0)
    scores = scorer.score([record])
    scorer.learn(record, 1)
    assert not scorer.learns
    assert scorer.can_score(record)
    assert scorer.take_predictions() == {}
    assert scorer.explain(scores) == ""


def test_note_repeats_the_facts_of_the_record():
    record = TrialRecord(4, record_of(CoinFlip(6), 4).arrays, {"scores": "raised"}, 1.5, {"loss": 0.1}, attempts=2)
    note = scorer_of(CoinFlip(6)).note(record)
    assert (note.index, note.seconds, note.attempts) == (4, 1.5, 2)
    assert note.failures == {"scores": "raised"}
    assert note.metadata == {"loss": 0.1}


def test_all_trials_lost_is_an_error_that_quotes_the_first_reason():
    scorer = scorer_of(LeaveOneOut(4, 3))
    scorer.score([lost_record(LeaveOneOut(4, 3), 0), lost_record(LeaveOneOut(4, 3), 1, "another")])
    with pytest.raises(AuditFailed, match="all 2 trials failed, the first with: Killed: by signal 9"):
        scorer.require_outcomes(2)


def test_one_trial_that_is_not_lost_is_enough():
    scorer = scorer_of(LeaveOneOut(4, 3))
    scorer.score([lost_record(LeaveOneOut(4, 3), 0)])
    scorer.score([record_of(LeaveOneOut(4, 3), 1)])
    scorer.require_outcomes(2)


def test_no_scored_canary_is_an_error_that_quotes_the_first_reason():
    scorer = scorer_of(CoinFlip(6))
    scorer.score([unscored_record(CoinFlip(6), index, unscored=6) for index in range(3)])
    with pytest.raises(AuditFailed, match="no canary could be scored, the first because: ZeroDivisionError: no"):
        scorer.require_outcomes(3)


def test_one_scored_canary_is_enough():
    scorer = scorer_of(CoinFlip(6))
    scorer.score([unscored_record(CoinFlip(6), 0, unscored=5)])
    scorer.require_outcomes(1)

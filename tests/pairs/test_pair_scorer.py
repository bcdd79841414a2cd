"""``PairScorer``: stored predictions, lost blocks, damaged records and classifiers that misbehave."""

import numpy as np
import pytest

from lidp import AuditFailed, StoreError
from lidp.designs import PairRuns
from lidp.designs.trial_record import TrialRecord
from lidp.pairs.classifier import Views
from lidp.pairs.scorer import PairScorer
from tests.designs.records import SEED, block_of, draw_numbers, record_of

DESIGN = PairRuns(200)


class ConstantClassifier:
    """Predicts a fixed array, and counts how many runs it learns from."""

    def __init__(self, logits=None):
        self.logits = logits
        self.predicted_blocks = 0
        self.learned_coins = []

    def predict(self, outputs):
        self.predicted_blocks += 1
        return np.full(len(outputs), 0.5) if self.logits is None else self.logits

    def learn(self, outputs, coins):
        self.learned_coins += coins.tolist()

    def explain(self):
        return "nothing"


def scorer_of(predictions=None, classifier=None, *, default=False):
    make = (lambda _outputs: Views()) if default else None
    return PairScorer(DESIGN, "mechanism", predictions or {}, classifier=classifier, make_classifier=make)


def lost_block(index):
    arrays, _ = DESIGN.lost_arrays(DESIGN.lay_out(draw_numbers, SEED, index))
    return TrialRecord(index, arrays, {"trial": "killed"}, metadata={"first_failure": "killed"})


def changed(record, arrays=None, metadata=None):
    return TrialRecord(
        record.index, {**record.arrays, **(arrays or {})}, record.failures, metadata={**record.metadata, **(metadata or {})}
    )


def text_block():
    return block_of(DESIGN, 0, [["yes", k % 3] for k in range(32)])


def test_stored_predictions_are_the_scores():
    stored = np.linspace(-2, 2, 32)
    scorer = scorer_of({0: stored})
    scores = scorer.score([record_of(DESIGN, 0)]).to_arrays()
    np.testing.assert_array_equal(scores["scores"][:, 0], stored)
    np.testing.assert_array_equal(scores["coins"][:, 0], record_of(DESIGN, 0).arrays["coins"])


def test_stored_predictions_take_precedence_over_those_of_the_default_classifier():
    stored = np.linspace(-2, 2, 32)
    scorer = scorer_of({0: stored, 1: stored}, default=True)
    for index in (0, 1):
        scores = scorer.score([record_of(DESIGN, index, leak=3.0)])
        np.testing.assert_array_equal(scores.to_arrays()["scores"][:, 0], stored)
    assert scorer.take_predictions() == {}


def test_default_classifier_learns_from_blocks_with_stored_predictions():
    fresh, resumed = scorer_of(default=True), scorer_of({0: np.zeros(32)}, default=True)
    records = [record_of(DESIGN, index, leak=1.0) for index in range(3)]
    for record in records:
        expected, actual = fresh.score([record]), resumed.score([record])
        np.testing.assert_array_equal(actual.to_arrays()["scores"], expected.to_arrays()["scores"])


def test_own_classifier_is_not_asked_about_stored_predictions_and_learns_from_the_block():
    classifier = ConstantClassifier()
    scorer = scorer_of({0: np.zeros(32)}, classifier)
    record = record_of(DESIGN, 0)
    scorer.score([record])
    scorer.learn(record, 32)
    assert classifier.predicted_blocks == 0
    np.testing.assert_array_equal(classifier.learned_coins, record.arrays["coins"])


def test_new_predictions_are_handed_out_once_for_the_store():
    scorer = scorer_of({0: np.zeros(32)}, ConstantClassifier())
    for index in (0, 1):
        scorer.score([record_of(DESIGN, index)])
    predictions = scorer.take_predictions()
    assert list(predictions) == [1]
    np.testing.assert_array_equal(predictions[1], np.full(32, 0.5))
    assert scorer.take_predictions() == {}


def test_without_classifier_only_stored_blocks_can_be_scored():
    scorer = scorer_of({1: np.zeros(32)})
    assert [scorer.can_score(record_of(DESIGN, index)) for index in (0, 1, 2)] == [False, True, False]
    assert scorer_of(default=True).can_score(record_of(DESIGN, 0))


def test_default_classifier_stakes_nothing_on_the_first_block():
    scores = scorer_of(default=True).score([record_of(DESIGN, 0, leak=3.0)])
    assert (scores.to_arrays()["scores"] == 0).all()


def test_lost_block_is_not_bet_on_and_teaches_nothing():
    classifier = ConstantClassifier()
    scorer = scorer_of(classifier=classifier)
    record = lost_block(0)
    scores = scorer.score([record])
    scorer.learn(record, 32)
    assert scores.failed.all()
    assert np.isnan(scores.to_arrays()["scores"]).all()
    assert classifier.predicted_blocks == 0
    assert classifier.learned_coins == []
    assert scorer.take_predictions() == {}


def test_lost_block_after_a_good_one_teaches_nothing():
    classifier = ConstantClassifier()
    scorer = scorer_of(classifier=classifier)
    for record in (record_of(DESIGN, 0), lost_block(1)):
        scorer.score([record])
        scorer.learn(record, 32)
    assert len(classifier.learned_coins) == 32


def test_failed_runs_are_not_bet_on_and_teach_nothing():
    classifier = ConstantClassifier()
    scorer = scorer_of(classifier=classifier)
    record = block_of(DESIGN, 0, np.arange(30.0), failed=[3, 31])
    scores = scorer.score([record])
    scorer.learn(record, 10)
    assert np.flatnonzero(scores.failed[:, 0]).tolist() == [3, 31]
    predictions = scores.to_arrays()["scores"][:, 0]
    assert np.isnan(predictions[[3, 31]]).all()
    assert (np.delete(predictions, [3, 31]) == 0.5).all()
    np.testing.assert_array_equal(classifier.learned_coins, np.delete(record.arrays["coins"][:10], 3))


@pytest.mark.parametrize(
    ("arrays", "metadata"),
    [
        ({"values": np.zeros(3)}, {}),
        ({"identities": np.zeros(3)}, {}),
        ({"rows": np.zeros(3)}, {}),
        ({"columns": np.zeros(3)}, {}),
        ({"rows": np.full(len(text_block().arrays["rows"]), 32.0)}, {}),
        ({"rows": np.full(len(text_block().arrays["rows"]), -1.0)}, {}),
        ({"columns": np.full(len(text_block().arrays["columns"]), 99.0)}, {}),
        ({}, {"names": None}),
        ({}, {"names": ["one"]}),
        ({}, {"texts": [["not a number", "text"]]}),
        ({}, {"texts": [1, 2]}),
    ],
)
def test_damaged_output_table_is_refused(arrays, metadata):
    scorer_of(default=True).score([text_block()])
    with pytest.raises(StoreError, match="the store is damaged: the outputs of trial 0"):
        scorer_of(default=True).score([changed(text_block(), arrays, metadata)])


@pytest.mark.parametrize("missing", ["values", "identities", "rows", "columns"])
def test_missing_output_array_is_refused(missing):
    record = text_block()
    arrays = {name: array for name, array in record.arrays.items() if name != missing}
    with pytest.raises(StoreError, match="the store is damaged"):
        scorer_of(default=True).score([TrialRecord(0, arrays, metadata=record.metadata)])


@pytest.mark.parametrize(
    "logits",
    [np.zeros(31), np.zeros((32, 1)), np.full(32, np.nan), np.full(32, np.inf), 0.0],
    ids=lambda a: str(np.shape(a)),
)
def test_predictions_of_wrong_shape_or_not_finite_are_refused(logits):
    with pytest.raises(AuditFailed, match="must give 32 finite log-odds"):
        scorer_of(classifier=ConstantClassifier(logits)).score([record_of(DESIGN, 0)])


def test_only_failed_runs_is_an_error_that_quotes_the_first_reason():
    scorer = scorer_of(default=True)
    scorer.score([lost_block(0)])
    with pytest.raises(AuditFailed, match="all 32 runs of mechanism raised, the first with: killed"):
        scorer.require_outcomes(32)


@pytest.mark.parametrize("output", [1.0, np.nan])
def test_outputs_that_never_vary_are_an_error(output):
    scorer = scorer_of(default=True)
    scorer.score([block_of(DESIGN, 0, np.full(32, output))])
    with pytest.raises(AuditFailed, match="returned the same output in 32 runs"):
        scorer.require_outcomes(32)


def test_two_distinct_outputs_in_different_blocks_are_enough():
    scorer = scorer_of(default=True)
    for index, output in enumerate((1.0, 2.0)):
        scorer.score([block_of(DESIGN, index, np.full(32, output))])
    scorer.require_outcomes(64)


def test_note_gives_the_first_failure_of_the_block():
    scorer = scorer_of(default=True)
    assert scorer.note(block_of(DESIGN, 0, np.arange(31.0), failed=[7])).failures == {"runs": "RuntimeError: no luck"}
    assert scorer.note(record_of(DESIGN, 0)).failures == {}


def test_explanation_without_classifier_is_empty():
    scorer = scorer_of({0: np.zeros(32)})
    assert scorer.explain(scorer.score([record_of(DESIGN, 0)])) == ""


def test_explanation_counts_the_runs_of_the_result_only():
    scorer = scorer_of(default=True)
    scores = [scorer.score([record_of(DESIGN, index, leak=3.0)]) for index in (0, 1)]
    counted = type(scores[0]).join(scores)[:50]
    coins = counted.to_arrays()["coins"][:, 0]
    explanation = scorer.explain(counted)
    assert f"of {(~coins).sum()} runs on d0" in explanation
    assert f"of {coins.sum()} on d1" in explanation

"""``Ledger``: order of bets, gaps, the row at which an audit stops, and what a learning scorer is shown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lidp import AuditFailed, CoinFlip, LeaveOneOut, ReplaceOne
from lidp.designs.trial_record import TrialRecord
from lidp.engine.ledger import Ledger
from lidp.pairs.classifier import Views
from lidp.pairs.scorer import PairScorer
from tests.designs.records import record_of
from tests.engine.plans import canary_plan, canary_scorer, pair_plan

DESIGNS = [CoinFlip(6), LeaveOneOut(4, 3), ReplaceOne(4, 3)]
TRIALS = 12


def ledger_of(plan, records=()):
    ledger = Ledger(plan, canary_scorer(plan))
    ledger.add(records)
    return ledger


def pair_ledger(plan, classifier=None):
    make = None if classifier else lambda _outputs: Views()
    return Ledger(plan, PairScorer(plan.design, plan.name, {}, classifier=classifier, make_classifier=make))


def outcome(ledger):
    """Return everything that a result takes from a ledger, ready to be compared."""
    scores = ledger.scores()
    arrays = {name: array.tobytes() for name, array in scores.to_arrays().items()}
    return ledger.bound(scores), ledger.notes(scores.trials), ledger.stopped, ledger.epsilon, scores.stopped_early, arrays


def records_of(plan, leak):
    return [record_of(plan.design, index, leak) for index in range(plan.trials)]


@st.composite
def arrivals(draw, trials=TRIALS):
    """All trials in some order, in batches of any size."""
    order = draw(st.permutations(range(trials)))
    cuts = sorted(draw(st.sets(st.integers(1, trials - 1))))
    return [order[start:stop] for start, stop in zip([0, *cuts], [*cuts, trials], strict=True)]


@pytest.mark.parametrize("leak", [0.0, 3.0])
@pytest.mark.parametrize("stop_when", ["never", "refuted"])
@pytest.mark.parametrize("design", DESIGNS, ids=str)
@settings(max_examples=15)
@given(batches=arrivals())
def test_order_of_arrival_does_not_change_the_outcome(design, stop_when, leak, batches):
    plan = canary_plan(design, trials=TRIALS, stop_when=stop_when)
    records = records_of(plan, leak)
    shuffled = ledger_of(plan)
    for batch in batches:
        shuffled.add([records[index] for index in batch])
    assert outcome(shuffled) == outcome(ledger_of(plan, records))


@pytest.mark.parametrize("stop_when", ["never", "refuted"])
@settings(max_examples=15)
@given(batches=arrivals(trials=5))
def test_order_of_arrival_does_not_change_the_outcome_of_a_learning_scorer(stop_when, batches):
    plan = pair_plan(500, stop_when=stop_when)
    records = records_of(plan, leak=1.0)
    assert len(records) == 5
    in_order, shuffled = pair_ledger(plan), pair_ledger(plan)
    in_order.add(records)
    for batch in batches:
        shuffled.add([records[index] for index in batch])
    assert outcome(shuffled) == outcome(in_order)


def test_bets_wait_for_the_trial_that_is_missing():
    plan = canary_plan(trials=6)
    records = records_of(plan, leak=3.0)
    ledger = ledger_of(plan, [records[index] for index in (0, 1, 3, 5)])
    assert ledger.bet_trials == 2
    assert ledger.finished_rows == 4
    assert ledger.missing() == [2, 4]
    assert ledger.epsilon == ledger_of(plan, records[:2]).epsilon
    ledger.add([records[2]])
    assert ledger.bet_trials == 4
    assert list(ledger.missing()) == [4]
    ledger.add([records[4]])
    assert not ledger.missing()
    assert outcome(ledger) == outcome(ledger_of(plan, records))


def test_finished_rows_of_pair_runs_count_runs_after_a_gap():
    plan = pair_plan(500)
    ledger = pair_ledger(plan)
    ledger.add([record_of(plan.design, index) for index in (0, 2)])
    assert plan.design.block_sizes[:3] == (32, 32, 64)
    assert ledger.finished_rows == 32 + 64


def test_stop_is_at_the_first_trial_whose_bound_exceeds_the_claim():
    plan = canary_plan(trials=60, stop_when="refuted")
    records = records_of(plan, leak=3.0)
    one_by_one = ledger_of(plan)
    while not one_by_one.stopped:
        one_by_one.add([records[one_by_one.bet_trials]])
    stop = one_by_one.bet_trials
    assert 1 < stop < 60
    at_once = ledger_of(plan, records)
    scores = at_once.scores()
    assert scores.trials == stop
    assert scores.stopped_early
    assert [note.index for note in at_once.notes(scores.trials)] == list(range(stop))
    method = plan.method
    options = {"delta": plan.claim.delta, "failure_probability": plan.failure_probability}
    assert method.bound(scores, **options) == at_once.bound(scores)
    assert at_once.bound(scores).epsilon > plan.claim.epsilon
    assert method.bound(scores[: stop - 1], **options).epsilon <= plan.claim.epsilon


def test_stop_of_pair_runs_is_at_a_run_within_a_block():
    plan = pair_plan(2000, stop_when="refuted")
    ledger = pair_ledger(plan)
    ledger.add(records_of(plan, leak=3.0))
    scores = ledger.scores()
    stop = scores.trials
    assert ledger.stopped
    assert stop not in [plan.design.rows(trials) for trials in range(plan.trials + 1)]
    options = {"delta": plan.claim.delta, "failure_probability": plan.failure_probability}
    assert ledger.bound(scores).epsilon > plan.claim.epsilon
    assert plan.method.bound(scores[: stop - 1], **options).epsilon <= plan.claim.epsilon
    notes = ledger.notes(stop)
    assert plan.design.rows(len(notes) - 1) < stop <= plan.design.rows(len(notes))


def test_stop_when_never_goes_on_after_the_refutation():
    plan = canary_plan(trials=60, stop_when="never")
    ledger = ledger_of(plan, records_of(plan, leak=3.0))
    assert ledger.epsilon > plan.claim.epsilon
    assert not ledger.stopped
    assert ledger.scores().trials == 60
    assert not ledger.scores().stopped_early


def test_trials_after_the_stop_change_nothing():
    plan = canary_plan(trials=60, stop_when="refuted")
    records = records_of(plan, leak=3.0)
    ledger = ledger_of(plan, records[:40])
    before = outcome(ledger)
    ledger.add(records[40:])
    assert outcome(ledger) == before


def test_method_without_anytime_validity_has_no_bound_so_far():
    plan = canary_plan(LeaveOneOut(4, 3), trials=6, method="wilson")
    ledger = ledger_of(plan, records_of(plan, leak=3.0)[:3])
    assert ledger.epsilon is None
    assert not ledger.stopped
    assert ledger.scores().stopped_early


def test_ledger_without_trials_has_no_scores():
    with pytest.raises(AuditFailed, match="no trial is finished"):
        ledger_of(canary_plan()).scores()


def test_failed_trials_are_counted_and_are_not_whole():
    plan = canary_plan(trials=6)
    records = records_of(plan, leak=0.0)
    records[1] = TrialRecord(1, records[1].arrays, {"scores": "raised"})
    records[4] = TrialRecord(4, records[4].arrays, {"scores": "raised"})
    ledger = ledger_of(plan, [records[index] for index in (0, 1, 3, 4)])
    assert ledger.failed_trials == 2
    assert list(ledger.whole_trials()) == [0, 3]


class RecordingClassifier:
    """A classifier that writes down what it is asked and shown; it predicts from the sign of the output."""

    def __init__(self):
        self.events = []

    def predict(self, outputs):
        self.events.append(("predict", len(outputs)))
        return 2.0 * np.sign(outputs.values[:, 0])

    def learn(self, outputs, coins):
        assert len(outputs) == len(coins)
        self.events.append(("learn", len(outputs)))

    def explain(self):
        return "the sign"


def test_learning_scorer_predicts_and_learns_one_block_at_a_time():
    plan = pair_plan(200)
    classifier = RecordingClassifier()
    ledger = pair_ledger(plan, classifier)
    ledger.add(records_of(plan, leak=0.0))
    assert classifier.events == [(verb, size) for size in plan.design.block_sizes for verb in ("predict", "learn")]


def test_learning_scorer_is_shown_only_the_rows_that_count():
    plan = pair_plan(2000, stop_when="refuted")
    classifier = RecordingClassifier()
    ledger = pair_ledger(plan, classifier)
    ledger.add(records_of(plan, leak=3.0))
    stop = ledger.scores().trials
    assert ledger.stopped
    learned = [size for verb, size in classifier.events if verb == "learn"]
    predicted = [size for verb, size in classifier.events if verb == "predict"]
    assert sum(learned) == stop < sum(predicted)
    assert learned[:-1] == predicted[:-1]


def test_blocks_that_cannot_be_scored_wait():
    plan = pair_plan(200)
    records = records_of(plan, leak=0.0)
    predictions = {0: np.zeros(32), 2: np.zeros(64)}
    ledger = Ledger(plan, PairScorer(plan.design, plan.name, predictions))
    ledger.add(records)
    assert ledger.bet_trials == 1
    assert not ledger.missing()

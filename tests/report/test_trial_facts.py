"""Time and metadata of trials, against loops."""

import numpy as np
import pytest

from lidp.report.trial_facts import BINS, MOST_SERIES, MOST_WORDS, TrialFacts, last_line, plain_name
from lidp.result import TrialNote


def test_series_equals_that_of_a_loop():
    rng = np.random.default_rng(0)
    values = rng.random(1000).round(6)  # notes keep no more than seven digits of seconds
    notes = [TrialNote(i, float(v), 1, {}, {"scores_accuracy": float(v) / 2}) for i, v in enumerate(values)]
    seconds, accuracy = TrialFacts.of(notes).series
    assert (seconds.name, accuracy.name, accuracy.key) == ("seconds", "accuracy", "scores_accuracy")
    assert len(seconds.last) == BINS
    start = 0
    for last, mean, low, high in zip(seconds.last, seconds.mean, seconds.low, seconds.high, strict=True):
        part = values[start : last + 1]
        assert mean == pytest.approx(part.mean())
        assert (low, high) == (part.min(), part.max())
        start = last + 1
    assert start == 1000
    assert accuracy.overall == pytest.approx(values.mean() / 2)


def test_series_of_a_number_that_only_some_trials_have():
    notes = [TrialNote(i, 0.1, 1, {}, {"scores_loss": float(i)} if i % 3 == 0 else {}) for i in range(30)]
    _, loss = TrialFacts.of(notes).series
    assert loss.count == 10
    assert loss.last.tolist() == list(range(0, 30, 3))


@pytest.mark.parametrize("value", ["text", True, None, float("nan"), float("inf"), [1, 2]])
def test_value_that_is_not_a_number_is_counted_as_text(value):
    facts = TrialFacts.of([TrialNote(0, 0.1, 1, {}, {"scores_x": value})])
    assert [series.key for series in facts.series] == ["seconds"]
    assert facts.words[0].values == ((str(value), 1),)


def test_texts_are_sorted_by_frequency_and_cut():
    notes = [TrialNote(i, 0.1, 1, {}, {"scores_kind": f"{'x' * 300}{i % 9 if i > 20 else 0}"[-250:]}) for i in range(60)]
    (words,) = TrialFacts.of(notes).words
    assert len(words.values) == 1  # they differ only where they were cut
    assert words.values[0][1] == 60
    notes = [TrialNote(i, 0.1, 1, {}, {"scores_kind": str(min(i, 9))}) for i in range(60)]
    (words,) = TrialFacts.of(notes).words
    assert words.values[0] == ("9", 51)
    assert len(words.values) == MOST_WORDS
    assert sum(count for _, count in words.values) + words.others == 60


def test_failures_are_counted_and_excess_names_listed():
    notes = [
        TrialNote(
            i, 0.1, 1, {"scores": f"Traceback\n  ...\nRuntimeError: no {i % 2}\n"}, {f"scores_m{j}": 1.0 for j in range(20)}
        )
        for i in range(10)
    ]
    facts = TrialFacts.of(notes)
    assert facts.failures.values == (("RuntimeError: no 0", 5), ("RuntimeError: no 1", 5))
    assert len(facts.series) == MOST_SERIES
    assert len(facts.left_out) == 21 - MOST_SERIES


def test_no_notes_give_no_facts():
    facts = TrialFacts.of([])
    assert facts.series == facts.words == facts.left_out == ()


def test_plain_name_puts_the_run_last():
    assert plain_name("scores_accuracy") == "accuracy"
    assert plain_name("inserted_test_loss") == "test loss, inserted run"
    assert plain_name("held_out_accuracy") == "accuracy, held-out run"
    assert last_line("  \n") == "no reason was given"

"""Notes of trials: compact columns that give back what was put in, as values, as plain data and as columns of a table."""

import json
import sys

import numpy as np
import pytest

from lidp.trial_notes import TrialNote, TrialNotes, note_columns

NOTES = [
    TrialNote(0, 1.0, 1, {"held_out": "lost"}, {"loss": 0.5}),
    TrialNote(1, 2.0, 3, {}, {"text": "a", "sure": True}),
    TrialNote(2, 0.3, 1, {}, {"loss": 1 / 3, "text": "b"}),
    TrialNote(3, 0.25, 1),
]


def test_notes_are_given_back_one_by_one_and_in_order():
    notes = TrialNotes(NOTES)
    assert list(notes) == NOTES == [notes[index] for index in range(4)] == list(notes[:])
    assert notes[-1] == NOTES[-1]
    assert notes == NOTES
    assert notes != NOTES[:3]
    with pytest.raises(IndexError):
        notes[4]


def test_notes_survive_json():
    notes = TrialNotes(NOTES)
    assert TrialNotes.from_dict(json.loads(json.dumps(notes.to_dict()))) == notes
    assert "trials" not in TrialNotes([TrialNote(0, 1.0, 1, {}, {"x": 1})]).to_dict()["metadata"]["x"]


@pytest.mark.parametrize(
    "change",
    [
        {"attempts": {"4": 2}},
        {"failures": {"-1": {"scores": "no"}}},
        {"metadata": {"x": {"values": [1.0]}}},
        {"metadata": {"x": {"values": [1.0], "trials": [4]}}},
        {"colour": 1},
    ],
    ids=str,
)
def test_plain_data_of_trials_that_do_not_exist_is_refused(change):
    with pytest.raises(ValueError, match=r"no trial|colour"):
        TrialNotes.from_dict(TrialNotes(NOTES).to_dict() | change)


def test_the_first_notes_are_a_copy_that_does_not_grow():
    notes = TrialNotes(NOTES[:2])
    first = notes.first(2)
    notes.extend(NOTES[2:])
    assert first == NOTES[:2]
    assert notes.first(1) == NOTES[:1]
    assert list(notes.first(1).metadata) == ["loss"]


def test_notes_of_other_trials_than_the_next_are_refused():
    with pytest.raises(ValueError, match="expected the note of trial 0, got that of trial 3"):
        TrialNotes(NOTES[3:])


def test_trials_without_anything_to_say_take_eight_bytes_each():
    notes = TrialNotes(TrialNote(index, 0.1, 1) for index in range(10_000))
    assert sys.getsizeof(notes.seconds) < 12 * len(notes)  # with the room to grow
    assert not notes.attempts
    assert not notes.failures
    assert not notes.metadata


def test_columns_repeat_the_note_of_each_rows_trial():
    rows, runs = np.array([0, 0, 1]), np.array(["inserted", "held_out", "inserted"])
    columns = note_columns(TrialNotes(NOTES[:2]), rows, runs, np.array([False, True, False]))
    assert list(columns) == ["failure", "seconds", "attempts", "metadata.loss", "metadata.sure"]
    assert columns["failure"].tolist() == ["", "lost", ""]
    assert columns["seconds"].tolist() == [1.0, 1.0, 2.0]
    assert columns["attempts"].tolist() == [1, 1, 3]
    np.testing.assert_array_equal(columns["metadata.loss"], [0.5, 0.5, np.nan])

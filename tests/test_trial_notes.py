"""Notes of trials, as plain data and as columns."""

import json

import numpy as np

from lidp.trial_notes import TrialNote, note_columns


def test_a_note_survives_json():
    note = TrialNote(3, 0.1 + 0.2, 2, {"scores": "ValueError: no"}, {"accuracy": 1 / 3, "name": "x"})
    assert TrialNote(**json.loads(json.dumps(note.to_dict()))) == note


def test_columns_repeat_the_note_of_each_rows_trial():
    notes = [TrialNote(0, 1.0, 1, {"held_out": "lost"}, {"loss": 0.5}), TrialNote(1, 2.0, 3, {}, {"text": "a"})]
    rows, runs = np.array([0, 0, 1]), np.array(["inserted", "held_out", "inserted"])
    columns = note_columns(notes, rows, runs, np.array([False, True, False]))
    assert list(columns) == ["failure", "seconds", "attempts", "metadata.loss"]
    assert columns["failure"].tolist() == ["", "lost", ""]
    assert columns["seconds"].tolist() == [1.0, 1.0, 2.0]
    assert columns["attempts"].tolist() == [1, 1, 3]
    np.testing.assert_array_equal(columns["metadata.loss"], [0.5, 0.5, np.nan])

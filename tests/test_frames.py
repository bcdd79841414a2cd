"""Scores and results as data frames."""

import sys

import numpy as np
import pytest

from lidp import CoinFlip, InvalidArgument, LeaveOneOut, Scores
from lidp.result import TrialNote
from lidp.score_files import read_scores
from tests.report.results import CASES, pair_result, result_like, scores_like

pytest.importorskip("pandas", reason="data frames need the extra frame")


def test_a_frame_of_coins_has_a_row_per_trial_and_canary():
    scores = Scores(scores=[[1.5, 2.5], [0.0, -1.0]], coins=[[0, 1], [1, 0]], failed=[False, True])
    frame = scores.to_frame()
    assert list(frame.columns) == ["trial", "canary", "coin", "score", "failed"]
    assert frame[["trial", "canary", "coin"]].values.tolist() == [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    np.testing.assert_array_equal(frame["score"], [1.5, 2.5, np.nan, np.nan])
    assert frame["failed"].tolist() == [False, False, True, True]


def test_a_frame_of_arms_keeps_the_arms_apart():
    scores = Scores(inserted=[[1, 2], [3, 4]], held_out=[[5], [6]], failed=[[False, True], [False, False]])
    frame = scores.to_frame()
    inserted = frame[frame["arm"] == "inserted"].pivot_table(index="trial", columns="canary", values="score")
    np.testing.assert_array_equal(inserted, scores.arms()[0])
    held_out = frame[frame["arm"] == "held_out"]
    np.testing.assert_array_equal(held_out["score"], [np.nan, 6])
    assert held_out["failed"].tolist() == [True, False]


@pytest.mark.parametrize("design", [CoinFlip(6), LeaveOneOut(4, 3)], ids=str)
def test_a_frame_written_as_csv_reads_back_as_the_same_scores(design, tmp_path):
    scores = scores_like(design)
    scores.to_frame().to_csv(tmp_path / "scores.csv", index=False)
    again = read_scores(tmp_path / "scores.csv")
    for name, array in scores.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)


@pytest.mark.parametrize("name", list(CASES))
def test_the_frame_of_a_result_adds_the_notes_of_each_trial(name):
    scores = scores_like(CASES[name], failed=1)
    failures = dict.fromkeys(("scores", "inserted", "held_out"), "ValueError: broken")
    notes = [TrialNote(i, float(i), 1, failures if i == 0 else {}, {"loss": -i}) for i in range(scores.trials)]
    frame = result_like(scores, notes=tuple(notes)).to_frame()
    assert len(frame) == len(scores.to_frame())
    assert (frame["seconds"] == frame["trial"]).all()
    assert (frame["metadata.loss"] == -frame["trial"]).all()
    assert (frame["failed"] == (frame["trial"] == 0)).all()
    assert (frame["failure"] == frame["failed"].map({True: "ValueError: broken", False: ""})).all()


def test_the_frame_of_a_pair_audit_has_a_row_per_run_with_the_number_of_its_block():
    result = pair_result()
    frame = result.to_frame()
    assert list(frame.columns)[:5] == ["run", "trial", "coin", "score", "failed"]
    assert frame["run"].tolist() == list(range(result.scores.trials))
    for trial, runs in frame.groupby("trial")["run"]:
        assert runs.min() == result.design.rows(trial)
        assert runs.max() < result.design.rows(trial + 1)
    assert (frame["seconds"] == frame["trial"].map({note.index: note.seconds for note in result.notes})).all()


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidArgument, match=r"a data frame needs the package pandas; pip install 'lidp\[frame\]'"):
        scores_like(CoinFlip(2)).to_frame()

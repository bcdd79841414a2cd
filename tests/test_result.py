"""Results as JSON and back."""

import json
import pickle
from copy import deepcopy

import numpy as np
import pytest

import lidp
from lidp import AuditResult, InvalidArgument
from lidp.errors import MissingScores
from lidp.result import TrialNote
from lidp.score_files import write_scores
from tests.report import curve_results
from tests.report.results import CASES, case, every_case, pair_result, result_like, scores_like
from tests.stats.own_methods import Hoeffding

KEPT = ("notes", "versions", "seconds", "configuration", "computed_with", "failed_runs", "retried_trials")


def same(one, other):
    return one == other and all(getattr(one, name) == getattr(other, name) for name in KEPT)


@pytest.mark.parametrize(("name", "method"), every_case())
def test_a_result_of_any_method_survives_json_exactly(name, method):
    result = case(name, method)
    again = AuditResult.from_json(result.to_json(scores=True))
    assert same(again, result)
    assert again.to_json(scores=True) == result.to_json(scores=True)
    for array, kept in result.scores.to_arrays().items():
        np.testing.assert_array_equal(again.scores.to_arrays()[array], kept)


@pytest.mark.parametrize("make", [pair_result, curve_results.refuted, curve_results.refuted_by_canary])
def test_results_of_real_audits_survive_json_exactly(make):
    result = make()
    again = AuditResult.from_json(result.to_json(scores=True))
    assert same(again, result)
    assert str(again) == str(result)
    assert lidp.recheck(again.witness()) == lidp.recheck(result.witness())


def test_failed_runs_survive_json_with_and_without_scores():
    notes = tuple(TrialNote(i, 0.1, 1, {"trial": "died"} if i < 2 else {}) for i in range(48))
    result = result_like(scores_like(CASES["leave"], failed=2), notes=notes)
    assert result.failed_runs == 6
    for scores in (False, True):
        again = AuditResult.from_json(result.to_json(scores=scores))
        assert again.failed_runs == 6
        assert again.to_dict(scores=scores) == result.to_dict(scores=scores)
    assert again.scores.failed.sum() == 4


def test_what_needs_scores_says_that_json_did_not_hold_them(tmp_path):
    again = AuditResult.from_json(case("coins", "coin-wager").to_json())
    assert "refuted" in str(again)
    for need in (
        again.witness,
        again.to_frame,
        lambda: again.scores.trials,
        lambda: again.to_json(scores=True),
        lambda: lidp.write_report(again, tmp_path / "page.html"),
        lambda: write_scores(again.scores, tmp_path / "scores.npz"),
    ):
        with pytest.raises(MissingScores, match=r"read the store with lidp\.result_of, or .* to_json\(scores=True\)"):
            need()
    assert not (tmp_path / "page.html").exists()


def test_a_result_without_scores_can_be_pickled():
    again = AuditResult.from_json(case("coins", "coin-wager").to_json())
    assert same(pickle.loads(pickle.dumps(again)), again)  # noqa: S301  # our own


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": "maybe"}, "not a valid Verdict"),
        ({"verdict": "not refuted"}, "states that the claim is not refuted, its bound says refuted"),
        ({"bound": {}}, "not an epsilon bound"),
        ({"claim": {"epsilon": -1}}, "epsilon"),
        ({"design": {"kind": "Path"}}, "unknown design"),
        ({"method": {"kind": "Path"}}, "unknown method"),
        ({"trial_notes": {"colour": 1}}, "colour"),
        ({"seed": float("inf")}, "infinity"),
        ({"facts": None}, "NoneType"),
    ],
    ids=str,
)
def test_json_of_something_else_is_refused_in_one_line(changes, words):
    plain = json.loads(case("coins", "coin-wager").to_json())
    with pytest.raises(InvalidArgument, match=words) as caught:
        AuditResult.from_json(json.dumps(plain | changes))
    assert "\n" not in str(caught.value)


def test_a_method_of_a_users_own_is_found_only_if_it_is_given_or_imported_unchanged():
    result = result_like(scores_like(CASES["leave"]), Hoeffding(0.5))
    assert AuditResult.from_json(result.to_json()).method == Hoeffding(0.5)
    other = json.loads(result.to_json())
    other["method"]["code"] = "0" * 16
    with pytest.raises(lidp.ClassNotImported, match="its code differs"):
        AuditResult.from_dict(other)
    assert AuditResult.from_dict(other, methods=[Hoeffding]).method == Hoeffding(0.5)


@pytest.mark.parametrize("name", ["bound", "trial_notes", "failed_runs", "configuration"])
def test_json_with_a_missing_part_names_it(name):
    plain = deepcopy(case("coins", "coin-wager").to_dict())
    del plain[name]
    with pytest.raises(InvalidArgument, match=f"not an audit result: '{name}' is missing"):
        AuditResult.from_dict(plain)


@pytest.mark.parametrize("text", ["[1]", "{", "3"])
def test_text_that_is_no_object_is_refused(text):
    with pytest.raises(InvalidArgument, match="not an audit result|not JSON"):
        AuditResult.from_json(text)

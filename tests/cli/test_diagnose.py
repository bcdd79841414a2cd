"""``lidp diagnose``: what it prints, and that its exit code never means "refuted"."""

import json
import math
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from lidp import Claim
from tests.cli.invoke import lidp
from tests.diagnosis.simulated_runs import Training
from tests.diagnosis.stored_runs import stored

ASSETS = Path(__file__).parent.parent / "assets"
DPSGD = ("audit-dpsgd", "--epsilon", "8", "--records", "300", "--epochs", "8", "--canaries", "32", "--quiet")
TRANSCRIPT = (*DPSGD, "--canary", "dirac-gradient", "--scores", "transcript")


def test_findings_and_limits_are_printed(capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training(group_noise=(1.0, 0.1)))
    code, out, err = lidp(capsys, "diagnose", path)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].startswith("  fc2.weight: noise 0.09")
    assert lines[1].endswith("of what is claimed; no deviation found in the other groups")
    assert "A diagnosis is no privacy bound" in lines[-1]


def test_json_has_all_limits(capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training())
    code, out, err = lidp(capsys, "diagnose", path, "--json", "--failure-probability", "0.01")
    assert (code, err) == (0, "")
    plain = json.loads(out)
    assert plain["findings"] == []
    assert plain["failure_probability"] == 0.01
    assert {one["quantity"] for one in plain["measurements"]} == {
        "noise",
        "correlation",
        "rate times contribution",
        "sampling rate",
        "contribution",
    }


def test_a_claim_of_a_point_needs_the_claimed_numbers(capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training(noise=0.5), claim=Claim(1.0, 1e-5))
    code, out, err = lidp(capsys, "diagnose", path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "name it: --noise-multiplier" in err
    given = ("--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", "200")
    code, out, _ = lidp(capsys, "diagnose", path, *given)
    assert code == 0
    assert "noise 0.4" in out


def test_canaries_that_are_not_known_to_be_separate(capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training(grouped=False))
    assert "may overlap" in lidp(capsys, "diagnose", path)[1]
    assert "may overlap" not in lidp(capsys, "diagnose", path, "--separate-canaries")[1]


@pytest.mark.parametrize("name", ["coin-flip", "leave-one-out", "replace-one", "pair"])
def test_stores_without_transcripts_are_refused(name, capsys, tmp_path):
    path = shutil.copyfile(ASSETS / f"{name}.db", tmp_path / "a.db")
    code, out, err = lidp(capsys, "diagnose", path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "has no transcript" in err


def test_a_store_with_coins_but_no_transcript_names_the_remedy(capsys, tmp_path):
    path = shutil.copyfile(ASSETS / "coin-flip.db", tmp_path / "a.db")
    assert lidp(capsys, "diagnose", path)[2] == f"lidp: {path} has no transcript; audit with --scores transcript\n"


def test_a_missing_file_is_refused(capsys, tmp_path):
    code, out, err = lidp(capsys, "diagnose", tmp_path / "none.db")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "none.db" in err


@pytest.mark.parametrize("probability", ["0", "1", "nan", "-0.1"])
def test_a_failure_probability_outside_its_range_is_refused(probability, capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training(canaries=4, steps=10), trials=1)
    code, _, err = lidp(capsys, "diagnose", path, "--failure-probability", probability)
    assert code == 2
    assert "failure_probability" in err


def _spoil(column, value):
    def change(records):
        for record in records:
            array = record.evidence[column].copy()
            array[-1] = value
            record.evidence[column] = array
        return records

    return change


@pytest.mark.parametrize(("column", "value"), [("square", math.nan), ("count", math.inf), ("group", 9), ("length", -1)])
def test_unreadable_evidence_is_refused_and_reported_around(column, value, capsys, tmp_path):
    path = stored(tmp_path / "a.db", Training(canaries=4, steps=10), change=_spoil(column, value))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, out, err = lidp(capsys, "diagnose", path)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert "no transcript that can be read" in err
        assert lidp(capsys, "report", path, "-o", tmp_path / "a.html")[0] == 0
    assert "Where the evidence is" not in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_group_names_cannot_move_the_cursor(capsys, tmp_path):
    def rename(records):
        for record in records:
            record.metadata["scores_groups"] = "\x1b[2J, b"
        return records

    path = stored(tmp_path / "a.db", Training(canaries=16, steps=50), change=rename)
    code, out, _ = lidp(capsys, "diagnose", path)
    assert code == 0
    assert "\x1b" not in out


@pytest.mark.slow
def test_a_refuted_audit_is_diagnosed_with_exit_code_0(capsys, tmp_path):
    path = tmp_path / "a.db"
    code, out, _ = lidp(capsys, *TRANSCRIPT, "--true-noise", "0.2", "--trials", "16", "--store", path)
    assert (code, out.split(":")[0]) == (1, "refuted")
    code, out, _ = lidp(capsys, "diagnose", path)
    assert code == 0
    assert out.splitlines()[1].startswith("  noise 0.1")


@pytest.mark.slow
def test_an_understated_sampling_rate_is_diagnosed(capsys, tmp_path):
    path = tmp_path / "a.db"
    lidp(capsys, *TRANSCRIPT, "--fault", "wrong-rate", "--trials", "16", "--stop-when", "never", "--store", path)
    code, out, _ = lidp(capsys, "diagnose", path)
    assert code == 0
    assert out.splitlines()[1].startswith("  canaries took part in")
    assert "times the claimed sampling rate of" in out.splitlines()[1]


@pytest.mark.slow
def test_missing_clipping_is_diagnosed_with_records_one_per_run(capsys, tmp_path):
    path = tmp_path / "a.db"
    words = ("audit-dpsgd", "--epsilon", "8", "--canary", "mislabelled", "--canaries", "1", "--scores", "transcript")
    lidp(capsys, *words, "--fault", "no-clipping", "--trials", "16", "--stop-when", "never", "--store", path, "--quiet")
    code, out, _ = lidp(capsys, "diagnose", path)
    assert code == 0
    assert "times its clipped gradient when it takes part: clipping does not hold" in out


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["dirac-gradient", "random-gradient", "mislabelled", "blank"])
def test_a_correct_trainer_shows_nothing(canary, capsys, tmp_path):
    path = tmp_path / "a.db"
    lidp(capsys, *DPSGD, "--canary", canary, "--scores", "transcript", "--trials", "4", "--store", path)
    code, out, _ = lidp(capsys, "diagnose", path)
    assert code == 0
    assert out.splitlines()[1].startswith("  nothing found, within these limits: noise ")


def test_the_json_of_an_audit_does_not_grow_by_its_transcripts(tmp_path):
    from lidp import result_of

    result = result_of(stored(tmp_path / "a.db", Training(canaries=4, steps=10)))
    assert len(result.transcripts) == 4
    assert "transcripts" not in result.to_dict()
    assert np.isfinite(result.transcripts[0].evidence["square"]).all()

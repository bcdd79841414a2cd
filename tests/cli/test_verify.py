"""``lidp verify``."""

import json

import pytest

from tests.cli.invoke import lidp
from tests.seals.sealed import edit_json, gradients, scored


@pytest.fixture
def receipt(capsys, tmp_path):
    gradients(tmp_path / "s")
    assert lidp(capsys, "open", tmp_path / "s", "--scores", scored(tmp_path / "s", shift=4.0))[0] == 1
    return tmp_path / "s" / "receipt.json"


def test_refuted_claims_verify_with_exit_code_0(capsys, receipt):
    code, out, err = lidp(capsys, "verify", receipt)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "the receipt holds: it states the verdict 'refuted'"
    assert "holds        bound: computed again" in out


def test_edited_receipts_end_with_2_and_say_what_fails(capsys, receipt):
    edit_json(receipt, lambda plain: plain.update(verdict="not refuted"))
    code, out, _ = lidp(capsys, "verify", receipt)
    assert code == 2
    assert "FAILS        digest" in out
    assert "FAILS        verdict" in out
    code, out, _ = lidp(capsys, "verify", receipt, "--json")
    assert code == 2
    assert json.loads(out)["holds"] is False


def test_seal_and_scores_are_checked_too(capsys, tmp_path, receipt):
    code, out, _ = lidp(capsys, "verify", receipt, "--seal", tmp_path / "s", "--scores", scored(tmp_path / "s", shift=4.0))
    assert code == 0
    assert "candidates and coins included" in out


def test_receipts_without_evidence(capsys, tmp_path):
    gradients(tmp_path / "s")
    scores = scored(tmp_path / "s")
    lidp(capsys, "open", tmp_path / "s", "--scores", scores, "--without-evidence")
    code, out, _ = lidp(capsys, "verify", tmp_path / "s" / "receipt.json")
    assert code == 2
    assert "not checked  evidence" in out
    assert lidp(capsys, "verify", tmp_path / "s" / "receipt.json", "--seal", tmp_path / "s", "--scores", scores)[0] == 0


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000, '{"format": 1, "verdict": "\x1b[2J"}', '{"a": 1e999}'])
def test_hostile_files_give_one_line(capsys, tmp_path, content):
    (tmp_path / "r.json").write_text(content)
    code, out, err = lidp(capsys, "verify", tmp_path / "r.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err[:-1].isprintable()
    assert lidp(capsys, "verify", tmp_path / "none.json")[0] == 2

"""``lidp open``."""

import json

import pytest

from tests.cli.invoke import lidp
from tests.seals.sealed import gradients, scored, simulated, write_csv


@pytest.fixture
def sealed(tmp_path):
    gradients(tmp_path / "s")
    return tmp_path / "s"


def test_exit_codes_are_those_of_verdicts(capsys, tmp_path):
    for name, shift, expected in (("a", 0.0, 0), ("b", 4.0, 1)):
        gradients(tmp_path / name)
        code, out, err = lidp(capsys, "open", tmp_path / name, "--scores", scored(tmp_path / name, shift=shift))
        assert (code, err) == (expected, "")
        assert out.startswith("refuted: " if expected else "not refuted: ")
        assert (tmp_path / name / "receipt.json").exists()


def test_opening_again_prints_the_same(capsys, sealed):
    first = lidp(capsys, "open", sealed, "--scores", scored(sealed))
    assert lidp(capsys, "open", sealed, "--scores", scored(sealed)) == first
    code, _, err = lidp(capsys, "open", sealed, "--scores", scored(sealed, seed=2))
    assert code == 2
    assert "opened with other scores before" in err
    assert err.count("\n") == 1


def test_all_files_that_can_be_written(capsys, sealed, tmp_path):
    files = {name: tmp_path / name for name in ("receipt.json", "card.md", "page.html")}
    code, out, _ = lidp(
        capsys, "open", sealed, "--scores", scored(sealed), "--receipt", files["receipt.json"],
        "--model-card", files["card.md"], "--report", files["page.html"], "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["verdict"] == "not refuted"
    assert "evidence" not in json.loads(out)
    assert files["card.md"].read_text(encoding="utf-8").startswith("## Privacy audit")
    page = files["page.html"].read_text(encoding="utf-8")
    assert "Scores use the trained model and the candidate alone, not who was in." in page
    assert not (sealed / "receipt.json").exists()
    assert lidp(capsys, "verify", files["receipt.json"])[0] == 0


def test_report_as_json(capsys, sealed, tmp_path):
    lidp(capsys, "open", sealed, "--scores", scored(sealed), "--report", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["verdict"] == "not refuted"
    assert report["commitments"] == [json.loads((sealed / "commitment.json").read_text())["digest"]]


def test_reports_do_not_tell_the_seed_of_the_coins(capsys, sealed, tmp_path):
    seed = "987654321987654321"
    coins = sealed / "coins.json"
    plain = json.loads(coins.read_text())
    coins.write_text(json.dumps({**plain, "seed": int(seed)}))
    for name in ("r.json", "page.html"):
        code, _, _ = lidp(capsys, "open", sealed, "--scores", scored(sealed), "--report", tmp_path / name)
        assert code == 0
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert seed not in text
        assert json.loads((sealed / "commitment.json").read_text())["digest"] in text


def test_a_folder_that_is_not_sealed_is_named(capsys, tmp_path):
    code, _, err = lidp(capsys, "open", tmp_path / "none", "--scores", tmp_path / "scores.csv")
    assert (code, err) == (2, f"lidp: {tmp_path / 'none'}: there is no such folder; name the one that lidp seal wrote\n")


def test_looks_that_are_left_tell_the_verdict_alone(capsys, tmp_path):
    gradients(tmp_path / "s", looks=2)
    code, out, _ = lidp(capsys, "open", tmp_path / "s", "--scores", scored(tmp_path / "s"))
    assert code == 0
    assert out.startswith("not refuted: look 1 of 2 (failure probability 0.025 of each look)")
    assert "ε ≥" not in out
    assert "receipt    not written yet" in out
    assert not (tmp_path / "s" / "receipt.json").exists()
    code, out, _ = lidp(capsys, "open", tmp_path / "s", "--scores", scored(tmp_path / "s"), "--json")
    assert set(json.loads(out)) == {"verdict", "claim", "look", "evidence_hash"}
    code, out, _ = lidp(capsys, "open", tmp_path / "s", "--scores", scored(tmp_path / "s"), "--last")
    assert "ε ≥" in out
    assert lidp(capsys, "open", tmp_path / "s", "--scores", scored(tmp_path / "s", seed=2))[0] == 2


def test_failed_trainings(capsys, tmp_path):
    gradients(tmp_path / "1")
    lidp(capsys, "seal", "--like", tmp_path / "1", "-o", tmp_path / "2")
    both = ("open", tmp_path / "1", tmp_path / "2", "--scores", scored(tmp_path / "1", shift=3.0))
    code, _, err = lidp(capsys, *both, "--failed", "out of memory")
    assert code == 2
    assert "say which one failed" in err
    code, out, _ = lidp(capsys, *both, "--failed", "2: out of memory")
    assert code == 1
    assert "1 run failed" in out
    assert lidp(capsys, *both, "--failed", "1: a", "--failed", "1: b")[0] == 2


def test_a_single_failed_training_is_inconclusive(capsys, sealed):
    code, out, _ = lidp(capsys, "open", sealed, "--failed", "out of memory")
    assert code == 0
    assert out.startswith("inconclusive")
    assert "too few trials to refute any mechanism; seal further runs, or a new plan with more canaries" in out


def test_bad_outputs_and_keys_are_found_before_a_look_is_spent(capsys, sealed, tmp_path):
    scores = scored(sealed)
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for option, value, reason in (
        ("--report", tmp_path / "file" / "r.html", "its folder cannot be created"),
        ("--receipt", sealed / "coins.json", "belongs to a seal"),
        ("--model-card", sealed / "commitment.json", "belongs to a seal"),
        ("--receipt", tmp_path / "link.json", "symbolic link"),
        ("--sign", tmp_path / "none.pem", "No such file"),
    ):
        code, _, err = lidp(capsys, "open", sealed, "--scores", scores, option, value)
        assert code == 2, option
        assert reason in err
        assert not (sealed / "openings.jsonl").exists()


def test_control_characters_in_ids_do_not_reach_the_terminal(capsys, sealed):
    rows = {"\x1b[2J\u202e": 1.0, **simulated(sealed)}
    code, _, err = lidp(capsys, "open", sealed, "--scores", write_csv(sealed.with_name("x.csv"), rows))
    assert code == 2
    assert "is no candidate" in err
    assert err[:-1].isprintable()


def test_hostile_folders_give_one_line(capsys, sealed):
    scores = scored(sealed)
    for name, content in (
        ("commitment.json", "[" * 100_000),
        ("commitment.json", '{"format": 1e999}'),
        ("coins.json", "\0"),
    ):
        before = (sealed / name).read_bytes()
        (sealed / name).write_text(content)
        code, out, err = lidp(capsys, "open", sealed, "--scores", scores)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "should not have happened" not in err
        (sealed / name).write_bytes(before)


@pytest.mark.parametrize("option", ["--receipt", "--model-card", "--report"])
def test_scores_and_files_of_the_seal_are_never_replaced(capsys, sealed, option):
    scores = scored(sealed)
    (sealed / "train").mkdir()
    (sealed / "train" / "state.json").write_text("{}", encoding="utf-8")
    for file in (scores, sealed / ".." / scores.name, sealed / "coins.json", sealed / "train" / "state.json"):
        before = file.read_bytes()
        code, _, err = lidp(capsys, "open", sealed, "--scores", scores, option, file)
        assert code == 2
        assert "choose another name" in err
        assert file.read_bytes() == before
    assert not (sealed / "openings.jsonl").exists()


def test_outputs_need_different_names(capsys, sealed, tmp_path):
    same = tmp_path / "same.json"
    code, _, err = lidp(capsys, "open", sealed, "--scores", scored(sealed), "--receipt", same, "--report", same)
    assert (code, err) == (2, f"lidp: {same} is to be written twice; choose different names\n")

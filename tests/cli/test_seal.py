"""``lidp seal``."""

import json

import pytest

from tests.cli.invoke import lidp

GRADIENTS = ("--kind", "gradients", "--canaries", 500, "--gaussian-mu", 1)


def test_seal_says_who_gets_what_and_what_to_publish(capsys, tmp_path):
    code, out, err = lidp(capsys, "seal", *GRADIENTS, "--runs", 1, "-o", tmp_path / "s")
    assert (code, err) == (0, "")
    digest = json.loads((tmp_path / "s" / "commitment.json").read_text())["digest"]
    assert f"publish    {digest}" in out
    assert "trainer    gets planting.json and nothing else" in out
    assert "scorer     gets candidates.jsonl" in out
    assert "coins.json: whoever trains or scores must not see it" in out


def test_seal_as_json_is_the_commitment(capsys, tmp_path):
    code, out, _ = lidp(capsys, "seal", *GRADIENTS, "-o", tmp_path / "s", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "s" / "commitment.json").read_text())
    assert json.loads(out)["plan"]["method"]["kind"] == "CurveWager"


def test_seal_notes_that_it_can_refute_nothing(capsys, tmp_path):
    code, _, err = lidp(capsys, "seal", "--kind", "gradients", "--canaries", 3, "--epsilon", 4, "-o", tmp_path / "s")
    assert code == 0
    assert "use more canaries or more runs" in err


def test_seal_of_text_with_other_columns(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\na b,1\nc d,0\n")
    arguments = (
        "seal",
        "--data",
        tmp_path / "d.csv",
        "--kind",
        "text",
        "--canaries",
        20,
        "--epsilon",
        1,
        "-o",
        tmp_path / "s",
    )
    code, _, err = lidp(capsys, *arguments)
    assert code == 2
    assert "--fill label=VALUE" in err
    code, _, _ = lidp(capsys, *arguments, "--fill", "label=7")
    assert code == 0
    assert ",7\n" in (tmp_path / "s" / "train.csv").read_text()


def test_seal_like_another_one(capsys, tmp_path):
    lidp(capsys, "seal", *GRADIENTS, "-o", tmp_path / "1")
    code, out, _ = lidp(capsys, "seal", "--like", tmp_path / "1", "-o", tmp_path / "2")
    assert code == 0
    assert "run 2 of plan" in out
    for extra in (("--looks", 2), ("--epsilon", 1), ("--independent-canaries",)):
        code, _, err = lidp(capsys, "seal", "--like", tmp_path / "1", "-o", tmp_path / "3", *extra)
        assert code == 2
        assert f"{extra[0]} is fixed by the plan" in err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--canaries", 9, "--epsilon", 1), "--kind is missing"),
        (("--kind", "gradients", "--epsilon", 1), "--canaries is missing"),
        (("--kind", "gradients", "--canaries", 9), "no claim"),
        ((*GRADIENTS, "--fill", "a=1"), "--fill is for --kind text"),
        ((*GRADIENTS, "--text-field", "a"), "--text-field is for --kind text"),
        (("--kind", "text", "--canaries", 9, "--epsilon", 1, "--fill", "a"), "--fill must be COLUMN=VALUE"),
        ((*GRADIENTS, "--seed", 1, "--seed-from-os"), "contradict each other"),
        ((*GRADIENTS, "--canary", "random-gradient", "--independent-canaries"), "random gradients overlap"),
        ((*GRADIENTS, "--method", "one-run"), "--runs N"),
        ((*GRADIENTS, "--failure-probability", 2), "failure_probability"),
        ((*GRADIENTS, "--looks", 0), "looks must be"),
    ],
)
def test_seal_refuses_in_one_line(capsys, tmp_path, arguments, reason):
    code, out, err = lidp(capsys, "seal", *arguments, "-o", tmp_path / "s")
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1
    assert not (tmp_path / "s").exists()

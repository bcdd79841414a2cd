"""``lidp bound`` on files of scores."""

import json

import numpy as np
import pytest

from lidp import METHODS, EpsilonBound
from tests.cli.invoke import lidp


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (64, 16))
    np.savez(folder / "coins.npz", scores=2 * coins + rng.standard_normal(coins.shape), coins=coins)
    np.savez(folder / "arms.npz", inserted=2 + rng.standard_normal((200, 8)), held_out=rng.standard_normal((200, 8)))
    np.savez(folder / "single.npz", inserted=2 + rng.standard_normal((400, 1)), held_out=rng.standard_normal((400, 1)))
    np.savez(folder / "empty.npz", scores=np.ones((0, 3)), coins=np.ones((0, 3)))
    np.savez(folder / "nan.npz", scores=np.array([[1.0, np.nan]]), coins=np.ones((1, 2)))
    np.savez(folder / "odd.npz", scores=np.ones((2, 2)), coins=np.full((2, 2), 3))
    np.savez(folder / "shape.npz", scores=np.ones((2, 2)), coins=np.ones((2, 3)))
    np.savez(folder / "heads.npz", scores=np.ones((64, 4)), coins=np.ones((64, 4)))
    return folder


def file_for(name):
    if name in ("coin-wager", "curve-wager", "curve-wager-with-guesses", "one-run", "one-run-fdp", "signed-ranks"):
        return "coins"
    return "single" if name in ("clopper-pearson", "jeffreys", "joint-beta") else "arms"


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_by_name(capsys, files, name):
    arguments = ["bound", files / f"{file_for(name)}.npz", "--method", name, "--delta", "1e-5"]
    arguments += ["--gaussian-mu", 9] if METHODS[name].needs_curve else []  # which is not refuted
    code, out, err = lidp(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["epsilon"] > 0.3
    assert found["method"] == name
    code, out, _ = lidp(capsys, *arguments)
    assert code == 0
    told = float(out.split()[2])
    assert found["epsilon"] * (1 - 1e-3) < told <= found["epsilon"]  # rounded down


def test_options_reach_the_method(capsys, files):
    _, out, _ = lidp(
        capsys, "bound", files / "arms.npz", "--delta", "1e-5", "--failure-probability", "0.01", "--method", "wilson",
        "--order", 4, "--as-printed", "--threshold", "fixed:1.5", "--direction", "forward",
        "--neighbours", "replace-one", "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert found["parameters"] == {"order": 4, "as_printed": True, "threshold": "fixed:1.5"}
    assert (found["direction"], found["neighbours"]) == ("forward", "replace-one")
    assert (found["delta"], found["failure_probability"]) == (1e-5, 0.01)
    assert found["thresholds"] == {"forward": 1.5}


def test_a_claim_is_judged(capsys, files):
    code, out, _ = lidp(capsys, "bound", files / "coins.npz", "--delta", "1e-5", "--claim", "0.5")
    assert code == 1
    assert out.splitlines()[-1] == "the claim (0.5, 1e-05)-DP under add-remove neighbours is refuted"
    code, out, _ = lidp(capsys, "bound", files / "coins.npz", "--delta", "1e-5", "--claim", "9", "--json")
    assert code == 0
    assert json.loads(out)["verdict"] == {"claim": 9.0, "refuted": False}
    assert EpsilonBound.from_json(out).method == "coin-wager"


def test_all_methods_in_a_table_that_warns(capsys, files):
    code, out, _ = lidp(capsys, "bound", files / "arms.npz", "--delta", "1e-5", "--method", "all")
    assert code == 0
    assert "lifted-betting" in out
    assert "is not a valid bound" in out
    assert "not applicable: coin-wager" in out
    code, out, _ = lidp(capsys, "bound", files / "arms.npz", "--delta", "1e-5", "--method", "all", "--json")
    found = json.loads(out)
    assert set(found["bounds"]) == {"lifted-betting", "wilson", "bernstein", "gaussian-dp"}
    assert "dependent" in found["not_applicable"]["clopper-pearson"]
    assert "not a valid bound" in found["warning"]


def test_all_methods_at_delta_zero_leave_out_those_that_need_one(capsys, files):
    _, out, _ = lidp(capsys, "bound", files / "coins.npz", "--delta", "0", "--method", "all", "--json")
    found = json.loads(out)
    assert "coin-wager" in found["bounds"]
    assert "delta" in found["not_applicable"]["one-run-fdp"]


BAD = [
    (["bound", "/nowhere/a.db"], "there is no such file"),
    (["bound", "none.npz", "--delta", "1e-5"], "there is no such file"),
    (["bound", "coins.npz"], "--delta"),
    (["bound", "empty.npz", "--delta", "1e-5"], "at least one trial"),
    (["bound", "nan.npz", "--delta", "1e-5"], "trial 0, canary 1"),
    (["bound", "odd.npz", "--delta", "1e-5"], "coins must be 0 or 1, got 3 at trial 0, canary 0"),
    (["bound", "shape.npz", "--delta", "1e-5"], "shape of scores"),
    (["bound", "coins.npz", "--delta", "2"], "delta must be at least 0 and below 1, got 2.0"),
    (["bound", "coins.npz", "--delta", "nan"], "delta must be a number, got nan"),
    (["bound", "coins.npz", "--delta", "one"], "number, got 'one' (see lidp bound --help)"),
    (["bound", "coins.npz", "--delta="], "number, got ''"),
    (["bound", "coins.npz", "--delta", "x"], "--delta"),
    (["bound", "coins.npz", "--delta", "0", "--failure-probability", "0"], "failure_probability"),
    (["bound", "coins.npz", "--delta", "0", "--method", "magic"], "unknown method 'magic'"),
    (["bound", "coins.npz", "--delta", "0", "--method", "wilson"], "how many are inserted varies"),
    (["bound", "arms.npz", "--delta", "0", "--method", "clopper-pearson"], "dependent"),
    (["bound", "arms.npz", "--delta", "0", "--method", "one-run"], "independent fair coins"),
    (["bound", "arms.npz", "--delta", "0", "--method", "gaussian-dp"], "delta must lie strictly between"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--order", "16"], "use order=8"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--order", "3"], "power of two"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--as-printed"], "as_printed"),
    (["bound", "arms.npz", "--delta", "0", "--order", "2"], "lifted-betting takes no --order"),
    (["bound", "arms.npz", "--delta", "0", "--threshold", "fixed:1"], "lifted-betting takes no --threshold"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--threshold", "max"], "fixed:T"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--threshold", "split:2"], "fraction"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--threshold", "rank:0.5"], "rank"),
    (["bound", "arms.npz", "--delta", "0", "--direction", "up"], "direction must be one of"),
    (["bound", "arms.npz", "--delta", "0", "--neighbours", "up"], "neighbours must be"),
    (["bound", "arms.npz", "--delta", "0", "--claim", "-1"], "epsilon must be at least 0"),
    (["bound", "arms.npz", "--delta", "0", "--method", "all", "--order", "2"], "--method all takes no"),
    (["bound", "arms.npz", "--delta", "0", "--colour", "red"], "--colour"),
    (["bound", "a" * 300 + ".npz", "--delta", "0"], "no such file"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--threshold", "union:1e12"], "at most 100,000"),
    (["bound", "arms.npz", "--delta", "0", "--method", "wilson", "--threshold", "split:0.5,"], "fixed:T"),
    (["bound", "arms.npz", "--delta", "0", "--failure-probability", "1e-320"], "at least 1e-100"),
    (["bound", "heads.npz", "--delta", "0"], "coins must be fair"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    code, out, err = lidp(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err


def test_interrupting(capsys, monkeypatch, files):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lidp.cli.bound.read_scores", interrupt)
    assert lidp(capsys, "bound", files / "coins.npz", "--delta", "0")[0] == 130

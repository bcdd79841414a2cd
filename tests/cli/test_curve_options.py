"""Claims of privacy curves on the command line."""

import json

import numpy as np
import pytest

from tests.cli.invoke import lidp


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(4)
    coins = rng.integers(0, 2, (40, 64))
    path = tmp_path_factory.mktemp("scores") / "coins.npz"
    np.savez(path, scores=coins + rng.standard_normal(coins.shape), coins=coins)
    return path


def test_bound_of_a_refuted_curve_as_json(capsys, file):
    code, out, err = lidp(capsys, "bound", file, "--gaussian-mu", 0.5, "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert found["verdicts"] == {"curve": "refuted", "point": "not refuted"}
    assert found["hypothesis"] == "curve"
    assert found["trials"] == found["fell_at"] < 40
    assert found["epsilon"] > found["epsilon_point"] > 0
    assert 0 < found["effective_noise"] < 1
    assert found["claim"]["curve"] == {"kind": "gaussian", "mu": 0.5}


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "claim",
    [
        ["--gaussian-mu", 1.5],
        ["--laplace-scale", 0.3],
        ["--zcdp-rho", 2],
        ["--noise-multiplier", 0.8, "--sampling-rate", 0.5, "--steps", 5, "--delta", 1e-6],
    ],
    ids=str,
)
def test_every_kind_of_curve_may_stand(capsys, file, claim):
    code, out, err = lidp(capsys, "bound", file, *claim, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["verdicts"] == {"curve": "not refuted", "point": "not refuted"}
    _, out, _ = lidp(capsys, "bound", file, *claim)
    assert "the claim of the privacy curve of" in out
    assert out.strip().endswith("is not refuted")


def test_audit_of_a_curve_is_resumed_and_reported(capsys, tmp_path):
    store = tmp_path / "a.db"
    arguments = ["--trials", 40, "--canaries", 16, "--store", store, "--quiet"]
    code, out, _ = lidp(capsys, "audit", "gaussian-half-noise", "--gaussian-mu", 0.5, *arguments)
    assert code in (0, 1)
    assert "claims the privacy curve of 0.5-GDP" in out
    code, again, _ = lidp(capsys, "resume", store, "--quiet", "--json")
    assert json.loads(again)["claim"]["curve"] == {"kind": "gaussian", "mu": 0.5}
    code, out, _ = lidp(capsys, "bound", store, "--json")
    assert json.loads(out)["curve"] == {"kind": "gaussian", "mu": 0.5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise-multiplier", 1], "also needs --sampling-rate"),
        (["--noise-multiplier", 1, "--sampling-rate", 1.5, "--steps", 3], "sampling_rate must be above 0 and at most 1"),
        (["--gaussian-mu", 1, "--claim", 3], "give one"),
        (["--gaussian-mu", 1, "--zcdp-rho", 2], "claim different curves"),
        (["--zcdp-rho", 1e308], "1e+308-zCDP has no finite ε at delta=1e-05"),
        (["--gaussian-mu", -1], "mu must be above 0"),
        (["--gaussian-mu", 1, "--delta", 0], "name a delta above 0"),
        (["--method", "curve-wager", "--delta", 1e-5], "none is claimed"),
    ],
)
def test_bad_claims_are_one_line_and_exit_code_2(capsys, file, arguments, message):
    code, out, err = lidp(capsys, "bound", file, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_audit_needs_one_claim(capsys):
    code, _, err = lidp(capsys, "audit", "gaussian", "--trials", 2)
    assert (code, "no claim: give --epsilon" in err) == (2, True)
    code, _, err = lidp(capsys, "audit", "gaussian", "--epsilon", 1, "--gaussian-mu", 1)
    assert (code, "give one" in err) == (2, True)


def test_independent_canaries_refute_with_one_run(capsys, tmp_path):
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (1, 2000))
    np.savez(tmp_path / "one.npz", scores=1.6 * coins + rng.standard_normal(coins.shape), coins=coins)
    options = ("bound", tmp_path / "one.npz", "--gaussian-mu", 1, "--delta", 1e-5, "--json")
    assert lidp(capsys, *options)[0] == 0
    code, out, _ = lidp(capsys, *options, "--independent-canaries")
    assert code == 1
    assert json.loads(out)["hypothesis"] == "curve, canary by canary"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delta", 1e-5], "independent canaries are a hypothesis for curve-wager"),
        (["--gaussian-mu", 1, "--method", "all"], "for scores in a file and one method"),
    ],
)
def test_independent_canaries_need_a_curve_and_one_method(capsys, file, options, message):
    code, out, err = lidp(capsys, "bound", file, "--independent-canaries", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1

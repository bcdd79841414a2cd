"""``lidp simulate``."""

import json

import pytest

from tests.cli.invoke import lidp


def test_simulate_then_bound(capsys, tmp_path):
    code, out, _ = lidp(
        capsys, "simulate", "gaussian", "--sigma", "0.5", "--trials", 40, "--canaries", 16, "-o", tmp_path / "s.npz"
    )
    assert code == 0
    assert "40 trials x 16 canaries" in out
    code, out, _ = lidp(capsys, "bound", tmp_path / "s.npz", "--delta", "1e-5", "--json")
    assert json.loads(out)["epsilon"] > 1
    code, _, _ = lidp(
        capsys,
        "simulate",
        "gaussian",
        "--design",
        "leave-one-out",
        "--trials",
        5,
        "--canaries",
        4,
        "-o",
        tmp_path / "t.npz",
    )
    assert code == 0


BAD = [
    (["simulate", "gaussian"], "--out"),
    (["simulate", "gaussian", "-o", "x.npz", "--sigma", "-1"], "sigma must be above 0"),
    (["simulate", "gaussian", "-o", "x.npz", "--sigma", "0"], "sigma must be above 0"),
    (["simulate", "gaussian", "-o", "x.npz", "--dimension", "0"], "dimension must be a whole number"),
    (["simulate", "gaussian", "-o", "x.npz", "--canaries", "0"], "canaries must be a whole number"),
    (["simulate", "gaussian", "-o", "x.npz", "--trials", "0"], "trials must be a whole number"),
    (["simulate", "gaussian", "-o", "x.npz", "--seed", "-3"], "seed must be a whole number"),
    (["simulate", "gaussian", "-o", "x.npz", "--delta", "0"], "delta"),
    (["simulate", "gaussian", "-o", "x.npz", "--design", "odd"], "design must be one of"),
    (["simulate", "gaussian", "-o", "x.csv"], "written as .npz"),
    (["simulate", "gaussian", "-o", "x.npz", "--trials", "1" + "0" * 400], "trials must be"),
    (["simulate", "gaussian", "-o", "x.npz", "--dimension", "1" + "0" * 20], "more than the machine can hold"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = lidp(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err

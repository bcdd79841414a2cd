"""``lidp audit dpsgd`` as a user types it."""

import json

import numpy as np
import pytest

from lidp.cli.app import run

QUICK = ("--epsilon", "2", "--delta", "1e-5", "--records", "300", "--epochs", "1", "--pilots", "2", "--canaries", "8")


def lidp(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient", "tail-example", "mislabelled", "blank"])
def test_every_canary(capsys, canary):
    code, out, _ = lidp(capsys, "audit", "dpsgd", *QUICK, "--trials", 4, "--canary", canary, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["target"] == "dpsgd on synthetic-purchases"
    assert found["preparation_models"] == 2


def test_resumed_from_what_the_store_says(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = (*QUICK, "--trials", 6, "--canary", "mislabelled", "--store", store, "--quiet")
    code, whole, _ = lidp(capsys, "audit", "dpsgd", *options)
    assert code == 0
    code, again, _ = lidp(capsys, "resume", store, "--quiet")
    assert code == 0
    assert again.splitlines()[:-1] == whole.splitlines()[:-1]  # but for the seconds
    code, _, err = lidp(capsys, "audit", "dpsgd", *options, "--fault", "little-noise")
    assert code == 2
    assert "belongs to another audit" in err


def test_data_of_ones_own(capsys, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    np.savez(tmp_path / "mine.npz", x=rng.standard_normal((400, 5)) + y[:, None], y=y)
    code, out, _ = lidp(capsys, "audit", "dpsgd", *QUICK, "--trials", 3, "--data", tmp_path / "mine.npz")
    assert code == 0
    assert "dpsgd on mine claims (2, 1e-05)-DP" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dpsgd", "--preset", "cifar"], "there is no preset 'cifar'; there are fmnist-linear"),
        (["dpsgd", "--canary", "cat"], "canary must be one of random-gradient"),
        (["dpsgd", "--fault", "fire"], "fault must be one of none"),
        (["dpsgd", "--sampling", "best"], "sampling must be one of poisson, shuffle"),
        (["dpsgd", "--accountant", "mine"], "accountant must be one of pld, rdp"),
        (["dpsgd", "--data", "nowhere.npz"], "nowhere.npz: there is no such file"),
        (["dpsgd", "--data", "nowhere"], "makes its data up"),
        (["dpsgd", "--preset", "fmnist-linear", "--data", "nowhere"], "train-images-idx3-ubyte[.gz] is missing"),
        (["dpsgd", "--records", "0"], "records must be"),
        (["dpsgd", "--records", "5000"], "has 2,000 training examples"),
        (["dpsgd", "--epochs", "-1"], "epochs must be"),
        (["gaussian", "--preset", "fmnist-linear"], "--preset is for the target dpsgd, not for gaussian"),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    code, out, err = lidp(capsys, "audit", *arguments, "--epsilon", 1, "--delta", "1e-5", "--trials", 2)
    assert code == 2
    assert not out
    assert message in err
    assert err.count("\n") == 1


def test_delta_is_the_usual_one_if_left_out(capsys):
    assert run(["audit", "dpsgd", "--epsilon", "4", "--records", "200", "--epochs", "1", "--trials", "2", "--quiet"]) == 0
    assert "claims (4, 1e-05)-DP" in capsys.readouterr().out

"""``lidp audit-dpsgd``."""

import json
import shlex
import sqlite3
from dataclasses import fields

import numpy as np
import pytest

from lidp import Claim, Decorrelated, SelfNormalised, TargetSpec, result_of
from lidp.cli.app import run
from lidp.cli.audit_dpsgd import DpsgdOptions
from lidp.data import purchases
from lidp.report.command import command_of
from lidp.target_spec.kinds import KINDS
from lidp.training import Accountant
from lidp.training.transcript import TranscriptScore
from tests.cli.invoke import lidp

QUICK = ("--epsilon", "2", "--delta", "1e-5", "--records", "300", "--epochs", "1", "--pilots", "2", "--canaries", "8")


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient", "tail-example", "mislabelled", "blank"])
def test_every_canary(capsys, canary):
    code, out, _ = lidp(capsys, "audit-dpsgd", *QUICK, "--trials", 4, "--canary", canary, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["target"] == "dpsgd on synthetic-purchases"
    assert found["preparation_models"] == 2


def test_an_audit_is_resumed_with_the_options_in_its_store(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = (*QUICK, "--trials", 6, "--canary", "mislabelled", "--store", store, "--quiet")
    code, whole, _ = lidp(capsys, "audit-dpsgd", *options)
    assert code == 0
    code, again, _ = lidp(capsys, "resume", store, "--quiet")
    assert code == 0
    assert again.splitlines()[:-1] == whole.splitlines()[:-1]  # but for the seconds
    code, _, err = lidp(capsys, "audit-dpsgd", *options, "--fault", "little-noise")
    assert code == 2
    assert "belongs to another audit" in err


def test_an_npz_file_is_trained_on(capsys, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    np.savez(tmp_path / "mine.npz", x=rng.standard_normal((400, 5)) + y[:, None], y=y)
    code, out, _ = lidp(capsys, "audit-dpsgd", *QUICK, "--trials", 3, "--data", tmp_path / "mine.npz")
    assert code == 0
    assert "dpsgd on mine claims the privacy curve of DP-SGD with noise multiplier" in out
    assert "which is (2, 1e-05)-DP" in out


# options, what they change, and the changed value; the target is loaded from the spec in the store
CHANGES = [
    (["--learning-rate", "0.25"], lambda target: target.mechanism.learning_rate, 0.25),
    (["--batch-size", "30"], lambda target: target.mechanism.batch_size, 30),
    (["--clip-norm", "0.5"], lambda target: target.mechanism.clip_norm, 0.5),
    (["--hidden", "7,5"], lambda target: target.mechanism.network.hidden, (7, 5)),
    (["--preset", "fmnist-mlp", "--hidden", "none"], lambda target: target.mechanism.network.hidden, ()),
    (["--hidden", "7", "--random-start"], lambda target: target.mechanism.random_start, True),
    (["--accountant", "rdp"], lambda target: f"ε by {Accountant.RDP} accounting" in target.facts, True),
    (["--pilots", "3"], lambda target: target.prepare.count, 3),
    (["--scores", "raw"], lambda target: (target.score.centred, target.prepare), (False, None)),
    (["--scores", "raw", "--canary", "blank"], lambda target: target.score.centred, False),
    (["--scores", "self-normalised"], lambda target: type(target.score), SelfNormalised),
    (["--scores", "decorrelated"], lambda target: type(target.score), Decorrelated),
    (["--scores", "transcript"], lambda target: type(target.score), TranscriptScore),
    (["--true-noise", "0.5"], lambda target: "0.5 times the noise" in target.name, True),
    (
        ["--scores", "transcript", "--canary", "dirac-gradient", "--independent-canaries"],
        lambda target: target.interference,
        None,
    ),
]


@pytest.fixture
def mine(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 100)
    np.savez(tmp_path / "mine.npz", x=rng.standard_normal((100, 5)) + y[:, None], y=y)
    return tmp_path / "mine.npz"


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("options", "changed", "value"), CHANGES, ids=lambda part: " ".join(part) if type(part) is list else ""
)
def test_an_option_changes_the_training_and_is_stored(capsys, tmp_path, mine, options, changed, value):
    store = tmp_path / "a.db"
    shared = DpsgdOptions(data=str(mine), preset="fmnist-mlp" if "fmnist-mlp" in options else None)
    plain = f"audit-dpsgd --epsilon 2 --epochs 1 --canaries 4 --trials 2 --quiet --data {mine}".split()
    assert run([*plain, *options, "--store", str(store)]) == 0
    made = result_of(store)
    assert changed(TargetSpec.from_dict(made.configuration["target_spec"]).load(made.claim)) == value
    assert changed(shared.build_spec(canaries=4).load(made.claim)) != value
    # The command that the report prints makes the same audit, which another is not.
    _, *words = shlex.split(command_of(made.configuration))
    assert run([*words, "--store", str(tmp_path / "b.db"), "--quiet"]) == 0
    again = result_of(tmp_path / "b.db")
    assert (again.configuration, again.bound) == (made.configuration, made.bound)
    capsys.readouterr()
    assert run([*plain, "--store", str(store)]) == 2
    err = capsys.readouterr().err
    assert "belongs to another audit" in err or "is not what it was when" in err


@pytest.mark.slow
def test_an_audit_is_resumed_from_another_folder(capsys, tmp_path, mine, monkeypatch):
    store = tmp_path / "a.db"
    monkeypatch.chdir(tmp_path)
    code, whole, _ = lidp(
        capsys, "audit-dpsgd", "--epsilon", 2, "--epochs", 1, "--canaries", 4, "--trials", 6, "--store", store, "--json",
        "--data", "mine.npz", "--hidden", "7,5", "--learning-rate", 0.1, "--batch-size", 20, "--clip-norm", 0.5, "--random-start",
        "--scores", "decorrelated", "--accountant", "rdp", "--pilots", 2,
    )  # fmt: skip
    assert code == 0
    with sqlite3.connect(store) as opened:  # as if it had been interrupted
        opened.execute("DELETE FROM trials WHERE number >= 2")
        opened.execute("DELETE FROM scores WHERE trial >= 2")
    opened.close()
    assert result_of(store).bound.trials == 2
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, again, err = lidp(capsys, "resume", store, "--json", "--quiet")
    assert (code, err) == (0, "")
    whole, again = json.loads(whole), json.loads(again)
    assert again["bound"] == whole["bound"]
    assert again["bound"]["trials"] == 6


def test_a_link_to_the_data_is_not_resolved(tmp_path, mine, monkeypatch):
    mine.rename(tmp_path / "0123")
    mine.symlink_to(tmp_path / "0123")  # as some caches keep files
    monkeypatch.chdir(tmp_path)
    assert DpsgdOptions(data="mine.npz").build_spec(canaries=4).load(Claim(2, 1e-5)).name == "dpsgd on mine"


def test_an_npz_is_purchase_100_for_its_preset(capsys, tmp_path, mine, monkeypatch):
    monkeypatch.setattr(purchases, "TRAINING", 30)
    monkeypatch.setattr(purchases, "TEST", 10)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "purchase.npz", x=rng.integers(0, 2, (50, 600)), y=rng.integers(0, 100, 50))
    options = (
        "audit-dpsgd",
        "--preset",
        "purchase-mlp",
        "--epsilon",
        2,
        "--epochs",
        1,
        "--hidden",
        "none",
        "--canaries",
        4,
    )
    code, out, _ = lidp(capsys, *options, "--trials", 2, "--pilots", 1, "--quiet", "--data", tmp_path / "purchase.npz")
    assert code == 0
    assert "dpsgd on purchase-100 claims" in out
    code, _, err = lidp(capsys, *options, "--data", mine)
    assert code == 2
    assert "5 features, expected 600; Purchase-100 is" in err
    assert "for other data use load_npz, or another --preset" in err


def test_the_options_of_the_command_are_those_of_the_spec():
    typed = {field.name for field in fields(DpsgdOptions)}
    assert typed | {"canaries"} == set(KINDS["dpsgd"].options)


def test_the_help_warns_of_shuffling(capsys):
    told = " ".join(lidp(capsys, "audit-dpsgd", "--help")[1].split())
    assert "shuffle: not covered by the accountant" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "cifar"], "there is no preset 'cifar'; choose one of fmnist-linear"),
        (["--canary", "cat"], "canary must be one of random-gradient"),
        (["--fault", "fire"], "fault must be one of none"),
        (["--sampling", "best"], "sampling must be one of poisson, shuffle"),
        (["--accountant", "mine"], "accountant must be one of pld, rdp"),
        (["--data", "nowhere.npz"], "nowhere.npz: there is no such file"),
        (["--data", "nowhere"], "generates its data"),
        (["--preset", "fmnist-linear", "--data", "nowhere"], "train-images-idx3-ubyte[.gz] is missing"),
        (["--records", "0"], "records must be"),
        (["--records", "5000"], "has 2,000 training examples"),
        (["--epochs", "-1"], "epochs must be"),
        (["--learning-rate", "0"], "learning_rate must be"),
        (["--batch-size", "-1"], "batch_size must be"),
        (["--clip-norm", "0"], "clip_norm must be above 0"),
        (["--hidden", "256,"], "hidden must be widths of layers, as 256,256, or none"),
        (["--hidden", "256,0"], "hidden must be widths of layers, as 256,256, or none"),
        (["--hidden", "2.5"], "hidden must be widths of layers, as 256,256, or none"),
        (
            ["--scores", "again"],
            "scores must be one of centred, raw, self-normalised, decorrelated, transcript, got 'again'",
        ),
        (["--scores", "transcript", "--pilots", "4"], "transcripts are relative to no pilot models"),
        (["--scores", "transcript", "--design", "leave-one-out"], "scores of all steps need coin-flip canaries"),
        (["--scores", "transcript", "--independent-canaries"], "random gradients overlap; use dirac-gradient"),
        (["--independent-canaries"], "the final model mixes what all canaries have added; use transcript scores"),
        (["--true-noise", "0"], "true_noise must be above 0"),
        (["--scores", "raw", "--pilots", "4"], "raw scores of gradients are relative to no pilot models"),
        (["--scores", "decorrelated", "--canary", "blank"], "decorrelated scores are for gradients"),
        (["--preset", ""], "preset of dpsgd is empty"),
        (["--canary", ""], "canary of dpsgd is empty"),
        (["--data", ""], "data of dpsgd is empty"),
        (["--fault", ""], "fault of dpsgd is empty"),
        (["--sampling", ""], "sampling of dpsgd is empty"),
    ],
)
def test_bad_options_are_refused_in_one_line(capsys, arguments, message):
    code, out, err = lidp(capsys, "audit-dpsgd", *arguments, "--epsilon", 1, "--delta", "1e-5", "--trials", 2)
    assert code == 2
    assert not out
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_delta_has_a_default(capsys):
    assert run(["audit-dpsgd", "--epsilon", "4", "--records", "200", "--epochs", "1", "--trials", "2", "--quiet"]) == 0
    assert "which is (4, 1e-05)-DP" in capsys.readouterr().out

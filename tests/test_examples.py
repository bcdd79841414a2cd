"""The examples run and show what they say."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lidp.claim import Claim
from lidp.data import load_fashion_mnist, synthetic_purchases
from lidp.errors import InvalidData
from lidp.seals import seal
from tests.integrations.tiny_gpt2 import records, write_texts
from tests.waiting import PATIENCE

EXAMPLES = Path(__file__).parent.parent / "examples"
VERDICTS = {  # what each prints, in order
    "audit_numpy_mean.py": ["refuted"],
    "audit_opendp.py": ["not refuted", "refuted"],
    "audit_diffprivlib.py": ["not refuted", "refuted"],
}


def run(*arguments):
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_all_examples_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*VERDICTS, "test_in_ci.py"}
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 20 for path in EXAMPLES.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_an_example(name):
    for library in ("opendp", "diffprivlib"):
        if library in name:
            pytest.importorskip(library)
    found = run(EXAMPLES / name)
    assert found.returncode == 0, found.stderr
    lines = [line.partition(":")[0] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert lines == VERDICTS[name]


TRAINING = {  # what it needs, and what it prints
    "torch_loop.py": (["torch"], ["not refuted", "refuted"]),
    "jax_steps.py": (["jax_privacy"], ["not refuted", "refuted"]),
    "jax_loop.py": (["jax_privacy"], ["not refuted", "refuted"]),
    "any_trainer.py": (["diffprivlib"], ["not refuted", "refuted"]),
    "opacus_mlp.py": (["torch", "opacus"], ["not refuted"]),
}


def test_all_examples_of_training_are_tested():
    assert {path.name for path in (EXAMPLES / "training").glob("*.py")} == {*TRAINING, "train_program.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING)
def test_an_example_of_training(name):
    needs, verdicts = TRAINING[name]
    for library in needs:
        pytest.importorskip(library)
    if name == "opacus_mlp.py":
        try:
            load_fashion_mnist()
        except InvalidData as error:
            pytest.skip(str(error))
    found = run(EXAMPLES / "training" / name, *(["8"] if name == "opacus_mlp.py" else []))
    assert found.returncode == 0, found.stderr
    lines = [line.partition(":")[0] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert lines == verdicts


def test_all_examples_of_language_models_are_tested():
    assert {path.name for path in (EXAMPLES / "language_models").glob("*.py")} == {"lora_gpt2.py"}


@pytest.mark.slow
def test_the_example_of_lora(tmp_path):
    for library in ("opacus", "transformers", "peft"):
        pytest.importorskip(library)
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=2)
    sealed = seal(tmp_path / "sealed", claim=claim, kind="gradients", canaries=100, seed=1)
    data = write_texts(tmp_path / "data.jsonl", records(64))
    options = [
        "--data",
        data,
        "--epochs",
        1,
        "--steps-per-epoch",
        2,
        "--physical-batch-size",
        8,
        "--scores",
        tmp_path / "scores.csv",
    ]
    found = run(EXAMPLES / "language_models" / "lora_gpt2.py", "--seal", sealed.folder, *options)
    assert found.returncode == 0, found.stderr
    assert re.fullmatch(r"the accountant states ε = [\d.]+ at δ = 1e-05", found.stdout.strip())
    assert len((tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()) == 1 + 100


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "code"), [(8.0, 0), (0.1, 1)])
def test_the_example_of_a_program(noise, code, tmp_path):
    data = synthetic_purchases(300, 100, classes=10)
    np.savez(tmp_path / "data.npz", x=data.x, y=data.y)
    program = f"{sys.executable} {EXAMPLES / 'training' / 'train_program.py'} --noise {noise}"
    found = run(
        "-m", "lidp", "audit-program", f"{program} --data {{data}} --out {{out}} --seed {{seed}}",
        "--data", tmp_path / "data.npz", "--epsilon", 2.5, "--delta", 1e-5, "--canaries", 16, "--trials", 60, "--workers", 2,
    )  # fmt: skip
    assert found.returncode == code, found.stdout + found.stderr


FEDERATED = {"flower_dp_fedavg.py", "flower_rules.py"}


def test_all_examples_of_federated_training_are_tested():
    assert {path.name for path in (EXAMPLES / "federated").glob("*.py")} == FEDERATED


@pytest.mark.slow
def test_the_example_of_flowers_rules():
    found = run(EXAMPLES / "federated" / "flower_rules.py")
    assert found.returncode == 0, found.stderr
    verdicts = [line.partition(": ")[2].partition(" after")[0] for line in found.stdout.splitlines()]
    assert verdicts == ["not refuted", "not refuted", "refuted", "refuted"]


@pytest.mark.slow
def test_the_example_on_flowers_simulation():
    pytest.importorskip("flwr", reason="needs the extra federated: Flower and the version of Ray that it asks for")
    found = run(EXAMPLES / "federated" / "flower_dp_fedavg.py")
    assert found.returncode == 0, found.stderr
    lines = [line.partition(":")[0] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert lines == ["not refuted", "refuted"]


@pytest.mark.slow
def test_the_example_for_ci():
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES / "test_in_ci.py")
    assert found.returncode == 0, found.stdout
    assert "dp: 1 assertion, 0 refuted, 50,000 runs" in found.stdout

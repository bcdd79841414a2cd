"""Sealed audits of the training of a tiny GPT-2 with LoRA: correct settings stand, too little noise and broken wiring fall."""

import csv

import numpy as np
import pytest

pytest.importorskip("opacus", reason="needs the extra torch")
pytest.importorskip("peft", reason="needs the extra llm")
pytest.importorskip("transformers", reason="needs the extra llm")

from lidp import Claim, Verdict
from lidp.seals import open_seal, seal, seal_next
from tests.integrations.tiny_gpt2 import records, train, write_texts

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves
CANARIES = 1000
EPOCHS, STEPS_PER_EPOCH, RECORDS = 3, 4, 400
GRADIENTS = ("--epochs", EPOCHS, "--steps-per-epoch", STEPS_PER_EPOCH, "--noise-multiplier", 1.0, "--length", 40)


def claim_of(epochs, noise=1.0):
    return Claim.dpsgd(noise_multiplier=noise, sampling_rate=1 / STEPS_PER_EPOCH, steps=epochs * STEPS_PER_EPOCH)


def open_gradients(folder, seed, *options, canaries=CANARIES, epochs=EPOCHS):
    """Seal gradient canaries that are independent of one another, train one model, and return the verdict."""
    data = write_texts(folder / "data.jsonl", records(RECORDS))
    sealed = seal(
        folder / "sealed",
        claim=claim_of(epochs),
        kind="gradients",
        canaries=canaries,
        runs=1,
        independent_canaries=True,
        seed=seed,
    ).folder
    return open_seal(sealed, train(sealed, *GRADIENTS, "--epochs", epochs, *options, seed=seed, data=data)).verdict


@pytest.mark.slow
def test_one_training_with_a_tenth_of_its_noise_falls(tmp_path):
    assert open_gradients(tmp_path, 1, "--noise-factor", 0.1, canaries=200, epochs=1) is Verdict.REFUTED


def test_empty_batches_are_steps_like_any_other(tmp_path):
    """With four records at rate 1/4, about one step in three has no record."""
    data = write_texts(tmp_path / "data.jsonl", records(4))
    sealed = seal(tmp_path / "sealed", claim=claim_of(4), kind="gradients", canaries=50, seed=2).folder
    with train(sealed, "--epochs", 4, "--steps-per-epoch", 4, seed=2, data=data).open(encoding="utf-8") as file:
        scores = [float(row["score"]) for row in csv.DictReader(file)]
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_correct_settings_stand_in_twenty_of_twenty_seals(seed, tmp_path):
    assert open_gradients(tmp_path, seed) is Verdict.NOT_REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 205))
def test_half_the_noise_falls_in_one_run_canary_by_canary(seed, tmp_path):
    assert open_gradients(tmp_path, seed, "--noise-factor", 0.5) is Verdict.REFUTED


def open_three_runs(folder, seed, *options):
    """Seal three runs of one plan whose canaries may depend on one another, train them, and return the verdict on them together."""
    data = write_texts(folder / "data.jsonl", records(RECORDS))
    seals = [seal(folder / "1", claim=claim_of(EPOCHS), kind="gradients", canaries=CANARIES, seed=seed)]
    for number in (2, 3):
        seals.append(seal_next(seals[-1].folder, folder / str(number), seed=seed))
    folders = [one.folder for one in seals]
    scores = [train(one, *GRADIENTS, *options, seed=10 * seed + run, data=data) for run, one in enumerate(folders)]
    return open_seal(folders, scores).verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 305))
def test_half_the_noise_falls_in_three_runs_whatever_the_dependence(seed, tmp_path):
    assert open_three_runs(tmp_path, seed, "--noise-factor", 0.5) is Verdict.REFUTED


@pytest.mark.slow
def test_correct_settings_stand_in_three_runs(tmp_path):
    assert open_three_runs(tmp_path, 310) is Verdict.NOT_REFUTED


TEXT_CANARIES, TEXT_EPOCHS = 400, 5


def open_texts(folder, seed, *options):
    """Seal new-token texts among the records, train one model, and return the verdict."""
    sealed = seal(
        folder / "sealed",
        claim=claim_of(TEXT_EPOCHS, 4.0),
        kind="text",
        data=write_texts(folder / "data.jsonl", records(RECORDS)),
        canaries=TEXT_CANARIES,
        runs=1,
        seed=seed,
    ).folder
    settings = ("--epochs", TEXT_EPOCHS, "--steps-per-epoch", STEPS_PER_EPOCH, "--noise-multiplier", 4.0)
    return open_seal(sealed, train(sealed, *settings, "--max-grad-norm", 0.01, *options, seed=seed)).verdict


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["unclipped-adapters", "wrong-optimizer"])
def test_broken_wiring_falls_by_text_canaries(fault, tmp_path):
    assert open_texts(tmp_path, 400, "--fault", fault) is Verdict.REFUTED


@pytest.mark.slow
def test_correct_wiring_stands_by_text_canaries(tmp_path):
    assert open_texts(tmp_path, 400) is Verdict.NOT_REFUTED

"""Audits of one training of a tiny GPT-2 with LoRA: correct settings stand, too little noise and broken wiring fall."""

import numpy as np
import pytest

pytest.importorskip("opacus", reason="needs the extra torch")
pytest.importorskip("peft", reason="needs the extra llm")
pytest.importorskip("transformers", reason="needs the extra llm")

from lidp import Claim
from lidp.stats.curve_wager import CurveWager
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from tests.integrations.tiny_gpt2 import records, refutes, seal_gradients, seal_texts

pytestmark = pytest.mark.filterwarnings("default")  # of Opacus, peft and transformers, about themselves
CANARIES = 1000
EPOCHS, STEPS_PER_EPOCH, RECORDS = 3, 4, 400
GRADIENTS = ("--epochs", EPOCHS, "--steps-per-epoch", STEPS_PER_EPOCH, "--noise-multiplier", 1.0, "--length", 40)
CLAIM = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=1 / STEPS_PER_EPOCH, steps=EPOCHS * STEPS_PER_EPOCH, delta=1e-5)
BY_CANARY = CurveWager(CLAIM.curve, canary_by_canary=True)
ANY_DEPENDENCE = CurveWager(CLAIM.curve)


def gradient_runs(folder, seeds, *options, canaries=CANARIES):
    """Return the scores and coins of one sealed training per seed."""
    seals = [seal_gradients(folder / str(seed), canaries=canaries, seed=seed, data=records(RECORDS)) for seed in seeds]
    return [seal.train(*GRADIENTS, *options, seed=seal_seed) for seal, seal_seed in zip(seals, seeds, strict=True)], [
        seal.coins for seal in seals
    ]


def test_one_training_with_a_tenth_of_its_noise_falls(tmp_path):
    scores, coins = gradient_runs(tmp_path, [1], "--noise-factor", 0.1, "--epochs", 1, canaries=200)
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=1 / STEPS_PER_EPOCH, steps=STEPS_PER_EPOCH, delta=1e-5)
    assert refutes(scores, coins, claim, CurveWager(claim.curve, canary_by_canary=True))


def test_empty_batches_are_steps_like_any_other(tmp_path):
    """With four records at rate 1/4, about one step in three has no record."""
    seal = seal_gradients(tmp_path / "sealed", canaries=50, seed=2, data=records(4))
    scores = seal.train("--epochs", 4, "--steps-per-epoch", 4, seed=2)
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 50


@pytest.mark.slow
def test_correct_settings_stand_in_twenty_of_twenty_seals(tmp_path):
    scores, coins = gradient_runs(tmp_path, range(100, 120))
    for run in zip(scores, coins, strict=True):
        assert not refutes([run[0]], [run[1]], CLAIM, BY_CANARY)
    assert not refutes(scores, coins, CLAIM, ANY_DEPENDENCE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 205))
def test_half_the_noise_falls_in_one_run_canary_by_canary(seed, tmp_path):
    scores, coins = gradient_runs(tmp_path, [seed], "--noise-factor", 0.5)
    assert refutes(scores, coins, CLAIM, BY_CANARY)


@pytest.mark.slow
def test_half_the_noise_falls_in_three_runs_whatever_the_dependence(tmp_path):
    scores, coins = gradient_runs(tmp_path, range(300, 303), "--noise-factor", 0.5)
    assert refutes(scores, coins, CLAIM, ANY_DEPENDENCE)


TEXT_RECORDS, TEXT_CANARIES, TEXT_EPOCHS = 400, 400, 5
SMALL_CLAIM = Claim.dpsgd(
    noise_multiplier=4.0, sampling_rate=1 / STEPS_PER_EPOCH, steps=TEXT_EPOCHS * STEPS_PER_EPOCH, delta=1e-5
)


def text_run(folder, seed, *options):
    """Return the scores and coins of one training with new-token canaries among its records."""
    seal = seal_texts(folder, kind="new-tokens", canaries=TEXT_CANARIES, seed=seed, data=records(TEXT_RECORDS))
    settings = ("--epochs", TEXT_EPOCHS, "--steps-per-epoch", STEPS_PER_EPOCH, "--noise-multiplier", 4.0)
    return [seal.train(*settings, "--max-grad-norm", 0.01, *options, seed=seed)], [seal.coins]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["unclipped-adapters", "wrong-optimizer"])
def test_broken_wiring_falls_by_text_canaries(fault, tmp_path):
    scores, coins = text_run(tmp_path / "broken", 400, "--fault", fault)
    assert refutes(scores, coins, SMALL_CLAIM, CurveWagerWithGuesses(SMALL_CLAIM.curve))


@pytest.mark.slow
def test_correct_wiring_stands_by_text_canaries(tmp_path):
    scores, coins = text_run(tmp_path / "correct", 400)
    assert not refutes(scores, coins, SMALL_CLAIM, CurveWagerWithGuesses(SMALL_CLAIM.curve))

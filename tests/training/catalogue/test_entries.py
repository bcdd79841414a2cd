"""The catalogue of broken training: every entry runs, repeats with its seed, and is refuted unless it is correct."""

import re
import subprocess
import sys

import numpy as np
import pytest

import lidp
from lidp import CoinFlip, InvalidArgument, Verdict
from lidp.training.catalogue import TRAININGS, find
from lidp.training.catalogue.data import LayerSpanningGradients, OpposedGradient, RareFeatures
from lidp.training.catalogue.gradients import Batch
from lidp.trials.trial import TrialSetup, run_trial

NAMES = list(TRAININGS)
BROKEN = [name for name in NAMES if not TRAININGS[name].correct]
CORRECT = [name for name in NAMES if TRAININGS[name].correct]
SHARED_CLAIM = (1.0, 0.1, 100)
SLOW = ("clip-per-batch", "batch-norm")


def is_slow(name):
    """Return whether an audit takes long: its claim is not that of most entries, or it needs many models."""
    claimed = TRAININGS[name].loop.claimed
    claim = (claimed.noise_multiplier, claimed.rate, TRAININGS[name].loop.claimed_steps)
    return name in SLOW or claim != SHARED_CLAIM


def audited(name, seed, **options):
    entry = find(name)
    return lidp.audit(
        entry.target, claim=entry.claim, design=CoinFlip(entry.canaries), trials=entry.models, seed=seed, **options
    )


def test_every_entry_has_its_key_as_name_and_a_public_reference():
    reference = re.compile(r"arXiv:\d{4}\.\d{5}|github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
    for name, entry in TRAININGS.items():
        assert name == entry.name
        assert entry.about
        assert reference.search(entry.reference)
    assert (len(BROKEN), len(CORRECT)) == (20, 2)


def test_an_unknown_name_lists_all_names():
    with pytest.raises(
        InvalidArgument, match="no training 'x' in the catalogue; choose one of correct, .*last-batch-dropped"
    ):
        find("x")


def test_importing_the_catalogue_imports_no_heavy_packages():
    code = "import sys, lidp.training.catalogue; print([m for m in ('scipy.stats', 'numba', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_repeats_with_its_seed_and_differs_with_another(name):
    entry = find(name)
    records = [run_trial(TrialSetup(entry.target, CoinFlip(entry.canaries), seed), 0) for seed in (3, 3, 4)]
    assert not any(record.failures for record in records)
    first, same, other = (record.arrays["scores"] for record in records)
    assert first.shape == (entry.canaries,)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, same)
    if entry.canaries > 1:
        assert (first != other).any()


@pytest.mark.parametrize("name", BROKEN)
def test_each_entry_states_a_claim_that_can_be_audited(name):
    claim = find(name).claim
    assert claim.curve is not None
    assert 0.5 < claim.epsilon < 25


@pytest.mark.parametrize("name", [name for name in BROKEN if not is_slow(name)])
def test_broken_training_is_refuted(name):
    assert audited(name, seed=1).verdict is Verdict.REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BROKEN if is_slow(name)])
def test_broken_training_is_refuted_by_longer_audits(name):
    assert audited(name, seed=1).verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", CORRECT)
def test_correct_training_stands(name):
    entry = find(name)
    result = lidp.audit(entry.target, claim=entry.claim, design=CoinFlip(entry.canaries), trials=12, seed=1)
    assert result.verdict is not Verdict.REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECT)
def test_correct_training_stands_in_20_of_20_seeds(name):
    """With probability 98 % at least: each audit has a failure probability of 0.001. The seeds are fixed."""
    refuted = [seed for seed in range(1, 21) if audited(name, seed, failure_probability=1e-3).verdict is Verdict.REFUTED]
    assert not refuted


def test_only_canaries_that_do_not_interfere_count_as_trials_of_their_own():
    separate = {name for name, entry in TRAININGS.items() if entry.target.interference is None}
    assert {"correct", "noise-missing-in-one-layer", "bias-not-clipped"} <= separate
    assert not separate & {"correct-with-examples", "batch-norm", "shuffled-batches", "last-batch-kept", "clip-per-batch"}


def test_rare_features_are_different_and_limited():
    rows = RareFeatures(8, 30.0).draw(np.random.default_rng(1), 8)
    assert sorted(rows[:, -1]) == list(range(12, 20))
    assert (np.count_nonzero(rows[:, :20], axis=1) == 1).all()
    with pytest.raises(InvalidArgument, match="8 rare features, which is too few for 9 canaries"):
        RareFeatures(8, 30.0).draw(np.random.default_rng(1), 9)


def test_layer_spanning_gradients_share_no_coordinate():
    rows = LayerSpanningGradients((10, 3, 8), 5.0).draw(np.random.default_rng(1), 4)
    assert (np.count_nonzero(rows, axis=0) <= 1).all()
    assert (np.count_nonzero(rows[:, :10], axis=1) == 1).all()
    assert not rows[:, 10:13].any()  # this group has too few
    assert (np.abs(rows[rows != 0]) == 5).all()
    with pytest.raises(InvalidArgument, match="no group of parameters has 11 coordinates"):
        LayerSpanningGradients((10, 3, 8), 5.0).draw(np.random.default_rng(1), 11)


def test_the_opposed_gradient_turns_the_sum_of_all_records_round():
    entry = find("clip-per-batch")
    network, records = entry.loop.network, entry.target.dataset
    (gradient,) = OpposedGradient(network, entry.records, 1000.0).draw(np.random.default_rng(1), 1)
    assert np.linalg.norm(gradient) == pytest.approx(1000.0)
    batch = Batch(records.x.astype(float), records.y, np.empty((0, network.size)))
    total = entry.loop.step_sum(np.zeros(network.size), batch)
    turned = entry.loop.step_sum(np.zeros(network.size), batch + Batch(batch.x[:0], batch.y[:0], gradient[None]))
    np.testing.assert_allclose(turned, -total, atol=1e-9)
    assert np.linalg.norm(turned - total) == pytest.approx(2 * entry.loop.clip_norm)

"""The reference loop: the law of its transcripts, and what each broken loop changes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lidp.training.catalogue import find
from lidp.training.catalogue.clipping_bugs import BiasNotClipped, ClipPerLayer
from lidp.training.catalogue.data import RareFeatures, clusters
from lidp.training.catalogue.entry import LINEAR_MODEL, SMALL_NETWORK
from lidp.training.catalogue.loop import ReferenceLoop
from lidp.training.catalogue.noise_bugs import (
    NoiseForLargerBatch,
    NoiseFromFixedSeed,
    NoiseOnceForVirtualBatches,
    NoisePerWorkerDividedByWorkers,
    NoiseReusedAcrossSteps,
    NoiseTimesLearningRate,
    NoiseUnderflows,
    NoNoiseInOneLayer,
)
from lidp.training.catalogue.sampling_bugs import LastBatchDropped, LastBatchKept, ShuffledBatches
from lidp.training.records import Kind, TrainingSet


def first_noises(loop, count=200, seed=0):
    noises = loop.noises(np.random.default_rng(seed))
    return np.array([next(noises) for _ in range(count)])


@pytest.mark.parametrize(("kind", "share"), [
    (ReferenceLoop, 1.0),
    (NoiseForLargerBatch, 0.5),
    (NoisePerWorkerDividedByWorkers, 0.5),
    (NoiseTimesLearningRate, 0.5),
])  # fmt: skip
def test_noise_has_the_share_of_the_claimed_noise_that_the_fault_leaves(kind, share):
    noises = first_noises(kind(SMALL_NETWORK))
    # Off by 2 %, six standard errors, in fewer than one of a million simulations; the seed is fixed.
    assert noises.std() == pytest.approx(share, rel=0.02)


def test_noise_is_missing_where_the_fault_says():
    groups = SMALL_NETWORK.group_of(np.arange(SMALL_NETWORK.size))
    silent = (first_noises(NoNoiseInOneLayer(SMALL_NETWORK)) == 0).all(axis=0)
    assert {SMALL_NETWORK.group_names[group] for group in groups[silent]} == {"layer 2 weights"}
    by_step = (first_noises(NoiseOnceForVirtualBatches(SMALL_NETWORK), 8) == 0).all(axis=1)
    assert by_step.tolist() == [True, True, True, False] * 2
    assert not first_noises(NoiseUnderflows(SMALL_NETWORK, clip_norm=1e-7)).any()
    assert first_noises(NoiseUnderflows(SMALL_NETWORK)).all()


def test_noise_repeats_where_the_fault_says():
    noises = first_noises(NoiseReusedAcrossSteps(SMALL_NETWORK), 3)
    assert (noises == noises[0]).all()
    assert not (noises == first_noises(NoiseReusedAcrossSteps(SMALL_NETWORK), 3, seed=1)).any()
    seeds = [NoiseFromFixedSeed(SMALL_NETWORK).noise_seed(np.random.default_rng(seed)) for seed in (1, 2)]
    assert seeds[0] == seeds[1]


def test_known_seeds_give_the_whole_noise_away_and_secret_seeds_none():
    for name, known in (("correct", False), ("noise-seed-logged", True), ("noise-from-fixed-seed", True)):
        loop = find(name).loop
        seed = loop.noise_seed(np.random.default_rng(5))
        noise, replayed = next(loop.noises(np.random.default_rng(seed))), next(loop.replayed_noises(seed))
        assert np.array_equal(noise, replayed) is known
        assert replayed.any() == known
        assert bool(loop.log(seed)) is known


def test_broken_clipping_lets_long_gradients_through():
    rows = 100 * np.random.default_rng(6).standard_normal((5, SMALL_NETWORK.size))
    lengths = [np.linalg.norm(kind(SMALL_NETWORK).clip(rows), axis=1) for kind in (ReferenceLoop, ClipPerLayer)]
    np.testing.assert_allclose(lengths[0], 1.0)
    np.testing.assert_allclose(lengths[1], 2.0)  # four groups of length 1
    clipped = BiasNotClipped(SMALL_NETWORK).clip(rows)
    bias = SMALL_NETWORK.group_of(np.arange(SMALL_NETWORK.size)) % 2 == 1
    np.testing.assert_array_equal(clipped[:, bias], rows[:, bias])
    np.testing.assert_allclose(np.linalg.norm(clipped[:, ~bias], axis=1), 1.0)


def test_shuffled_batches_use_every_record_once_per_epoch():
    loop = ShuffledBatches(SMALL_NETWORK, steps=20)
    batches = list(loop.batches(103, np.random.default_rng(7)))
    assert len(batches) == 20
    for epoch in (batches[:10], batches[10:]):
        assert sorted(np.concatenate(epoch)) == list(range(103))
    assert not np.array_equal(batches[0], batches[10])


@pytest.mark.parametrize(("kind", "counts"), [(LastBatchKept, (2, 3, 3)), (LastBatchDropped, (2, 2, 3))])
def test_the_number_of_batches_follows_the_number_of_records(kind, counts):
    loop = kind(SMALL_NETWORK, steps=10, batch_size=4.0)
    rng = np.random.default_rng(8)
    assert tuple(len(list(loop.batches(size, rng))) for size in (8, 11, 12)) == counts


def log_ratios(loop, data, canary, runs, *, planted, seed):
    data = data.with_canaries(canary if planted else canary[:0]).watching(canary)
    outputs = [loop(data, np.random.default_rng([seed, run])).value for run in range(runs)]
    lengths = np.array([output.evidence[:, :, 3].sum() / output.steps for output in outputs])
    return np.array([output.log_ratios[0] for output in outputs]), lengths


@pytest.mark.slow
@pytest.mark.parametrize("planted", [False, True], ids=["held out", "inserted"])
def test_an_example_has_the_law_of_the_accountant(planted):
    """The null is exactly tight: log-likelihood ratios of an example against those of Gaussian noise alone.

    A correct loop fails in fewer than one of 10,000 simulations; the seeds are fixed.
    """
    loop = replace(find("correct-with-examples").loop, steps=40)
    x, y = clusters(60, LINEAR_MODEL.features - 12)
    canary = RareFeatures(LINEAR_MODEL.features - 12, 30.0).draw(np.random.default_rng(9), 1)
    ratios, lengths = log_ratios(loop, TrainingSet(x, y, Kind.EXAMPLE), canary, 800, planted=planted, seed=10)
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-9)  # the gradient is clipped at every step
    rng = np.random.default_rng(11)
    taken = rng.random((4000, 40)) < (loop.rate if planted else 0.0)
    products = taken + loop.noise_multiplier * rng.standard_normal(taken.shape)
    expected = np.log(1 - loop.rate + loop.rate * np.exp((products - 0.5) / loop.noise_multiplier**2)).sum(axis=1)
    assert stats.ks_2samp(ratios, expected).pvalue > 1e-4

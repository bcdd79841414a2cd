"""The entries: the correct trainer first, then trainers with wrong noise, wrong clipping and wrong batches."""

from __future__ import annotations

from typing import Any

from lidp.training.catalogue.clipping_bugs import (
    AugmentationsCountedSeparately,
    BatchNorm,
    BiasNotClipped,
    ClipAfterAveraging,
    ClipPerBatch,
    ClipPerLayer,
)
from lidp.training.catalogue.data import CLASSES, FEATURES
from lidp.training.catalogue.entry import (
    LINEAR_MODEL,
    RARE_FEATURES,
    SMALL_NETWORK,
    FoundBy,
    TrainingEntry,
    coordinate_gradients,
    examples,
    layer_spanning_gradients,
    long_coordinate_gradients,
    opposed_gradient,
)
from lidp.training.catalogue.loop import ReferenceLoop
from lidp.training.catalogue.noise_bugs import (
    NoiseForLargerBatch,
    NoiseFromFixedSeed,
    NoiseOnceForVirtualBatches,
    NoisePerWorkerDividedByWorkers,
    NoiseReusedAcrossSteps,
    NoiseSeedLogged,
    NoiseTimesLearningRate,
    NoiseUnderflows,
    NoNoiseInOneLayer,
)
from lidp.training.catalogue.sampling_bugs import LastBatchDropped, LastBatchKept, ShuffledBatches
from lidp.training.model import Network
from lidp.training.transcript import ClaimedSteps

_ABADI = "Abadi et al. 2016, arXiv:1607.00133"
_SHUFFLE = "Annamalai, Balle, Hayes, De Cristofaro 2024, arXiv:2411.10614"
_SMALL_STEPS = 1e-7  # a clipping norm that small gradients need, such as those of a mean loss over many tokens
_SHUFFLED = ClaimedSteps(0.4, 0.1, 1.0, steps_per_epoch=10)
_FEW_STEPS: dict[str, Any] = {
    "steps": 10, "noise_multiplier": 2.0, "claimed": ClaimedSteps(2.0, 0.1, 1.0), "claimed_steps": 10
}  # fmt: skip
_WIDE_NETWORK = Network(FEATURES + RARE_FEATURES, CLASSES, (16,))
_SLOW = (
    0.02  # a learning rate at which the model does not learn canaries that are examples, so that their gradients stay long
)

_NOISE: tuple[TrainingEntry, ...] = (
    TrainingEntry(
        "noise-for-wrong-batch-size", "the mean gets the noise of a mean over twice as many records",
        "Tramèr et al. 2022, arXiv:2202.12219", NoiseForLargerBatch(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-missing-in-one-layer", "the weights of the last layer get no noise",
        "github.com/illidanlab/dpgan/issues/2", NoNoiseInOneLayer(SMALL_NETWORK), canaries=128,
    ),
    TrainingEntry(
        "noise-reused-across-steps", "every step gets the same noise, from a secret seed",
        "github.com/jax-ml/jax/pull/3646", NoiseReusedAcrossSteps(SMALL_NETWORK), found_by=FoundBy.VARIANCE,
    ),
    TrainingEntry(
        "noise-from-fixed-seed", "the seed of the noise is a constant of the code",
        "Garfinkel, Leclerc 2020, arXiv:2009.03777", NoiseFromFixedSeed(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-seed-logged", "the published log contains the seed of the noise",
        "Holohan 2023, arXiv:2307.03543", NoiseSeedLogged(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-once-for-virtual-batches", "parameters move after every virtual batch, noise is added to every fourth",
        "github.com/meta-pytorch/opacus/pull/219", NoiseOnceForVirtualBatches(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-per-worker-divided-by-workers", "each of 4 workers adds a quarter of the noise, which is half of it in sum",
        "github.com/flwrlabs/flower/issues/1892", NoisePerWorkerDividedByWorkers(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-times-learning-rate", "gradients get noise that is already multiplied by the learning rate",
        "github.com/wenzhu23333/Differential-Privacy-Based-Federated-Learning/issues/14",
        NoiseTimesLearningRate(SMALL_NETWORK),
    ),
    TrainingEntry(
        "noise-underflows", "the noise of the mean is 0 in 16 bits", "Micikevicius et al. 2018, arXiv:1710.03740",
        NoiseUnderflows(SMALL_NETWORK, clip_norm=_SMALL_STEPS, claimed=ClaimedSteps(1.0, 0.1, _SMALL_STEPS)),
        planted=coordinate_gradients(_SMALL_STEPS),
    ),
)  # fmt: skip
_CLIPPING: tuple[TrainingEntry, ...] = (
    TrainingEntry(
        "clip-after-averaging", "the mean gradient is clipped, and gets the noise of a mean of clipped gradients",
        "github.com/tensorflow/privacy/issues/46", ClipAfterAveraging(LINEAR_MODEL, learning_rate=_SLOW),
        planted=examples(30.0), canaries=16,
    ),
    TrainingEntry(
        "clip-per-batch", "the sum of the batch is clipped, not the gradient of each example",
        "Ponomareva et al. 2023, arXiv:2303.00654, section 5.6", ClipPerBatch(LINEAR_MODEL, learning_rate=_SLOW),
        planted=opposed_gradient(), canaries=1, models=160,
    ),
    TrainingEntry(
        "clip-per-layer", "weights and biases of each layer are clipped to the norm of the whole gradient",
        "github.com/meta-pytorch/opacus/issues/202", ClipPerLayer(SMALL_NETWORK),
        planted=layer_spanning_gradients(), canaries=16,
    ),
    TrainingEntry(
        "bias-not-clipped", "biases are left out of the clipping", "github.com/meta-pytorch/opacus/pull/751",
        BiasNotClipped(SMALL_NETWORK), planted=long_coordinate_gradients(),
    ),
    TrainingEntry(
        "batch-norm", "normalisation over the batch lets a record change the gradients of all others",
        "github.com/meta-pytorch/opacus/issues/319", BatchNorm(_WIDE_NETWORK, learning_rate=_SLOW),
        planted=examples(30.0), canaries=8,
    ),
    TrainingEntry(
        "augmentations-counted-separately", "4 augmentations of a record are clipped one by one and added",
        "De et al. 2022, arXiv:2204.13650", AugmentationsCountedSeparately(LINEAR_MODEL, learning_rate=_SLOW),
        planted=examples(30.0), canaries=16,
    ),
)  # fmt: skip
_BATCHES: tuple[TrainingEntry, ...] = (
    TrainingEntry(
        "sampling-rate-understated", "the accountant gets half the sampling rate",
        "github.com/google-research/federated/issues/25", ReferenceLoop(SMALL_NETWORK, claimed=ClaimedSteps(1.0, 0.05, 1.0)),
    ),
    TrainingEntry(
        "steps-not-counted", "the accountant gets half the steps",
        "github.com/meta-pytorch/opacus/issues/535", ReferenceLoop(SMALL_NETWORK, claimed_steps=50),
    ),
    TrainingEntry(
        "shuffled-batches", "batches are shuffled, the accountant assumes Poisson sampling", _SHUFFLE,
        ShuffledBatches(SMALL_NETWORK, steps=10, noise_multiplier=0.4, claimed=_SHUFFLED, claimed_steps=10),
        found_by=FoundBy.EPOCHS,
    ),
    TrainingEntry(
        "last-batch-kept", "one more record gives every epoch one more batch, which holds what is left",
        "github.com/meta-pytorch/opacus/issues/571", LastBatchKept(SMALL_NETWORK, **_FEW_STEPS),
        canaries=1, records=320, found_by=FoundBy.NUMBER_OF_STEPS, models=128,
    ),
    TrainingEntry(
        "last-batch-dropped", "one more record completes a batch, which is dropped without it",
        "github.com/ftramer/Handcrafted-DP/issues/2", LastBatchDropped(SMALL_NETWORK, **_FEW_STEPS),
        canaries=1, records=319, found_by=FoundBy.NUMBER_OF_STEPS, models=128,
    ),
)  # fmt: skip

ENTRIES: tuple[TrainingEntry, ...] = (
    TrainingEntry("correct", "DP-SGD as the accountant assumes it", _ABADI, ReferenceLoop(SMALL_NETWORK), correct=True),
    TrainingEntry(
        "correct-with-examples", "the same, with examples as canaries", _ABADI,
        ReferenceLoop(LINEAR_MODEL, learning_rate=_SLOW), planted=examples(30.0), canaries=16, correct=True,
    ),
    *_NOISE,
    *_CLIPPING,
    *_BATCHES,
)  # fmt: skip

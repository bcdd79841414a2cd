"""Build a DP-SGD target for a claim: a trainer, canaries, scores and pilot models that fit together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from lidp import checks
from lidp.canaries.coordinates import DiracGradients, SpreadCoordinates, quiet_coordinates
from lidp.canaries.examples import ExamplePool, blank, mislabelled, tail_singular_vectors
from lidp.claim import Claim, Neighbours
from lidp.curves import PrivacyCurve
from lidp.data import Dataset
from lidp.errors import InvalidArgument
from lidp.target import Target
from lidp.training.accounting import Accountant, Calibration, calibrate
from lidp.training.gradients import RandomSigns
from lidp.training.model import Network
from lidp.training.pilots import Pilots
from lidp.training.records import Kind, TrainingSet
from lidp.training.scores import Contribution, CoordinateScore, LossScore, OverlapScore, RowScore, SignScore
from lidp.training.trainer import DPSGD, Sampling
from lidp.training.transcript import SCORES_SEE, ClaimedSteps, TranscriptScore
from lidp.trials.scoring import Decorrelated, SelfNormalised

_PROVISO = ", if batches were Poisson samples"
_QUIET_SHARE = 0.25  # of features: gradient canaries along one coordinate use the weights of these


class Canary(StrEnum):
    """The kind of canary to plant."""

    RANDOM_GRADIENT = "random-gradient"
    """A gradient of clip norm in a random direction: the same size at all coordinates, with random signs."""
    DIRAC_GRADIENT = "dirac-gradient"
    """A gradient of clip norm along a random coordinate, among those that the data change least."""
    TAIL_EXAMPLE = "tail-example"
    """A tail singular vector of the data, with the label that models find hardest (the paper's data poisoning)."""
    MISLABELLED = "mislabelled"
    """A test example with a wrong label."""
    BLANK = "blank"
    """An empty example with a random label."""


class Fault(StrEnum):
    """A deliberate error in the trainer, for audits to detect."""

    NONE = "none"
    LITTLE_NOISE = "little-noise"
    """The noise is that of four times the claimed ε."""
    NO_CLIPPING = "no-clipping"
    """Gradients are not clipped."""
    WRONG_RATE = "wrong-rate"
    """The accountant gets a tenth of the sampling rate."""


class Scoring(StrEnum):
    """How canaries are scored."""

    CENTRED = "centred"
    """Relative to pilot models."""
    RAW = "raw"
    """As in the paper: an inner product with the parameters for gradients, minus the loss for examples."""
    SELF_NORMALISED = "self-normalised"
    """Centred, and relative to the scores of fresh canaries on the same model."""
    DECORRELATED = "decorrelated"
    """Centred, minus the expected contribution of other gradients."""
    TRANSCRIPT = "transcript"
    """The log-likelihood ratio of all steps, for shuffled batches of all epochs: what the accountant covers, not only the final
    model."""


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        epochs: passes over the data; the number of steps is ``epochs * records / batch_size``.
        accountant: the accountant that calibrates the noise.
        random_start: whether each model starts from new random parameters; see :class:`DPSGD`.
    """

    hidden: tuple[int, ...] = ()
    epochs: float = 30
    batch_size: float = 100
    learning_rate: float = 0.02
    clip_norm: float = 1.0
    sampling: Sampling = Sampling.POISSON
    accountant: Accountant = Accountant.PLD
    random_start: bool = False

    def __post_init__(self) -> None:
        checks.positive(epochs=self.epochs)
        checks.positive(batch_size=self.batch_size)
        # The accountant relies on clipping. To train without it, use Fault.NO_CLIPPING.
        checks.positive(clip_norm=self.clip_norm)
        object.__setattr__(self, "sampling", checks.member(Sampling, sampling=self.sampling))
        object.__setattr__(self, "accountant", checks.member(Accountant, accountant=self.accountant))


@dataclass(frozen=True)
class TrainingTarget:
    """A target with its trainer and the calibration of its noise: σ, and the ε that it gives."""

    target: Target
    trainer: DPSGD
    calibration: Calibration


def training_target(
    data: Dataset,
    claim: Claim,
    *,
    training: Training | None = None,
    canary: Canary | str = Canary.RANDOM_GRADIENT,
    canaries: int = 64,
    pilots: int | None = None,
    tail: int | None = None,
    scale: float = 10.0,
    scores: Scoring | str = Scoring.CENTRED,
    fault: Fault | str = Fault.NONE,
    true_noise: float = 1.0,
    measure_accuracy: bool = True,
) -> TrainingTarget:
    """Return DP-SGD on a data set, with the noise that the claim requires, to be audited with ``canaries`` canaries per trial.

    Under add/remove neighbours canaries are added, and the accountant gets the size of the data set with all of them; under
    replace-one they replace records, and the size stays the same. With ``sampling="shuffle"`` the noise is calibrated as if
    batches were Poisson samples, as most code does; the target's name says so.

    ``pilots`` is the number of models that are trained beforehand, without canaries, to centre scores. The default is 4 models
    without noise for gradient canaries, and 32 models with noise for example canaries. Raw scores of gradients and
    transcripts need none. The trainer adds only the share ``true_noise`` of the noise that the claim requires.
    """
    training = training or Training()
    canary_kind, injected_fault = checks.member(Canary, canary=canary), checks.member(Fault, fault=fault)
    gradients = canary_kind in (Canary.RANDOM_GRADIENT, Canary.DIRAC_GRADIENT)
    canaries = checks.count(canaries=canaries)
    scoring = checks.member(Scoring, scores=scores)
    transcript = scoring is Scoring.TRANSCRIPT
    pilotless = (gradients and scoring is Scoring.RAW) or (transcript and canary_kind is not Canary.TAIL_EXAMPLE)
    if pilotless and pilots is not None:
        what = "transcripts" if transcript else "raw scores of gradients"
        raise InvalidArgument(f"{what} are relative to no pilot models; leave pilots out, got {pilots}")
    true_noise = checks.positive(true_noise=true_noise)
    pilots = checks.count(pilots=(4 if gradients else 32) if pilots is None else pilots)
    replaces = claim.neighbours is Neighbours.REPLACE_ONE
    if replaces and canaries > len(data):
        raise InvalidArgument(f"{canaries} canaries cannot replace {len(data)} records; plant fewer, or take more records")
    records = len(data) + (0 if replaces else canaries)
    rate = min(1.0, training.batch_size / records)
    steps = max(1, round(training.epochs * records / training.batch_size))
    claimed = _calibrate(
        claim, rate, steps, training, Fault.WRONG_RATE if injected_fault is Fault.WRONG_RATE else Fault.NONE
    )
    calibration = _calibrate(claim, rate, steps, training, injected_fault)
    poisson = training.sampling is Sampling.POISSON
    # Fixed, not that of the run, which follows the number of inserted canaries: the score uses only what steps release.
    steps_per_epoch = 0 if poisson else math.ceil(1 / rate)
    claimed_steps = ClaimedSteps(claimed.sigma, claimed.rate, training.clip_norm, steps_per_epoch)
    network = Network(data.x.shape[1], data.classes, training.hidden)
    trainer = DPSGD(
        network,
        rate=rate,
        batch_size=training.batch_size,
        steps=steps,
        learning_rate=training.learning_rate,
        sigma=true_noise * calibration.sigma * (training.clip_norm if injected_fault is Fault.NO_CLIPPING else 1.0),
        clip_norm=0.0 if injected_fault is Fault.NO_CLIPPING else training.clip_norm,
        sampling=training.sampling,
        random_start=training.random_start,
        claimed=claimed_steps if transcript else None,
        test=(data.test_x, data.test_y) if measure_accuracy and len(data.test_y) else None,
    )
    record_kind, distribution, plain_score, pool = _canaries(canary_kind, data, network, training, tail, scale, scoring)
    name = f"dpsgd on {data.name}"
    if not poisson:
        name += ", shuffled (not what the accountant assumes)"
    if injected_fault is not Fault.NONE:
        name += f", fault: {injected_fault}"
    if true_noise != 1:
        name += f", {true_noise:g} times the noise"
    facts: dict[str, float | str] = {
        "noise multiplier": true_noise * calibration.sigma,
        f"ε by {calibration.accountant} accounting{'' if poisson else _PROVISO}": calibration.epsilon,
        "steps": steps,
        "sampling rate" if poisson else "batches in an epoch": rate if poisson else round(1 / rate),
    }
    if true_noise != 1:
        facts["noise multiplier by accounting"] = calibration.sigma
    if transcript:
        name += ", all steps"
        facts["scores see"] = SCORES_SEE
    target = Target(
        trainer,
        distribution,
        _score(scoring, plain_score, trainer),
        dataset=TrainingSet(data.x, data.y, record_kind, replaces, data.unit),
        prepare=None if pilotless else Pilots(replace(trainer, test=None, claimed=None), pilots, pool, noiseless=gradients),
        name=name,
        facts=facts,
        neighbours=claim.neighbours,
        curve=_claimed_curve(claim, claimed),
        interference=_interference(canary_kind, scoring, poisson=poisson, replaces=replaces),
    )
    return TrainingTarget(target, trainer, calibration)


def _claimed_curve(claim: Claim, claimed: Calibration) -> PrivacyCurve | None:
    """Return the privacy curve of a correct trainer with the accountant's noise, rate and steps.

    Under replace-one neighbours there is none: the accountant gives an upper bound on ε at one δ only.
    """
    if claim.curve is not None or claim.neighbours is not Neighbours.ADD_REMOVE:
        return claim.curve
    try:
        return Claim.dpsgd(
            noise_multiplier=claimed.sigma, sampling_rate=claimed.rate, steps=claimed.steps, delta=claim.delta
        ).curve
    except InvalidArgument:  # the claim promises so little that its curve cannot be computed; its point can be tested
        return None


def _interference(canary: Canary, scoring: Scoring, *, poisson: bool, replaces: bool) -> str | None:
    """Return why the score of one canary depends on the others of a run, None if it does not."""
    if scoring is not Scoring.TRANSCRIPT:
        return "the final model mixes what all canaries have added; use transcript scores"
    if canary is Canary.RANDOM_GRADIENT:
        return "random gradients overlap; use dirac-gradient"
    if canary is not Canary.DIRAC_GRADIENT:
        return "gradients of examples overlap; use dirac-gradient"
    if not poisson:
        return "in shuffled batches a canary takes the place of another; use Poisson sampling"
    return "canaries replace records; use add-remove neighbours" if replaces else None


def _calibrate(claim: Claim, rate: float, steps: int, training: Training, fault: Fault) -> Calibration:
    epsilon = claim.epsilon * (4 if fault is Fault.LITTLE_NOISE else 1)
    assumed_rate = rate / 10 if fault is Fault.WRONG_RATE else rate
    if not epsilon or not claim.delta:
        raise InvalidArgument("DP-SGD needs a claim with epsilon and delta above 0")
    return calibrate(
        epsilon,
        delta=claim.delta,
        rate=assumed_rate,
        steps=steps,
        accountant=training.accountant,
        neighbours=claim.neighbours,
    )


def _canaries(
    canary: Canary,
    data: Dataset,
    network: Network,
    training: Training,
    tail: int | None,
    scale: float,
    scoring: Scoring,
) -> tuple[Kind, Any, RowScore, ExamplePool | None]:
    """Return what canaries are to the trainer, their distribution, their score, and the pool that pilot models are scored on."""
    centred = scoring is not Scoring.RAW
    if canary is Canary.RANDOM_GRADIENT:
        signs = RandomSigns(network.size, training.clip_norm)
        return Kind.SIGNS, signs, SignScore(network.size, centred), None
    if canary is Canary.DIRAC_GRADIENT:
        if scoring is Scoring.TRANSCRIPT:  # it subtracts what the data change, so that every coordinate will do
            spread = SpreadCoordinates(network.group_sizes, training.clip_norm)
            return Kind.COORDINATE, spread, CoordinateScore(), None
        coordinates = quiet_coordinates(data.x, network.widths[1], _QUIET_SHARE)
        gradients = DiracGradients(network.size, coordinates, training.clip_norm)
        return Kind.COORDINATE, gradients, CoordinateScore(centred), None
    if canary is Canary.TAIL_EXAMPLE:
        features = data.x.shape[1]
        pool = ExamplePool(tail_singular_vectors(data.x, tail or max(1, features // 3), checks.positive(scale=scale)))
    elif canary is Canary.MISLABELLED:
        rng = np.random.default_rng(0)  # the same pool in every audit: it is part of the target
        pool = ExamplePool(*mislabelled(data.test_x[:2000], data.test_y[:2000], data.classes, rng))
    else:
        pool = ExamplePool(*blank(data.x.shape[1], data.classes))
    return Kind.EXAMPLE, pool, LossScore(network, centred), pool


def _score(scoring: Scoring, plain: RowScore, trainer: DPSGD) -> Any:
    if scoring is Scoring.TRANSCRIPT:
        return TranscriptScore()
    if scoring is Scoring.SELF_NORMALISED:
        return SelfNormalised(plain)
    if scoring is not Scoring.DECORRELATED:
        return plain
    if not isinstance(plain, OverlapScore):
        raise InvalidArgument(
            "decorrelated scores are for gradients, whose contributions are known; "
            "examples have centred, raw or self-normalised scores"
        )
    return Decorrelated(plain, Contribution(plain, trainer.expected_shift))

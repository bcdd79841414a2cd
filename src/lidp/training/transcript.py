"""Transcripts: what all steps of a training tell about each canary, added up while the training runs.

An accountant covers an adversary who sees what every step releases, and knows all records but one. The residual r of a step is its
noisy sum of gradients minus the clipped sum of all records that are no canaries, in units of the clipping norm. With c the gradient
of a canary and z = ⟨c, r⟩, the log-likelihood ratio of the step, with the canary sampled at rate q against without it, is
log(1 - q + q·exp((z - ½|c|²) / σ²)). Its sum over all steps is the best score there is: where canaries do not interfere, its law is
the pair of distributions from which the accountant calculates the privacy curve.

In shuffled batches a record takes part in exactly one of the B steps of an epoch, so the log-likelihood ratio of the epoch is
log(mean over its steps of exp((z - ½|c|²) / σ²)); an accountant that assumes Poisson sampling does not cover it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Floats, Ints
from lidp.trials.scoring import ScoringContext

COLUMNS = ("log_ratio", "product", "square", "length", "lagged", "count")
"""Sums over the steps of a stretch: of the log-likelihood ratio; of z; of (z/|c|)²; of |c|²; of z/|c| times its last value; of 1,
for steps at which the gradient of the canary is not 0."""
SCORES_SEE = "what every step releases, which the accountant covers; not the final model alone"
"""What results say about scores of transcripts, as their fact "scores see"."""
STRETCHES = 8
"""The number of equal parts of a training for which evidence is kept apart."""


@dataclass(frozen=True)
class ClaimedSteps:
    """What a claim about DP-SGD says of each step: noise multiplier, sampling rate and clipping norm.

    ``steps_per_epoch`` is for trainers that shuffle their batches, whatever they claim: every record takes part in one of so
    many steps, and log-likelihood ratios are computed per epoch. 0 is Poisson sampling, at ``rate``.
    """

    noise_multiplier: float
    rate: float
    clip_norm: float
    steps_per_epoch: int = 0

    def __post_init__(self) -> None:
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.share(rate=self.rate)
        checks.positive(clip_norm=self.clip_norm)
        if self.steps_per_epoch:
            checks.count(steps_per_epoch=self.steps_per_epoch)

    @property
    def numbers(self) -> Floats:
        """Noise multiplier, rate, clipping norm and steps per epoch, for compiled loops."""
        return np.array([self.noise_multiplier, self.rate, self.clip_norm, self.steps_per_epoch])


@dataclass(frozen=True)
class Transcript:
    """What the steps of one run tell about each watched canary.

    Attributes:
        evidence: an array (canaries, stretches, ``COLUMNS``).
        steps: the number of steps of the run.
        groups: for each canary, the number in ``group_names`` of the parameters that its gradient changes. Only for canaries with
            gradients along different coordinates; empty for others.
    """

    evidence: Floats
    steps: int
    groups: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    group_names: tuple[str, ...] = ()

    @property
    def log_ratios(self) -> Floats:
        """The log-likelihood ratio of each canary over all steps."""
        total: Floats = self.evidence[:, :, 0].sum(axis=1)
        return total

    def to_arrays(self) -> dict[str, Floats]:
        """Return the evidence as flat arrays by name, as stores keep them."""
        arrays = {name: self.evidence[:, :, column].ravel() for column, name in enumerate(COLUMNS)}
        return arrays | ({"group": self.groups.astype(np.float64)} if len(self.groups) else {})


def new_evidence(canaries: int, steps: int) -> Floats:
    """Return evidence of no step yet about some canaries, for a run of some steps."""
    return np.zeros((canaries, min(STRETCHES, steps), len(COLUMNS)))


class TranscriptRecorder:
    """Adds up the evidence of a run step by step, for training loops whose number of steps is not known beforehand.

    It keeps up to twice as many stretches as :data:`STRETCHES`. When all of them are full, it merges pairs of neighbours, so that
    memory does not grow with the steps.
    """

    def __init__(self, canaries: int) -> None:
        self.steps = 0
        self._steps_per_stretch = 1
        self._evidence = np.zeros((2 * STRETCHES, canaries, len(COLUMNS)))
        self._last = np.zeros(canaries)
        self._epoch_log_sums = np.zeros(canaries)

    def add(self, products: Floats, squared_lengths: Floats, claimed: ClaimedSteps) -> None:
        """Add one step.

        Args:
            products: inner products of the residual with the gradients of the canaries.
            squared_lengths: squares of the lengths of these gradients.
            claimed: what is claimed of this step.
        """
        from lidp._compiled.transcripts import add_epoch_step, add_step

        stretch, rest = divmod(self.steps, self._steps_per_stretch)
        if stretch == len(self._evidence) and not rest:
            merged = self._evidence[0::2] + self._evidence[1::2]
            self._evidence[: len(merged)], self._evidence[len(merged) :] = merged, 0.0
            self._steps_per_stretch *= 2
            stretch = len(merged)
        evidence = self._evidence[stretch]
        if claimed.steps_per_epoch:
            seen = self.steps % claimed.steps_per_epoch
            add_epoch_step(
                products,
                squared_lengths,
                claimed.numbers,
                seen,
                claimed.steps_per_epoch,
                self._epoch_log_sums,
                self._last,
                evidence,
            )
        else:
            add_step(products, squared_lengths, claimed.numbers, self._last, evidence)
        self.steps += 1

    def transcript(self, groups: Ints | None = None, group_names: tuple[str, ...] = ()) -> Transcript:
        """Return the transcript of all steps so far."""
        used = -(-self.steps // self._steps_per_stretch)
        evidence = self._evidence[:used].transpose(1, 0, 2).copy()
        return Transcript(evidence, self.steps, np.empty(0, np.int64) if groups is None else groups, group_names)


@dataclass(frozen=True)
class TranscriptScore:
    """The log-likelihood ratio of each canary over all steps; the output is a :class:`Transcript` of the tested canaries.

    Guarantee: keeps the audit valid. The score is a function of the residuals, which are part of what the claim covers, and of the
    canary.
    """

    auxiliary: ClassVar[int] = 0
    sequential: ClassVar[bool] = False
    watches: ClassVar[bool] = True

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:  # needs no preparation
        """Return one score per tested canary, and keep the evidence for ``lidp diagnose``."""
        transcript: Transcript = context.output
        context.evidence.update(transcript.to_arrays())
        context.notes["steps"] = transcript.steps
        if transcript.group_names:
            # Readers split the names at ", ", which a name of a user's own may contain.
            context.notes["groups"] = ", ".join(name.replace(", ", ",") for name in transcript.group_names)
        return transcript.log_ratios

"""Scores for faults that the log-likelihood ratio of single steps does not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lidp.arrays import Floats
from lidp.training.transcript import COLUMNS, Transcript, TranscriptScore
from lidp.trials.scoring import ScoringContext


@dataclass(frozen=True)
class VarianceOverSteps(TranscriptScore):
    """The variance over all steps of the residual along the canary: noise that is the same in all steps has none.

    Guarantee: keeps the audit valid, as a function of the residuals and of the canary.
    """

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        """Return one score per tested canary."""
        super().score_trial(context, *prepared)
        transcript: Transcript = context.output
        sums = dict(zip(COLUMNS, transcript.evidence.sum(axis=1).T, strict=True))
        steps = np.maximum(sums["count"], 1.0)
        variances: Floats = sums["square"] / steps - np.square(sums["product"] / steps)
        return variances


@dataclass(frozen=True)
class NumberOfSteps(TranscriptScore):
    """The number of steps of the run, for all canaries: a trainer that derives it from the number of records reveals that.

    Guarantee: keeps the audit valid, as a function of the output.
    """

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        """Return one score per tested canary."""
        super().score_trial(context, *prepared)
        transcript: Transcript = context.output
        return np.full(len(context.tested), float(transcript.steps))

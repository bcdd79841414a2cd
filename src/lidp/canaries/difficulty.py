"""How hard examples are to models that have not seen them: what the losses of a few pilot models say, and no more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST = 1e-3
"""The smallest spread, in units of the largest: losses that hardly move must not outweigh all others."""


def difficulty(losses: Floats) -> tuple[Floats, Floats]:
    """The mean and the spread of each example's loss (models x examples) among models.

    Both are rough if there are few models, and a score that is divided by a rough spread has heavy tails, which is where bounds are
    won. So each is drawn towards what the examples have in common, by the share of the differences between examples that the
    roughness alone would make (empirical Bayes): all the way if they seem to be alike, hardly if they are not.

    Spreads of a single model, or of models that all agree, are 1.
    """
    models, examples = losses.shape
    means: Floats = losses.mean(axis=0)
    largest = float(losses.std(axis=0, ddof=1).max()) if models > 1 else 0.0
    if not largest:
        return means, np.ones(examples)
    from scipy.special import polygamma

    variances = np.maximum(losses.var(axis=0, ddof=1), (_LEAST * largest) ** 2)
    # Ratios of variances are what matters, so they are drawn in logarithms, where their roughness is the same for all.
    roughness = np.full(examples, float(polygamma(1, (models - 1) / 2)))
    variances = np.exp(_drawn(np.log(variances), roughness))
    return _drawn(means, variances / models), np.sqrt(variances)


def _drawn(values: Floats, roughness: Floats) -> Floats:
    """Towards their mean; ``roughness`` is the variance with which each is known."""
    alike = values.mean()
    differences = max(float(values.var()) - float(roughness.mean()), 0.0)
    found: Floats = alike + differences / (differences + roughness) * (values - alike)
    return found

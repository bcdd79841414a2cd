"""How hard examples are to models that have not seen them: what the losses of a few pilot models say, and no more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lidp.errors import AuditFailed

Floats = NDArray[np.float64]

_LEAST = 1e-3
"""The smallest spread, in units of the largest: losses that hardly move must not outweigh all others."""
_MOST = 1e100
"""Squares of larger losses could not be summed."""
_ROUNDING = 1e-12
"""Spreads that are smaller than this, in units of the losses, are rounding."""


def difficulty(losses: Floats) -> tuple[Floats, Floats]:
    """The mean and the spread of each example's loss (models x examples) among models.

    Both are rough if there are few models, and a score that is divided by a rough spread has heavy tails, which is where bounds are
    won. So each is drawn towards what the examples have in common, by the share of the differences between examples that the
    roughness alone would make (empirical Bayes): all the way if they seem to be alike, hardly if they are not.

    Spreads of a single model, or of models that all agree, are 1.
    """
    models, examples = losses.shape
    wild = np.argwhere(~(np.abs(losses) < _MOST))  # or not a number
    if len(wild):
        model, example = wild[0]
        raise AuditFailed(
            f"the loss of a pilot model on example {example} of the pool is {losses[model, example]:g}, which nothing can be "
            "compared with; train more gently, or leave the example out"
        )
    means: Floats = losses.mean(axis=0)
    spreads = losses.std(axis=0, ddof=1) if models > 1 else np.zeros(examples)
    if spreads.max() <= _ROUNDING * np.abs(losses).max():
        return means, np.ones(examples)
    from scipy.special import polygamma

    variances = np.maximum(spreads, _LEAST * spreads.max()) ** 2
    # Ratios of variances are what matters, so they are drawn in logarithms, where their roughness is the same for all.
    roughness = np.full(examples, float(polygamma(1, (models - 1) / 2)))
    variances = np.exp(_drawn(np.log(variances), roughness))
    return _drawn(means, variances / models), np.sqrt(variances)


def _drawn(values: Floats, roughness: Floats) -> Floats:
    """Towards their mean; ``roughness`` is the variance with which each is known.

    The variance of what they are apart from that is the one for which they scatter as they should (Paule and Mandel 1982), each
    weighted by how well it is known: a wild example must not decide for all.
    """
    from scipy.optimize import brentq

    def mean(apart: float) -> float:
        return float(np.average(values, weights=1 / (apart + roughness)))

    def surplus(apart: float) -> float:
        return float(((values - mean(apart)) ** 2 / (apart + roughness)).sum()) - (len(values) - 1)

    most = 4 * float(np.ptp(values)) ** 2  # which is too much for any values
    apart = 0.0
    if most > 0 and surplus(0.0) > 0:
        apart = most * brentq(lambda share: surplus(share * most), 0.0, 1.0, xtol=1e-15)
    alike = mean(apart)
    found: Floats = alike + apart / (apart + roughness) * (values - alike)
    return found

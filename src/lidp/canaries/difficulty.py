"""Estimate how hard examples are for models that were not trained on them, from the losses of a few pilot models."""

from __future__ import annotations

import numpy as np

from lidp.arrays import Floats
from lidp.errors import AuditFailed

_MIN_RELATIVE_SPREAD = 1e-3
"""Smallest spread, in units of the largest: an example whose loss hardly varies must not outweigh all others."""
_MAX_LOSS = 1e100
"""Sums of squares of larger losses would overflow."""
_ROUNDING = 1e-12
"""Relative size below which spreads are rounding errors."""


def difficulty(losses: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the spread among models of each example's loss; ``losses`` has the shape (models, examples).

    With few models, both estimates are noisy, and a score that is divided by a noisy spread has heavy tails, which weakens bounds.
    Empirical Bayes therefore shrinks each estimate towards the mean of all examples: completely if the differences between
    examples are explained by the noise, and hardly if they are much larger.

    Spreads of a single model, or of models that all agree, are 1.

    Raises:
        AuditFailed: if a loss is not a finite number of usual size.
    """
    models, examples = losses.shape
    unusable = np.argwhere(~(np.abs(losses) < _MAX_LOSS))  # includes NaN
    if len(unusable):
        model, example = unusable[0]
        raise AuditFailed(
            f"the loss of a pilot model on example {example} of the pool is {losses[model, example]:g}, with which "
            "no loss can be compared; lower the learning rate, or leave the example out"
        )
    means: Floats = losses.mean(axis=0)
    spreads = losses.std(axis=0, ddof=1) if models > 1 else np.zeros(examples)
    if spreads.max() <= _ROUNDING * np.abs(losses).max():
        return means, np.ones(examples)
    from scipy.special import polygamma

    variances = np.maximum(spreads, _MIN_RELATIVE_SPREAD * spreads.max()) ** 2
    # Ratios of variances matter, so their logarithms are shrunk, whose estimation error is the same for all examples.
    log_error = np.full(examples, float(polygamma(1, (models - 1) / 2)))
    variances = np.exp(_shrink(np.log(variances), log_error))
    return _shrink(means, variances / models), np.sqrt(variances)


def _shrink(values: Floats, error_variances: Floats) -> Floats:
    """Shrink estimates towards their mean; ``error_variances`` are the variances of their errors.

    The variance between the true values is the one for which the estimates scatter as expected (Paule and Mandel 1982). Each
    estimate is weighted by its precision, so that outliers do not dominate.
    """
    from scipy.optimize import brentq

    def mean(between: float) -> float:
        return float(np.average(values, weights=1 / (between + error_variances)))

    def excess_scatter(between: float) -> float:
        return float(((values - mean(between)) ** 2 / (between + error_variances)).sum()) - (len(values) - 1)

    upper = 4 * float(np.ptp(values)) ** 2  # exceeds the solution for any values
    between = 0.0
    if upper > 0 and excess_scatter(0.0) > 0:
        between = upper * brentq(lambda share: excess_scatter(share * upper), 0.0, 1.0, xtol=1e-15)
    centre = mean(between)
    shrunk: Floats = centre + between / (between + error_variances) * (values - centre)
    return shrunk

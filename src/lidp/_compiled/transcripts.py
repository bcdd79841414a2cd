"""Compiled loop that turns what one step of DP-SGD releases into evidence about each watched canary."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

from lidp._compiled.compiler import compiled


@compiled()
def log_likelihood_ratio(exponent, rate):  # pragma: no cover  # compiled
    """Return log(1 - rate + rate·e^exponent), without overflow."""
    if rate >= 1.0:
        return exponent
    if exponent > 0.0:
        return exponent + math.log(rate + (1.0 - rate) * math.exp(-exponent))
    return math.log1p(rate * math.expm1(exponent))


@compiled()
def epoch_log_ratio(log_sum, seen, steps_per_epoch):  # pragma: no cover  # compiled
    """Return the log-likelihood ratio of the first ``seen`` steps of an epoch, with the canary in exactly one of all its steps.

    ``log_sum`` is the logarithm of the sum of e^exponent over these steps. The steps to come tell nothing yet: each counts 1.
    """
    to_come = steps_per_epoch - seen
    if to_come <= 0:
        return log_sum - math.log(steps_per_epoch)
    top = max(log_sum, 0.0)
    return top + math.log((to_come * math.exp(-top) + math.exp(log_sum - top)) / steps_per_epoch)


@compiled()
def _add_moments(product, length, k, last, row):  # pragma: no cover  # compiled
    """Add one step to all columns of a canary but the first."""
    row[1] += product
    row[3] += length
    if length > 0.0:
        along = product / math.sqrt(length)
        row[2] += along * along
        row[4] += along * last[k]
        row[5] += 1.0
        last[k] = along


@compiled()
def add_step(projections, lengths, claimed, last, evidence):  # pragma: no cover  # compiled
    """Add one step to the evidence about each canary.

    ``projections`` are inner products of the residual with the gradients of canaries, and ``lengths`` the squares of the lengths
    of these gradients. ``claimed`` holds the claimed noise multiplier, sampling rate and clipping norm, ``last`` the noise along
    each gradient in the step before, in units of the clipping norm. ``evidence`` is an array (canaries, columns), for the columns
    of :mod:`lidp.training.transcript`.
    """
    variance, rate, unit = claimed[0] * claimed[0], claimed[1], claimed[2] * claimed[2]
    for k in range(projections.shape[0]):
        product, length = projections[k] / unit, lengths[k] / unit
        evidence[k, 0] += log_likelihood_ratio((product - 0.5 * length) / variance, rate)
        _add_moments(product, length, k, last, evidence[k])


@compiled()
def add_epoch_step(
    projections, lengths, claimed, seen, steps_per_epoch, log_sums, last, evidence
):  # pragma: no cover  # compiled
    """Add one step of an epoch in which every record takes part once, after ``seen`` steps of the same epoch.

    ``log_sums`` holds for each canary the logarithm of the sum of e^exponent over these steps; this step is added to it. The
    other arguments are those of :func:`add_step`. What a step adds is its log-likelihood ratio given the steps before it.
    """
    variance, unit = claimed[0] * claimed[0], claimed[2] * claimed[2]
    for k in range(projections.shape[0]):
        product, length = projections[k] / unit, lengths[k] / unit
        exponent = (product - 0.5 * length) / variance
        before = epoch_log_ratio(log_sums[k], seen, steps_per_epoch) if seen > 0 else 0.0
        if seen > 0:
            top = max(log_sums[k], exponent)
            log_sums[k] = top + math.log(math.exp(log_sums[k] - top) + math.exp(exponent - top))
        else:
            log_sums[k] = exponent
        evidence[k, 0] += epoch_log_ratio(log_sums[k], seen + 1, steps_per_epoch) - before
        _add_moments(product, length, k, last, evidence[k])

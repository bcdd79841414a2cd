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
        row = evidence[k]
        row[0] += log_likelihood_ratio((product - 0.5 * length) / variance, rate)
        row[1] += product
        row[3] += length
        if length > 0.0:
            along = product / math.sqrt(length)
            row[2] += along * along
            row[4] += along * last[k]
            row[5] += 1.0
            last[k] = along

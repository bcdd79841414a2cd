"""Noise that is used twice: at successive steps of one run, or in several runs."""

from __future__ import annotations

import math

import numpy as np

from lidp.arrays import Floats
from lidp.diagnosis.evidence import Evidence, RunEvidence
from lidp.diagnosis.intervals import variance_limits

_GRID = 4000  # intervals between the candidates for a correlation, on either side of 0
_SHARPNESS = 16.0  # of the prior of the mixture; matters for strength only
_SAME = 1e-6  # relative difference of sums that are taken for equal: single precision rounds them
_MOST_NEIGHBOURS = 64  # compared with each sum, so that crafted evidence cannot take long


def correlation_limits(
    lagged: float, squares: float, last: float, count: float, tail_exponent: float, *, unevenness: float = 1.0
) -> tuple[float, float]:
    """Return limits on the correlation r of noise with the noise of the step before.

    ``lagged`` is the sum of products of successive numbers, ``squares`` that of squares, ``last`` that of the squares of the last
    stretch, ``count`` how many numbers there are. ``unevenness`` is the largest variance in units of the mean
    variance, if variances differ.

    Guarantee: both limits hold except with probability 2·e^-tail_exponent, if the noise of a step is r times that of the step
    before plus independent Gaussian noise of variance v. With V the sum of squares of all steps but the last, which lies between
    ``squares - last`` and ``squares``, let D = lagged - r·V. For every λ, exp(λD/v - ½λ²V/v) is a martingale. Its average over
    Gaussian λ of variance τ², exp(D²/(2(V·v + v²/τ²))) / sqrt(1 + τ²V/v), exceeds e^tail_exponent with at most that probability.
    The residual sum squares - 2r·lagged + r²·V is at least v times a chi-squared number, which gives an upper limit on v. An r is
    kept if some V and some v within these limits allow it; what D² must not exceed grows with V and v.
    """
    if count < 2 or squares <= 0 or abs(lagged) > squares:
        return -1.0, 1.0  # nothing is known
    lagged, last = lagged / squares, min(last / squares, 1.0)  # in units of the sum of squares, which is 1 from here on
    candidates = np.linspace(-1.0, 1.0, 2 * _GRID + 1)
    residuals = np.maximum(1 - 2 * candidates * lagged + candidates**2, 0.0)
    _, factor = variance_limits(1.0, count, tail_exponent)
    variances = np.clip(unevenness * factor * residuals, 1e-30, 1e30)
    ends = candidates * (1 - last), candidates
    gaps = np.maximum(np.maximum(np.minimum(*ends) - lagged, lagged - np.maximum(*ends)), 0.0)
    sharpness = _SHARPNESS / count
    allowed = variances * (1 + variances / sharpness) * (2 * tail_exponent + np.log1p(sharpness / variances))
    kept = np.flatnonzero(gaps**2 <= allowed)
    if not len(kept):
        return -1.0, 1.0
    return max(-1.0, float(candidates[kept[0]]) - 1 / _GRID), min(1.0, float(candidates[kept[-1]]) + 1 / _GRID)


def runs_share_noise(evidence: Evidence, tail_exponent: float) -> bool | None:
    """Return whether two runs have the same noise along some parameter; None if too few steps were recorded to tell.

    Two held-out canaries of different runs are compared by their sums of squares, stretch by stretch. Canaries along one
    coordinate see the same noise if their coordinate is the same; such pairs are frequent in small layers.

    Guarantee: if runs have independent Gaussian noise, True is returned with probability at most e^-tail_exponent. The logarithm
    of a sum of n squares has a density of at most sqrt(n / 4π), so the logarithms of two independent ones differ by at most t
    with probability at most 2t·sqrt(n / 4π). This is multiplied over stretches, and by the number of pairs.
    """
    runs = [run for run in evidence.runs if run.layout == evidence.layout]
    sums = [_held_out_squares(run) for run in runs]
    squares = np.concatenate([np.asarray(part) for part in sums])
    numbers = np.repeat(np.arange(len(runs)), [len(part) for part in sums])
    chances = [min(1.0, 2 * _SAME * math.sqrt(count / (4 * math.pi))) for count in evidence.layout if count > 0]
    pairs = len(squares) * (len(squares) - 1) / 2
    if len(runs) < 2 or not pairs or math.log(pairs) + sum(math.log(chance) for chance in chances) > -tail_exponent:
        return None
    logarithms = np.log(squares)
    order = np.argsort(logarithms[:, 0], kind="stable")
    logarithms, numbers = logarithms[order], numbers[order]
    for distance in range(1, min(_MOST_NEIGHBOURS, len(order))):
        differences = np.abs(logarithms[distance:] - logarithms[:-distance])
        equal = (differences <= _SAME).all(axis=1) & (numbers[distance:] != numbers[:-distance])
        if equal.any():
            return True
        if (differences[:, 0] > _SAME).all():
            break
    return False


def _held_out_squares(run: RunEvidence) -> Floats:
    """Return the sums of squares (canaries, stretches with steps) of held-out canaries that have noise in all stretches."""
    used = np.array(run.layout) > 0
    squares: Floats = run.columns["square"][~run.inserted][:, used]
    counted = (run.columns["count"][~run.inserted][:, used] == np.array(run.layout)[used]).all(axis=1)
    kept: Floats = squares[counted & (squares > 0).all(axis=1)]
    return kept

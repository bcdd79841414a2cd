"""Predict a coin from its score, by a mixture of small models that learn online.

The wager is valid for *any* prediction that uses only lower-index trials, the scores of the trial at hand, and its coins
already revealed; it is strong when the prediction is good. No one model suits all scores: logistic regression is best
for Gaussian-like scores, a quadratic term for canaries that are sometimes memorised outright, histograms for heavy
tails. So all of them predict, weighted by how well each has predicted so far.

None of them learns the share of coins that are 1. Coins are fair by assumption; if they are slightly unfair, a predictor that
learns their share would find a leak in pure noise. So each model predicts relative to what it would predict without a score.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lidp.arrays import Bools, Floats

CALIBRATION_SCORES = 64
"""Number of scores that fix the location, scale and bins; nothing is staked on the trials before."""

_LARGEST = 6.0  # standardised scores are cut off here, so that one outlier cannot tilt the regressions
_BINS = (8, 32)
# The middle, the quantiles one standard deviation beside it, and the inner edges of both histograms: computed in one call.
_QUANTILES = np.concatenate([(0.16, 0.5, 0.84), *(np.arange(1, bins) / bins for bins in _BINS)])
# Prior means and variances of the weights of (1, u, u² - 1) for the linear and the quadratic regression. Scores are
# higher for inserted canaries, so the slope starts out positive.
_MEANS = ((0.0, 0.5, 0.0), (0.0, 0.5, 0.0))
_VARIANCES = ((0.1, 0.5, 0.0), (0.1, 0.5, 0.05))
_TRUST = (0.7, 0.1, 0.1, 0.1)  # prior weights: linear, quadratic, coarse and fine histogram
_SLOPE_ERROR = 0.2  # relative standard deviation of the slope that a mechanism as claimed has
_STEEPEST = 8.0


class CoinPredictor:
    """Predicts coins from scores, one by one in index order, and learns from each coin after predicting it."""

    def __init__(self, calibration: Floats, expected: float | None = None) -> None:
        """Fix location, scale and bins by ``calibration``: scores of the first trials, without their coins.

        ``expected`` is the number of standard deviations by which a mechanism as claimed moves the score of a canary. It adds a
        regression that begins with the slope of such a mechanism, so that little has to be learned where scores are good.
        """
        known: Floats = calibration[~np.isnan(calibration)]
        ordered: Floats = np.sort(known) if known.size else np.zeros(1)
        low, middle, high, *inner = np.quantile(ordered, _QUANTILES)
        self.centre = float(middle)
        largest = float(np.abs(ordered).max()) or 1.0
        # Halves and a common divisor: scores near the largest float must not overflow.
        self.scale = float(high / 2 - low / 2 or largest * (ordered / largest).std() or 1.0)
        # The regressions begin with a positive slope: a mean of 0 keeps them from guessing "in" more often than "out".
        self.mean = float(self._standardised(ordered).mean())
        self.edges = [np.unique(inner[: _BINS[0] - 1]), np.unique(inner[_BINS[0] - 1 :])]
        means, variances, trust = list(_MEANS), list(_VARIANCES), list(_TRUST)
        if expected is not None:
            slope = min(expected * math.sqrt(1 + expected**2 / 4), _STEEPEST)
            means.insert(0, (0.0, slope, 0.0))
            variances.insert(0, (_VARIANCES[0][0], (_SLOPE_ERROR * slope) ** 2, 0.0))
            trust.insert(0, sum(_TRUST))
        self.weights = np.array(means)
        self.covariances = np.array([np.diag(each) for each in variances])
        self.counts = np.zeros((len(_BINS), max(_BINS), 2))
        self.blind = np.array([_MEANS[0][0], _VARIANCES[0][0]])
        self.pooled = np.ones(2)
        self.trust = np.array(trust)

    def predict(self, scores: Floats, coins: Bools) -> Floats:
        """Return the log-odds that each coin is 1, each computed before that coin (in row-major order) is learned from.

        A failed run gets log-odds of 0, and nothing is learned from it.
        """
        failed = np.isnan(scores[:, 0])
        if failed.any():
            log_odds: Floats = np.zeros(scores.shape)
            log_odds[~failed] = self.predict(scores[~failed], coins[~failed])
            return log_odds
        flat = scores.ravel()
        features = self._standardised(flat) - self.mean
        bins = np.empty((len(flat), len(self.edges)), dtype=np.int64)
        for column, edges in enumerate(self.edges):
            kernels().bin_scores(flat, edges, bins[:, column])
        logits = np.empty(len(flat))
        learned = (self.weights, self.covariances, self.counts, self.blind, self.pooled, self.trust)
        kernels().predict(features, bins, coins.ravel(), *learned, logits)
        return logits.reshape(scores.shape)

    def _standardised(self, scores: Floats) -> Floats:
        return np.clip(scores / self.scale - self.centre / self.scale, -_LARGEST, _LARGEST)


@cache
def kernels() -> Any:
    """Return the module of compiled loops, imported on first use: importing numba takes longer than everything else together."""
    from lidp._compiled import coin_wager

    return coin_wager

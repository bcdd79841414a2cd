"""Compiled loop of the online classifier, which predicts coins from the bins of several views of an output."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

from lidp._compiled.compiler import compiled

_REDISTRIBUTED_SHARE = 1e-4  # of the trust, in every run: the best view after few runs need not be the best after many
_PRIOR_COINS = 2.0  # of either kind, in every bin: most of the many bins carry no information


@compiled(nogil=True)
def predict_online(bins, coins, counts, trust, logits):  # pragma: no cover  # compiled
    """Compute the log-odds that each coin is 1, each from the coins before it only.

    Args:
        bins: array (runs, views), the bin of each run in each view; negative if there is none.
        coins: array (runs,).
        counts: array (views, bins, 2), the coins seen per bin; updated.
        trust: array (views,), the weight of each view; updated.
        logits: array (runs,); filled.
    """
    runs, views = bins.shape
    for i in range(runs):
        probability = 0.0
        for v in range(views):
            b = bins[i, v]
            one = (
                0.5 if b < 0 else (counts[v, b, 1] + _PRIOR_COINS) / (counts[v, b, 0] + counts[v, b, 1] + 2 * _PRIOR_COINS)
            )
            probability += trust[v] * one
        probability = min(max(probability, 1e-9), 1 - 1e-9)
        logits[i] = math.log(probability / (1 - probability))
        coin = 1 if coins[i] else 0
        of_coin = probability if coin else 1 - probability
        total = 0.0
        for v in range(views):
            b = bins[i, v]
            right = 0.5
            if b >= 0:
                right = (counts[v, b, coin] + _PRIOR_COINS) / (counts[v, b, 0] + counts[v, b, 1] + 2 * _PRIOR_COINS)
                counts[v, b, coin] += 1.0
            trust[v] = (1 - _REDISTRIBUTED_SHARE) * trust[v] * right / of_coin + _REDISTRIBUTED_SHARE / views
            total += trust[v]
        for v in range(views):
            trust[v] /= total

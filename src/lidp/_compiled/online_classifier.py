"""The compiled loop of the online classifier."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

from lidp._compiled.compiler import compiled

_SHARE = 1e-4  # of the trust, spread anew at every run: the best view of few runs is not the best of many
_PRIOR = 2.0  # coins of either kind that every bin is taken to have seen: bins are many, and most of them tell nothing


@compiled(nogil=True)
def predict_online(places, coins, counts, trust, logits):  # pragma: no cover  # compiled
    """Log-odds that each coin is 1, each made before that coin is learned from.

    places (n, views): the bin of each run in each view, negative if it is in none; counts (views, bins, 2) and trust (views): what
    was learned, updated; logits (n): filled.
    """
    runs, views = places.shape
    for i in range(runs):
        chance = 0.0
        for v in range(views):
            b = places[i, v]
            one = 0.5 if b < 0 else (counts[v, b, 1] + _PRIOR) / (counts[v, b, 0] + counts[v, b, 1] + 2 * _PRIOR)
            chance += trust[v] * one
        chance = min(max(chance, 1e-9), 1 - 1e-9)
        logits[i] = math.log(chance / (1 - chance))
        coin = 1 if coins[i] else 0
        given = chance if coin else 1 - chance
        total = 0.0
        for v in range(views):
            b = places[i, v]
            right = 0.5
            if b >= 0:
                right = (counts[v, b, coin] + _PRIOR) / (counts[v, b, 0] + counts[v, b, 1] + 2 * _PRIOR)
                counts[v, b, coin] += 1.0
            trust[v] = (1 - _SHARE) * trust[v] * right / given + _SHARE / views
            total += trust[v]
        for v in range(views):
            trust[v] /= total

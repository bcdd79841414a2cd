"""Loops that are sequential by nature, compiled by numba. What they compute is said where they are called."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_MODELS = 4  # two regressions, two histograms


@njit(cache=True)
def predict(features, bins, coins, weights, covariances, counts, trust, logits):
    """Fill ``logits`` coin by coin; ``weights``, ``covariances``, ``counts`` and ``trust`` learn each coin in turn."""
    odds = np.empty(_MODELS)
    for i in range(features.size):
        u = features[i]
        x = (1.0, u, u * u - 1.0)
        for r in range(2):
            mean = weights[r, 0] * x[0] + weights[r, 1] * x[1] + weights[r, 2] * x[2]
            v0 = covariances[r, 0, 0] * x[0] + covariances[r, 0, 1] * x[1] + covariances[r, 0, 2] * x[2]
            v1 = covariances[r, 1, 0] * x[0] + covariances[r, 1, 1] * x[1] + covariances[r, 1, 2] * x[2]
            v2 = covariances[r, 2, 0] * x[0] + covariances[r, 2, 1] * x[1] + covariances[r, 2, 2] * x[2]
            variance = v0 * x[0] + v1 * x[1] + v2 * x[2]
            # Averaging over the uncertainty of the weights moves the prediction towards a half.
            odds[r] = mean / math.sqrt(1 + math.pi / 8 * variance)
            # Laplace update of a Bayesian logistic regression.
            p = 1 / (1 + math.exp(-mean))
            h = p * (1 - p)
            gain = (coins[i] - p) / (1 + h * variance)
            shrink = h / (1 + h * variance)
            v = (v0, v1, v2)
            for a in range(3):
                weights[r, a] += v[a] * gain
                for b in range(3):
                    covariances[r, a, b] -= shrink * v[a] * v[b]
        for r in range(2):
            cell = counts[r, bins[i, r]]
            odds[2 + r] = math.log(cell[1] / cell[0])
            cell[1 if coins[i] else 0] += 1.0
        best = max(trust[0], max(trust[1], max(trust[2], trust[3])))
        total = 0.0
        chance = 0.0
        for r in range(_MODELS):
            trust[r] -= best
            share = math.exp(trust[r])
            p = 1 / (1 + math.exp(-odds[r]))
            total += share
            chance += share * p
            trust[r] += math.log(p if coins[i] else 1 - p)
        chance = min(max(chance / total, 1e-9), 1 - 1e-9)
        logits[i] = math.log(chance / (1 - chance))


@njit(cache=True)
def wager(
    logits, coins, epsilons, caps, charges, goal, use_in, use_out, log_wealth, guesses, right, rejected, reach, steps
):
    """Wager trial by trial; returns (rejected, reach, number of steps).

    caps (E,): largest amount staked per coin, from lower-index trials only; charges (E,): log-price of those caps.
    log_wealth, guesses, right (E,): updated. steps (n, 2): rows (trial, rejected) are written where the bound rose.
    reach: the largest |logit| of lower-index trials; at ε well beyond it the caps are 0, and so are the charges.
    """
    trials, canaries = logits.shape
    size = epsilons.size
    sure = np.empty(canaries)
    hit = np.empty(canaries, np.bool_)
    written = 0
    for t in range(trials):
        open_end = rejected
        while open_end < size and epsilons[open_end] <= 1.25 * reach:
            open_end += 1
        floor = epsilons[rejected] if rejected < size else math.inf
        active = 0
        furthest = 0.0
        for k in range(canaries):
            logit = logits[t, k]
            strength = abs(logit)
            if (logit > 0 and not use_in) or (logit < 0 and not use_out):
                continue
            furthest = max(furthest, strength)
            if strength > floor:
                sure[active] = strength
                hit[active] = coins[t, k] == (logit > 0)
                active += 1
        for e in range(rejected, open_end):
            if log_wealth[e] >= goal:
                continue  # rejected already, while a smaller ε is still open
            epsilon = epsilons[e]
            if epsilon >= furthest:
                log_wealth[e] -= charges[e]
                continue
            odds = math.exp(epsilon)
            scale = (1 + odds) / odds
            wealth = 1.0
            enough = math.exp(min(goal - log_wealth[e] + charges[e], 700.0))
            for i in range(active):
                if sure[i] <= epsilon:
                    continue
                stake = min((scale / (1 + math.exp(-sure[i])) - 1) * wealth, caps[e])
                guesses[e] += 1
                if hit[i]:
                    right[e] += 1
                    wealth += stake
                else:
                    wealth -= stake * odds
                if wealth >= enough:
                    break  # rejected whatever the other coins say; betting on could only lose that
            # Rounding must not turn a wealth that just reached the goal into one that just misses it.
            if wealth >= enough:
                log_wealth[e] = max(goal, log_wealth[e] + math.log(wealth) - charges[e])
            else:
                log_wealth[e] += math.log(max(wealth, 1e-300)) - charges[e]
        before = rejected
        while rejected < size and log_wealth[rejected] >= goal:
            rejected += 1
        if rejected > before:
            steps[written, 0] = t
            steps[written, 1] = rejected
            written += 1
        reach = furthest if math.isinf(reach) else max(reach, furthest)
    return rejected, reach, written

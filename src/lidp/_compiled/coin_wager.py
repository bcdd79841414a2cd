"""Compiled loops of the coin wager: shuffle trials, predict each coin, bet on it."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled

_MIN_TRUST = 1e-9  # so that a model that was wrong for long can recover


@compiled()
def shuffle(scores, coins, words, shuffled_scores, shuffled_coins):
    """Fill the last two arrays with the trials of the first two, each in an order that its random word determines.

    The shuffle is that of Fisher and Yates, with bits of splitmix64 from the word.
    """
    trials, canaries = scores.shape
    for t in range(trials):
        state = words[t]
        for k in range(canaries):
            state += np.uint64(0x9E3779B97F4A7C15)
            bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            j = np.int64((bits ^ (bits >> np.uint64(31))) % np.uint64(k + 1))
            shuffled_scores[t, k], shuffled_coins[t, k] = shuffled_scores[t, j], shuffled_coins[t, j]
            shuffled_scores[t, j], shuffled_coins[t, j] = scores[t, k], coins[t, k]


@compiled()
def bin_scores(scores, edges, column):
    """Fill ``column`` with the number of edges that are at most each score. For few edges, counting beats a binary search."""
    for i in range(scores.size):
        below = 0
        for j in range(edges.size):
            below += edges[j] <= scores[i]
        column[i] = below


@compiled()
def predict(features, bins, coins, weights, covariances, counts, blind, pooled, trust, logits):
    """Fill ``logits`` coin by coin; all arguments but ``features``, ``bins`` and ``coins`` are updated after each coin.

    The models are regressions, one for each row of ``weights``, and histograms, one for each row of ``counts``, in this order.

    Predictions are relative to those without a score, so that the share of ones among the coins is not learned: regressions are
    relative to a regression without features (``blind``: its weight and variance), histograms to the counts of all coins
    (``pooled``). By Bayes' rule, this gives the prediction for fair coins.
    """
    regressions, histograms = weights.shape[0], counts.shape[0]
    models = regressions + histograms
    chances = np.empty(models)
    for i in range(features.size):
        u = features[i]
        x = (1.0, u, u * u - 1.0)
        for r in range(regressions):
            w, c = weights[r], covariances[r]
            mean = w[0] * x[0] + w[1] * x[1] + w[2] * x[2]
            v = (
                c[0, 0] * x[0] + c[0, 1] * x[1] + c[0, 2] * x[2],
                c[1, 0] * x[0] + c[1, 1] * x[1] + c[1, 2] * x[2],
                c[2, 0] * x[0] + c[2, 1] * x[1] + c[2, 2] * x[2],
            )
            variance = v[0] * x[0] + v[1] * x[1] + v[2] * x[2]
            # Averaging over the uncertainty of the weights shrinks the prediction towards 1/2.
            chances[r] = 1 / (1 + math.exp((blind[0] - mean) / math.sqrt(1 + math.pi / 8 * variance)))
            # Laplace update of a Bayesian logistic regression.
            p = 1 / (1 + math.exp(-mean))
            h = p * (1 - p)
            gain = (coins[i] - p) / (1 + h * variance)
            shrink = h / (1 + h * variance)
            for a in range(3):
                w[a] += v[a] * gain
                for b in range(3):
                    c[a, b] -= shrink * v[a] * v[b]
        p = 1 / (1 + math.exp(-blind[0]))
        h = p * (1 - p)
        blind[0] += blind[1] * (coins[i] - p) / (1 + h * blind[1])
        blind[1] /= 1 + h * blind[1]
        share = pooled[1] / (pooled[0] + pooled[1])
        for r in range(histograms):
            cell = counts[r, bins[i, r]]
            # The prior of a cell is two coins with the share of ones of all coins so far.
            ones = (cell[1] + 2 * share) * (1 - share)
            zeros = (cell[0] + 2 * (1 - share)) * share
            chances[regressions + r] = ones / (ones + zeros)
            cell[1 if coins[i] else 0] += 1.0
        pooled[1 if coins[i] else 0] += 1.0
        before, chance, after = 0.0, 0.0, 0.0
        for r in range(models):
            before += trust[r]
            chance += trust[r] * chances[r]
            trust[r] *= chances[r] if coins[i] else 1 - chances[r]
            after += trust[r]
        for r in range(models):
            trust[r] = max(trust[r] / after, _MIN_TRUST)
        chance = min(max(chance / before, 1e-9), 1 - 1e-9)
        logits[i] = math.log(chance / (1 - chance))


@compiled()
def wager(
    logits,
    coins,
    epsilons,
    caps,
    charges,
    goal,
    use_in,
    use_out,
    log_wealth,
    reached,
    guesses,
    right,
    rejected,
    reach,
    steps,
):
    """Bet trial by trial at every ε; return (rejected, reach, number of rows in ``steps``).

    Args:
        logits, coins: arrays (trials, canaries).
        epsilons: the tested ε, in increasing order; arrays of shape (E,) below have one item per ε.
        caps: (E,), the largest stake per coin, computed from lower-index trials only.
        charges: (E,), the log-price of those caps.
        goal: the log-wealth at which an ε is rejected.
        use_in, use_out: whether to bet on 1, and on 0.
        log_wealth, guesses, right: (E,), updated. The log-wealth of a rejected ε moves to ``reached`` and is infinite afterwards.
        rejected: the number of ε, from the smallest, that are rejected.
        reach: the largest |logit| of lower-index trials; at ε well beyond it, caps and charges are 0.
        steps: (n, 2); a row (trial, rejected) is written wherever the bound increased.
    """
    trials, canaries = logits.shape
    size = epsilons.size
    strengths = np.empty(canaries)
    chances = np.empty(canaries)
    hits = np.empty(canaries, np.bool_)
    all_odds = np.exp(epsilons)
    written = 0
    open_end = rejected
    for t in range(trials):
        while open_end < size and epsilons[open_end] <= 1.25 * reach:
            open_end += 1
        floor = epsilons[rejected] if rejected < size else math.inf
        active = 0
        furthest = 0.0
        for k in range(canaries):
            logit = logits[t, k]
            if (logit > 0 and not use_in) or (logit < 0 and not use_out):
                continue
            strength = abs(logit)
            furthest = max(furthest, strength)
            if strength > floor:
                strengths[active] = strength
                chances[active] = 1 / (1 + math.exp(-strength))
                hits[active] = coins[t, k] == (logit > 0)
                active += 1
        e = rejected
        while e < open_end and epsilons[e] < furthest:
            if log_wealth[e] < goal:
                epsilon = epsilons[e]
                odds = all_odds[e]
                scale = (1 + odds) / odds
                wealth = 1.0
                # Slightly more than needed, so that rounding cannot turn a reached goal into a missed one. A coin at most doubles
                # the wealth.
                missing = goal - log_wealth[e] + charges[e] + 1e-12
                enough = math.exp(min(missing, 700.0)) if missing < 0.7 * active else math.inf
                for i in range(active):
                    if strengths[i] <= epsilon:
                        continue
                    stake = min((scale * chances[i] - 1) * wealth, caps[e])
                    guesses[e] += 1
                    if hits[i]:
                        right[e] += 1
                        wealth += stake
                        if wealth >= enough:
                            break  # rejected whatever the other coins are; further bets could only lose wealth
                    else:
                        wealth -= stake * odds
                log_wealth[e] += math.log(max(wealth, 1e-300)) - charges[e]
                if log_wealth[e] >= goal:
                    reached[e] = log_wealth[e]
                    log_wealth[e] = math.inf
            e += 1
        for idle in range(e, open_end):
            log_wealth[idle] -= charges[idle]
        before = rejected
        while rejected < size and log_wealth[rejected] >= goal:
            rejected += 1
        if rejected > before:
            steps[written, 0] = t
            steps[written, 1] = rejected
            written += 1
        open_end = max(open_end, rejected)
        reach = furthest if math.isinf(reach) else max(reach, furthest)
    return rejected, reach, written

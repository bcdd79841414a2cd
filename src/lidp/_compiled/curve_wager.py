"""Compiled loops of the curve wager: bet on each coin at several rungs of a privacy curve at once."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled

_LEAST_WEALTH = 1e-300


@compiled(inline="always")
def _bet(wealth, chance, right, odds, caps, rungs):
    """Return the wealth after one coin, on whose likelier side the Kelly stake is placed, rung after rung from the lowest.

    ``chance`` is the probability of that side. A unit at a rung wins 1 if the guess is right and loses ``odds`` = e^rung if not.
    """
    won = wealth  # the wealth if the guess is right
    lost = wealth  # and if it is wrong
    for r in range(rungs):
        stake = chance * lost / odds[r] - (1 - chance) * won
        if stake <= 0:
            break
        if stake <= caps[r]:
            won += stake
            lost -= odds[r] * stake
            break  # the cap does not bind: higher rungs are not worth a stake
        won += caps[r]
        lost -= odds[r] * caps[r]
    return won if right else lost


@compiled()
def mean_log_wealth(chances, right, odds, caps):
    """Return the mean over trials (rows) of the logarithm of the wealth that bets with these caps end with."""
    trials, canaries = chances.shape
    total = 0.0
    for t in range(trials):
        wealth = 1.0
        for k in range(canaries):
            wealth = _bet(wealth, chances[t, k], right[t, k], odds, caps, odds.size)
        total += math.log(max(wealth, _LEAST_WEALTH))
    return total / trials


@compiled()
def wager(
    logits,
    coins,
    odds,
    caps,
    charges,
    goal,
    give_up,
    use_in,
    use_out,
    log_wealth,
    reached,
    guesses,
    right,
    rejected,
    claimed,
    window,
    steps,
):
    """Bet trial by trial against every hypothesis; return (rejected, number of rows in ``steps``).

    Args:
        logits, coins: arrays (trials, canaries).
        odds: (hypotheses, rungs), e^rung, in increasing order.
        caps: (hypotheses, gamblers, rungs), the largest stake per coin.
        charges: (hypotheses, gamblers), the log-price of those caps for a whole trial.
        goal: the logarithm of the mean wealth of the gamblers at which a hypothesis is rejected.
        give_up: a gambler whose log-wealth is below this bets no more, and pays no more.
        use_in, use_out: whether to bet on 1, and on 0.
        log_wealth: (hypotheses, gamblers), updated.
        reached: (hypotheses,), the log of the mean wealth at the end of each trial; of a rejected hypothesis, when it was rejected.
        guesses, right: two numbers in an array, updated: the coins on whose sides bets were placed, and how many were right.
        rejected: the number of hypotheses, from the first, that are rejected.
        claimed, window: the position of the claim, and how many hypotheses beyond it, or beyond the rejected ones if these are
            more, are bet against; those further away wait, at no charge, until the rejected ones come nearer.
        steps: (n, 2); a row (trial, rejected) is written wherever that number increased.
    """
    trials, canaries = logits.shape
    hypotheses, gamblers, rungs = caps.shape
    chances = np.empty(canaries)
    hits = np.empty(canaries, np.bool_)
    written = 0
    for t in range(trials):
        active = 0
        for k in range(canaries):
            logit = logits[t, k]
            if logit == 0 or (logit > 0 and not use_in) or (logit < 0 and not use_out):
                continue
            chances[active] = 1 / (1 + math.exp(-abs(logit)))
            hits[active] = coins[t, k] == (logit > 0)
            guesses[0] += 1
            right[0] += hits[active]
            active += 1
        for h in range(rejected, min(max(claimed + 1, rejected) + window, hypotheses)):
            if reached[h] >= goal:
                continue
            # A gambler who alone brings the mean to the goal stops betting in this trial; the caps of all coins are charged anyway.
            enough = goal + math.log(gamblers) + 1e-9
            largest = -math.inf
            for g in range(gamblers):
                if log_wealth[h, g] >= give_up:
                    missing = enough - log_wealth[h, g] + charges[h, g]
                    target = math.exp(missing) if missing < 700 else math.inf
                    wealth = 1.0
                    for i in range(active):
                        wealth = _bet(wealth, chances[i], hits[i], odds[h], caps[h, g], rungs)
                        if wealth >= target:
                            break
                    log_wealth[h, g] += math.log(max(wealth, _LEAST_WEALTH)) - charges[h, g]
                largest = max(largest, log_wealth[h, g])
            mean = 0.0
            for g in range(gamblers):
                mean += math.exp(log_wealth[h, g] - largest)
            reached[h] = largest + math.log(mean / gamblers)
        before = rejected
        while rejected < hypotheses and reached[rejected] >= goal:
            rejected += 1
        if rejected > before:
            steps[written, 0] = t
            steps[written, 1] = rejected
            written += 1
    return rejected, written

"""Compiled loops of the curve wager: bet on each coin at several rungs of a privacy curve at once."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math

import numpy as np

from lidp._compiled.compiler import compiled

_LEAST_WEALTH = 1e-300
_LARGEST_WEALTH = 1e200
_LARGEST_ODDS = 1e300


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
            if wealth > _LARGEST_WEALTH:
                break  # more than any goal; further coins might overflow
        total += math.log(max(wealth, _LEAST_WEALTH))
    return total / trials


@compiled()
def _raise_stakes(won, lost, odds, inverse_odds, caps, chance, size):
    """Add the stakes at one rung, one for each bettor, to the wealth if the guess is right; take what they cost from that if not.

    Where the stake at the rung below was smaller than its cap, that at this rung is 0 by itself. Without branches, several
    gamblers are computed by one instruction.
    """
    other = 1 - chance
    for j in range(size):
        stake = chance * lost[j] * inverse_odds[j] - other * won[j]
        stake = stake if stake < caps[j] else caps[j]
        stake = stake if stake > 0.0 else 0.0
        won[j] += stake
        lost[j] -= odds[j] * stake


@compiled()
def _keep(wealth, reached, targets, size):
    """Set each wealth that is below its target to what was reached."""
    for j in range(size):
        wealth[j] = reached[j] if wealth[j] < targets[j] else wealth[j]


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
            Of hypotheses other than the claim it is kept from the goal on only.
        guesses, right: two numbers in an array, updated: the coins on whose sides bets were placed, and how many were right.
        rejected: the number of hypotheses, from the first, that are rejected.
        claimed, window: the position of the claim, and how many hypotheses beyond it, or beyond the rejected ones if these are
            more, are bet against; those further away wait, at no charge, until the rejected ones come nearer.
        steps: (n, 2); a row (trial, rejected) is written wherever that number increased.
    """
    trials, canaries = logits.shape
    hypotheses, gamblers, rungs = caps.shape
    chances = np.empty(canaries)
    unlikeliness = np.empty(canaries)  # e^-|logit|
    hits = np.empty(canaries, np.bool_)
    # Those who bet: gambler g against hypothesis h, side by side.
    size = 0
    bettors = np.empty((hypotheses * gamblers, 2), np.int64)
    bettor_odds = np.empty((rungs, hypotheses * gamblers))
    inverse_odds = np.empty((rungs, hypotheses * gamblers))
    bettor_caps = np.empty((rungs, hypotheses * gamblers))
    least_odds = np.empty(rungs)
    wealth, won, lost, targets = (
        np.empty(hypotheses * gamblers),
        np.empty(hypotheses * gamblers),
        np.empty(hypotheses * gamblers),
        np.empty(hypotheses * gamblers),
    )
    changed = True
    written = 0
    # A gambler who alone brings the mean to the goal stops betting in this trial; the caps of all coins are charged anyway.
    enough = goal + math.log(gamblers) + 1e-9
    for t in range(trials):
        active = 0
        for k in range(canaries):
            logit = logits[t, k]
            if logit == 0 or (logit > 0 and not use_in) or (logit < 0 and not use_out):
                continue
            unlikeliness[active] = math.exp(-abs(logit))
            chances[active] = 1 / (1 + unlikeliness[active])
            hits[active] = coins[t, k] == (logit > 0)
            guesses[0] += 1
            right[0] += hits[active]
            active += 1
        end = min(max(claimed + 1, rejected) + window, hypotheses)
        if changed:
            changed = False
            size = 0
            least_odds[:] = math.inf
            for h in range(rejected, end):
                if reached[h] >= goal:
                    continue
                for g in range(gamblers):
                    if log_wealth[h, g] >= give_up:
                        bettors[size, 0], bettors[size, 1] = h, g
                        for r in range(rungs):
                            # At odds near the largest float nothing is staked: 0 times infinity is not a number.
                            usable = odds[h, r] < _LARGEST_ODDS
                            bettor_odds[r, size] = odds[h, r] if usable else _LARGEST_ODDS
                            inverse_odds[r, size] = 1 / bettor_odds[r, size]
                            bettor_caps[r, size] = caps[h, g, r] if usable else 0.0
                            least_odds[r] = min(least_odds[r], odds[h, r])
                        size += 1
        near = False
        for j in range(size):
            h, g = bettors[j]
            wealth[j] = 1.0
            missing = enough - log_wealth[h, g] + charges[h, g]
            # A coin at most doubles the wealth.
            targets[j] = math.exp(missing) if missing < min(0.7 * active, 700.0) else math.inf
            near = near or targets[j] < math.inf
        for i in range(active):
            won[:size] = wealth[:size]
            lost[:size] = wealth[:size]
            for r in range(rungs):
                if unlikeliness[i] * least_odds[r] >= 1:
                    break  # nothing is staked at odds above those of the prediction
                _raise_stakes(won, lost, bettor_odds[r], inverse_odds[r], bettor_caps[r], chances[i], size)
            if near:
                _keep(wealth, won if hits[i] else lost, targets, size)
            elif hits[i]:
                wealth[:size] = won[:size]
            else:
                wealth[:size] = lost[:size]
        for j in range(size):
            h, g = bettors[j]
            log_wealth[h, g] += math.log(max(wealth[j], _LEAST_WEALTH)) - charges[h, g]
            changed = changed or log_wealth[h, g] < give_up
        for h in range(rejected, end):
            if reached[h] >= goal:
                continue
            largest = -math.inf
            for g in range(gamblers):
                largest = max(largest, log_wealth[h, g])
            if largest < goal and h != claimed:
                continue  # so is the mean
            mean = 0.0
            for g in range(gamblers):
                mean += math.exp(log_wealth[h, g] - largest)
            reached[h] = largest + math.log(mean / gamblers)
            changed = changed or reached[h] >= goal
        before = rejected
        while rejected < hypotheses and reached[rejected] >= goal:
            rejected += 1
        if rejected > before:
            changed = True
            steps[written, 0] = t
            steps[written, 1] = rejected
            written += 1
    return rejected, written

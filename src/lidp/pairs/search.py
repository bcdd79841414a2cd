"""Choosing among neighbouring data sets: a tournament in which the half that leaks least is dropped, round by round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.boosting import default_classifier
from lidp.pairs.features import short
from lidp.pairs.running import LARGEST_BLOCK, PairRunner

_MOST = 256
"""Pairs that are tried at most."""
_SEEDS = 1 << 20  # sets the streams of the search apart from those of the audit


def choose_pair(
    target: PairTarget, pairs: Iterable[tuple[Any, Any]], claim: Claim, budget: int, seed: int, *, bits: bool = False
) -> tuple[PairTarget, int]:
    """The target with the most promising of some pairs of data sets, and the runs that were spent on finding it.

    Guarantee: the choice uses runs of its own, so a bound on fresh runs of the chosen pair needs no correction.
    """
    found = []
    for pair in islice(pairs, _MOST):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidArgument(f"pairs must give tuples (d0, d1) of neighbouring data sets, got {short(pair)}")
        found.append(replace(target, d0=pair[0], d1=pair[1]))
    if not found:
        raise InvalidArgument("pairs is empty; it must give at least one pair of neighbouring data sets")
    runners = [PairRunner(one, seed + _SEEDS + k, bits=bits) for k, one in enumerate(found)]
    alive, trouble = [], None
    for k, runner in enumerate(runners):
        try:
            runner.check(claim)
            alive.append(k)
        except (AuditFailed, InvalidArgument) as error:
            trouble = trouble or error
    if trouble is not None and not alive:
        raise trouble
    spent, round_number = 0, 0
    while len(alive) > 1:
        rounds = int(np.ceil(np.log2(len(alive))))
        size = min((budget - spent) // (rounds * len(alive)), LARGEST_BLOCK)
        if size < 1:
            break
        growth = {k: _growth(runners[k], round_number, size, claim) for k in alive}
        spent += size * len(alive)
        # Ties keep the order in which pairs were given.
        alive = sorted(sorted(alive, key=lambda k: -growth[k])[: (len(alive) + 1) // 2])
        round_number += 1
    return found[alive[0]], spent


def _growth(runner: PairRunner, number: int, size: int, claim: Claim) -> float:
    """What a wager against the claim would have grown by on a block, in logarithms."""
    block = runner.run(number, size)
    if not len(block.outputs):
        return -np.inf
    coins = block.coins[~block.failed]
    classifier = default_classifier(block.outputs)
    half = len(coins) // 2
    first = classifier.predict_and_learn(block.outputs.part(0, half), coins[:half]) if half else np.zeros(0)
    logits = np.concatenate([first, classifier.predict_and_learn(block.outputs.part(half, len(coins)), coins[half:])])
    odds = np.exp(claim.epsilon)
    stake = np.clip((1 + odds) / odds / (1 + np.exp(-np.abs(logits))) - 1, 0, None)
    right = coins == (logits > 0)
    # Even a wager that the claim forbids to win says which pair is easier to tell apart: a little of the plain likelihood.
    plain = np.where(right, 1, -1) * np.abs(logits)
    return float(np.log(np.maximum(1 + np.where(right, stake, -stake * odds), 1e-3)).sum() + 1e-3 * plain.sum())

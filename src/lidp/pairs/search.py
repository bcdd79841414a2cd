"""``PairSearch``: choose among pairs of neighbouring data sets by a tournament that drops the least leaky half per round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.boosting import default_classifier
from lidp.pairs.outputs import short
from lidp.pairs.runner import PairRunner
from lidp.streams import draw_coins
from lidp.target import Prepared

_MOST_PAIRS = 256
_MOST_RUNS_PER_ROUND = 65_536
_SEARCH_SEEDS = 1 << 20  # sets the streams of the search apart from those of the audit
_CHOSEN = "pair"


@dataclass(frozen=True)
class PairSearch:
    """The preparation step of an audit that chooses its data sets.

    Guarantee: the choice uses runs of its own, so a bound on fresh runs of the chosen pair needs no correction.

    Attributes:
        candidates: the target with each of the pairs.
        budget: how many runs the search may take.
        bits: whether to look at the bit patterns of floats.
    """

    candidates: tuple[PairTarget, ...]
    budget: int
    bits: bool = False

    @classmethod
    def among(cls, target: PairTarget, pairs: Iterable[tuple[Any, Any]], budget: int, *, bits: bool) -> PairSearch:
        """Return the search among some pairs; at most 256 of them are tried."""
        candidates = []
        for pair in islice(pairs, _MOST_PAIRS):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InvalidArgument(f"pairs must give tuples (d0, d1) of neighbouring data sets, got {short(pair)}")
            candidates.append(replace(target, d0=pair[0], d1=pair[1]))
        if not candidates:
            raise InvalidArgument("pairs is empty; it must give at least one pair of neighbouring data sets")
        return cls(tuple(candidates), budget, bits)

    def prepare(self, claim: Claim, seed: int) -> Prepared:
        """Choose the most promising pair; return its number, and how many runs that took."""
        runners = [PairRunner(one, seed + _SEARCH_SEEDS + k, bits=self.bits) for k, one in enumerate(self.candidates)]
        left = _usable(runners, claim)
        spent, round_number = 0, 0
        while len(left) > 1:
            rounds = int(np.ceil(np.log2(len(left))))
            size = min((self.budget - spent) // (rounds * len(left)), _MOST_RUNS_PER_ROUND)
            if size < 1:
                break
            growth = {k: _growth(runners[k], round_number, size, claim) for k in left}
            spent += size * len(left)
            # Ties keep the order in which pairs were given.
            left = sorted(sorted(left, key=lambda k: -growth[k])[: (len(left) + 1) // 2])
            round_number += 1
        return Prepared({_CHOSEN: [float(left[0])]}, spent)

    def chosen(self, prepared: Mapping[str, NDArray[Any]]) -> PairTarget:
        """Return the target with the pair that was chosen."""
        return self.candidates[int(prepared[_CHOSEN][0])]


def _usable(runners: list[PairRunner], claim: Claim) -> list[int]:
    """Return which pairs can be audited at all; raise the first reason if none can."""
    usable, trouble = [], None
    for k, runner in enumerate(runners):
        try:
            runner.check(claim)
            usable.append(k)
        except (AuditFailed, InvalidArgument) as error:
            trouble = trouble or error
    if trouble is not None and not usable:
        raise trouble
    return usable


def _growth(runner: PairRunner, number: int, size: int, claim: Claim) -> float:
    """Return by how much a wager against the claim would have grown on a block, as a logarithm."""
    flips = draw_coins(runner.seed, trial=number, size=size).astype(np.bool_)
    block = runner.run(number, flips)
    outputs = block.outputs.look()
    if not len(outputs):
        return -np.inf
    coins = flips[~block.failed]
    classifier = default_classifier(outputs)
    half = len(coins) // 2
    first = classifier.predict_and_learn(outputs.part(0, half), coins[:half]) if half else np.zeros(0)
    logits = np.concatenate([first, classifier.predict_and_learn(outputs.part(half, len(coins)), coins[half:])])
    odds = np.exp(claim.epsilon)
    stake = np.clip((1 + odds) / odds / (1 + np.exp(-np.abs(logits))) - 1, 0, None)
    right = coins == (logits > 0)
    # Even a wager that cannot win against the claim says which pair is easier to tell apart: add a little plain likelihood.
    plain = np.where(right, 1, -1) * np.abs(logits)
    return float(np.log(np.maximum(1 + np.where(right, stake, -stake * odds), 1e-3)).sum() + 1e-3 * plain.sum())

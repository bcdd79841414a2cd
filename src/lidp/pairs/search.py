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
from lidp.pairs.boosting import default_classifier
from lidp.pairs.outputs import short
from lidp.pairs.runner import PairRunner
from lidp.streams import draw_coins
from lidp.target import PairTarget, Prepared

_MOST_PAIRS = 256
_MOST_RUNS_PER_ROUND = 65_536
_SEARCH_SEEDS = 1 << 20  # separates the random streams of the search from those of the audit
_CHOSEN = "pair"


@dataclass(frozen=True)
class PairSearch:
    """The preparation step of an audit that chooses its data sets.

    Guarantee: the choice uses separate runs, so a bound on fresh runs of the chosen pair needs no correction.

    Attributes:
        candidates: one target per pair.
        budget: the number of runs that the search may use.
        bits: whether to use the bit patterns of floats.
    """

    candidates: tuple[PairTarget, ...]
    budget: int
    bits: bool = False

    @classmethod
    def among(cls, target: PairTarget, pairs: Iterable[tuple[Any, Any]], budget: int, *, bits: bool) -> PairSearch:
        """Return a search among the first 256 of ``pairs``."""
        candidates = []
        for pair in islice(pairs, _MOST_PAIRS):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InvalidArgument(f"pairs must give tuples (d0, d1) of neighbouring data sets, got {short(pair)}")
            candidates.append(replace(target, d0=pair[0], d1=pair[1]))
        if not candidates:
            raise InvalidArgument("pairs is empty; it must give at least one pair of neighbouring data sets")
        return cls(tuple(candidates), budget, bits)

    def prepare(self, claim: Claim, seed: int) -> Prepared:
        """Return the number of the most promising pair, and the number of runs used."""
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
            # Break ties by the order in which pairs were given.
            left = sorted(sorted(left, key=lambda k: -growth[k])[: (len(left) + 1) // 2])
            round_number += 1
        return Prepared({_CHOSEN: [float(left[0])]}, spent)

    def chosen(self, prepared: Mapping[str, NDArray[Any]]) -> PairTarget:
        """Return the target with the pair that was chosen."""
        return self.candidates[int(prepared[_CHOSEN][0])]


def _usable(runners: list[PairRunner], claim: Claim) -> list[int]:
    """Return the indices of the pairs that can be audited; raise the first error if there are none."""
    usable, first_error = [], None
    for k, runner in enumerate(runners):
        try:
            runner.check(claim)
            usable.append(k)
        except (AuditFailed, InvalidArgument) as error:
            first_error = first_error or error
    if first_error is not None and not usable:
        raise first_error
    return usable


def _growth(runner: PairRunner, number: int, size: int, claim: Claim) -> float:
    """Return the logarithm of the growth of a wager against the claim on a block."""
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
    # Add a little likelihood, which still ranks the pairs where no wager wins against the claim.
    plain = np.where(right, 1, -1) * np.abs(logits)
    return float(np.log(np.maximum(1 + np.where(right, stake, -stake * odds), 1e-3)).sum() + 1e-3 * plain.sum())

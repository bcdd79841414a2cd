"""Coin wager: an anytime-valid, finite-sample bound for coin-flip scores, one step per canary.

Each canary was inserted by a fair coin. Before a coin S is revealed, the output and what was learned so far give a
prediction a of P(S = 1). Under (ε, 0)-DP the odds of S given the output lie within e^±ε, so that a gambler who stakes an
amount s of a wealth G on "in" and gets s when right, loses s·e^ε when wrong, cannot gain on average; likewise for "out".
The Kelly stake is s = (a/q - 1)·G with q = e^ε/(1 + e^ε), where a > q.

For δ > 0 the K coins of one output are not K independent tests: an output may reveal everything with probability δ. If
no stake on coin k of trial t exceeds an amount γ_tk that was fixed before trial t, the expected gain of a step is at most
δγ_tk (half of that if only one kind of guess can happen), so that Π_t G_t / (1 + δ Σ_k γ_tk) is a supermartingale over
trials. The probability that it ever reaches 1/β is at most β. Coins on which nothing was staked cost as much as the others.

This holds for coins in any order that does not depend on them. The canaries of a trial may come in an order that does (all
inserted ones first, say). So each trial is wagered on in a random order, unless scores use coins of lower-index canaries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lidp import checks
from lidp.arrays import Bools, Floats
from lidp.claim import Direction
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, InvalidScores, MethodNotApplicable
from lidp.rounding import at_least
from lidp.scores import Scores
from lidp.stats.betting import EpsilonGrid, check_grid, describe_wealth
from lidp.stats.citations import STEINKE_2023, WAUDBY_SMITH_2024
from lidp.stats.coin_predictor import kernels
from lidp.stats.method import AnytimeMethod, check_direction, check_probabilities
from lidp.stats.predicted_coins import PredictedCoins


@dataclass(frozen=True)
class CoinWager(AnytimeMethod):
    """Wager on every coin, with predictions that are learned from the coins before it.

    Guarantee: finite-sample and anytime-valid over trials: with probability 1 - β the bound lies below the true ε after
    *every* trial. Holds for one run with many canaries, many runs with few, duplicate or adaptively chosen canaries; assumes
    that the coins are fair, independent, and unknown to the mechanism except through which canaries were inserted.

    ``cap`` is the largest amount staked on a coin, in units of e^-ε (γ = cap·e^-ε); None chooses it from δ and the number
    of canaries. It matters for strength only. ``resolution`` and ``largest`` describe the grid of ε. With ``log_odds``, scores
    are predictions already: the log-odds that a coin is 1, computed from outputs and lower-index coins only.
    """

    direction: Direction = Direction.BOTH
    cap: float | None = None
    resolution: float = 0.01
    largest: float = 10.0
    log_odds: bool = False

    name: ClassVar[str] = "coin-wager"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = "Stakes on every coin, by predictions that are learned from the coins before it."
    works = (STEINKE_2023, WAUDBY_SMITH_2024)
    counts = ("guesses", "right")

    def __post_init__(self) -> None:
        check_direction(self)
        check_grid(self.resolution, self.largest)
        if not isinstance(self.log_odds, bool):
            raise InvalidArgument(f"log_odds must be True or False, got {self.log_odds!r}")
        if self.cap is not None:
            object.__setattr__(self, "cap", checks.positive(cap=self.cap))

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if not design.has_coins:
            raise MethodNotApplicable(
                "these scores have no coins; use a method for inserted and held-out arms, such as LiftedBetting"
            )

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        against = f"ε = {at_least(bound.epsilon)}"
        return {
            "guesses": f"coins on which something was staked against {against}",
            "right": "guesses that were right",
            "wealth": describe_wealth(bound),
        }

    def begin(self, *, delta: float, failure_probability: float) -> CoinWagerRun:
        """Return a run that takes trials as they finish."""
        delta, failure_probability = check_probabilities(delta, failure_probability)
        return CoinWagerRun(self, delta, failure_probability)

    def cap_for(self, canaries: int, delta: float, *, first: bool) -> float:
        """Return the cap of a trial in units of e^-ε, before anything of that trial is known.

        Many coins in one trial let its wealth grow beyond 1, so that larger stakes are useful, above all in the first trial,
        which may be the only one. A large δ makes every unit expensive, and most useful stakes are well below e^-ε.
        """
        if self.cap is not None:
            return self.cap
        growth = min(max(canaries / (256 if first else 1024), 1.0), 4.0)
        thrift = 1.0 if first else min(max(math.sqrt(1e-4 / delta), 0.3), 1.0) if delta else 1.0
        return growth * thrift


class CoinWagerRun:
    """The state of the wager. Trials given one by one or all at once give the same bound, bit for bit."""

    def __init__(self, method: CoinWager, delta: float, failure_probability: float) -> None:
        self.method = method
        self.delta = delta
        self.failure_probability = failure_probability
        self._epsilons = EpsilonGrid(method.resolution, method.largest).values
        self._log_wealth = np.zeros(len(self._epsilons))
        self._reached = np.zeros(len(self._epsilons))
        self._guesses = np.zeros(len(self._epsilons), dtype=np.int64)
        self._right = np.zeros(len(self._epsilons), dtype=np.int64)
        self._rejected = 0
        self._reach = math.inf
        self._wagered = 0
        self._path: list[tuple[int, float]] = []
        self._coins = PredictedCoins(log_odds=method.log_odds)

    @property
    def epsilon(self) -> float:
        """Return the bound so far."""
        return float(self._epsilons[self._rejected - 1]) if self._rejected else 0.0

    def update(self, scores: Scores) -> float:
        """Wager on further trials, in the order of their indices, and return the bound so far."""
        logits, coins = self._coins.add(scores)
        if len(logits):
            self._wager(logits, coins)
        return self.epsilon

    def _wager(self, logits: Floats, coins: Bools) -> None:
        canaries = coins.shape[1]
        before = self._coins.received - len(logits)
        if not self._wagered:
            self._wager_with(self._caps(canaries, first=True), logits[:1], coins[:1], before)
            logits, coins, before = logits[1:], coins[1:], before + 1
        if len(logits):
            self._wager_with(self._caps(canaries, first=False), logits, coins, before)

    def _caps(self, canaries: int, *, first: bool) -> tuple[Floats, Floats]:
        """Return γ for each ε, and the logarithm of what a trial with these caps costs."""
        caps = self.method.cap_for(canaries, self.delta, first=first) * np.exp(-self._epsilons)
        kinds = len(self.method.direction.parts) / 2
        return caps, np.log1p(kinds * self.delta * canaries * caps)

    def _wager_with(self, caps: tuple[Floats, Floats], logits: Floats, coins: Bools, trials_before: int) -> None:
        steps = np.empty((len(logits), 2), dtype=np.int64)
        parts = self.method.direction.parts
        self._rejected, self._reach, written = kernels().wager(
            logits,
            coins,
            self._epsilons,
            # With δ = 0 stakes need no cap.
            caps[0] if self.delta else np.full_like(caps[0], np.inf),
            caps[1],
            math.log(1 / self.failure_probability),
            Direction.FORWARD in parts,
            Direction.BACKWARD in parts,
            self._log_wealth,
            self._reached,
            self._guesses,
            self._right,
            self._rejected,
            self._reach,
            steps,
        )
        for trial, rejected in steps[:written]:
            self._path.append((trials_before + int(trial) + 1, float(self._epsilons[rejected - 1])))
        self._wagered += len(logits)

    def bound(self) -> EpsilonBound:
        """Return the bound on all trials so far, with its path."""
        if self._coins.last is None:
            raise InvalidScores("no trial was given yet; call update first")
        at = max(self._rejected - 1, 0)
        guesses, right = int(self._guesses[at]), int(self._right[at])
        return self.method.report(
            self._coins.last,
            self.epsilon,
            trials=self._coins.received,
            delta=self.delta,
            failure_probability=self.failure_probability,
            rates={
                "guesses": guesses,
                "right": right,
                "wealth": math.exp(min(self._reached[at] if self._rejected else self._log_wealth[at], 700.0)),
            },
            path=tuple(self._path),
            assumptions=("coins are fair, independent and hidden from the mechanism",),
        )

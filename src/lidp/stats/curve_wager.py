"""Curve wager: an anytime-valid, finite-sample test of a whole privacy curve on coin-flip scores.

The coin wager tests one point (ε, δ) of the curve that an accountant claims. The curve wager bets at several points at once.
At a *rung* e, a stake s on "in" wins s if the coin is 1 and loses s·e^e if it is 0. A cap γ on the stakes of each rung is
fixed before the trial. The stake is a function of the output with values between 0 and γ; slicing it into indicator functions
of sets of outputs shows that its mean gain is at most ½γ·h⁺(e), and ½γ·h⁻(e) for "out", under every mechanism with the
claimed curve. So for K coins of one output, whatever their dependence, the mean of the wealth G after a trial is at most 1 +
½K·Σ γ_e·(h⁺(e) + h⁻(e)), and the product of G over this charge is a nonnegative supermartingale over trials. All K coins are
charged in every trial, including those on which nothing was staked.

Several gamblers, each with caps for another suspected amount of noise, bet side by side; the mean of their wealths is tested.
Stakes are Kelly's for the predicted probability of each coin: from the lowest rung upwards, each is used up to its cap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.claim import Direction
from lidp.curves import PrivacyCurve
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.errors import InvalidArgument, InvalidScores, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bet_sizes import gambler_caps, kernels, log_charge
from lidp.stats.citations import DONG_2022, STEINKE_2023, WAUDBY_SMITH_2024
from lidp.stats.claimed_curve import check_neighbours, epsilon_after, noise_after
from lidp.stats.curve_family import CurveFamily, family_of
from lidp.stats.method import AnytimeMethod, check_direction, check_probabilities
from lidp.stats.predicted_coins import PredictedCoins

_GIVE_UP = -8.0  # log-wealth below which a gambler bets no more: nothing to win back within any reasonable budget
_WINDOW = 10  # hypotheses beyond the claim, or beyond the last rejected one, that are bet against


@dataclass(frozen=True)
class CurveWager(AnytimeMethod):
    """Wager on every coin against a whole privacy curve, with predictions that are learned from the coins before it.

    Guarantee: finite-sample and anytime-valid over trials: a mechanism whose privacy curve is the claimed one or a smaller
    one is refuted with probability at most β, at whatever trial the audit stops, and whatever the dependence between the
    canaries of a trial. The bound on the noise, and the ε that the accountant gives for it, hold with the same β, not with a
    further one. Assumes that the coins are fair, independent, and unknown to the mechanism except through which canaries were
    inserted.

    With ``canary_by_canary``, every coin counts as a trial of its own, so that one run is enough. This tests a narrower
    hypothesis: that the outputs about different canaries are independent, as in DP-SGD with Poisson sampling and orthogonal
    gradient canaries. A mechanism that has the curve but not this independence may be refuted. With ``log_odds``, scores are
    predictions already.
    """

    curve: PrivacyCurve
    direction: Direction = Direction.BOTH
    canary_by_canary: bool = False
    log_odds: bool = False

    name: ClassVar[str] = "curve-wager"
    guarantee: ClassVar[Guarantee] = Guarantee.FINITE_SAMPLE
    summary = (
        "Stakes on every coin at several points of the claimed privacy curve at once, by predictions that are learned."
    )
    works = (DONG_2022, STEINKE_2023, WAUDBY_SMITH_2024)
    needs_curve: ClassVar[bool] = True
    counts = ("guesses", "right")

    def __post_init__(self) -> None:
        check_direction(self)
        if not isinstance(self.curve, PrivacyCurve):
            raise InvalidArgument(f"curve must be a PrivacyCurve, such as GaussianCurve(mu=0.5), got {self.curve!r}")
        for name in ("canary_by_canary", "log_odds"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} must be True or False, got {getattr(self, name)!r}")

    @property
    def assumes_independent_canaries(self) -> bool:
        return self.canary_by_canary

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.CURVE_BY_CANARY if self.canary_by_canary else Hypothesis.CURVE

    def check(self, design: Design, *, sequential: bool = False) -> None:
        if not design.has_coins:
            raise MethodNotApplicable(
                "these scores have no coins; use a method for inserted and held-out arms, such as LiftedBetting"
            )
        check_neighbours(self.curve, design)
        if self.canary_by_canary and sequential:
            raise MethodNotApplicable(
                "canary_by_canary needs scores that each use the output about one canary alone; these use coins of other canaries"
            )

    def describe_rates(self, bound: EpsilonBound) -> dict[str, str]:
        return {
            "guesses": "coins on which a side was taken",
            "right": "guesses that were right",
            "wealth": "mean wealth of the gamblers who bet against the claimed curve, from 1 at the start",
        }

    def begin(self, *, delta: float, failure_probability: float) -> CurveWagerRun:
        """Return a run that takes trials as they finish."""
        delta, failure_probability = check_probabilities(delta, failure_probability)
        return CurveWagerRun(self, delta, failure_probability)


class CurveWagerRun:
    """The state of the wager. Trials given one by one or all at once give the same bound, bit for bit."""

    def __init__(self, method: CurveWager, delta: float, failure_probability: float) -> None:
        self.method = method
        self.delta = delta
        self.failure_probability = failure_probability
        self._family: CurveFamily = family_of(method.curve, delta)
        self._coins = PredictedCoins(
            log_odds=method.log_odds, one_by_one=method.canary_by_canary, expected=method.curve.scale
        )
        self._guesses = np.zeros(1, dtype=np.int64)
        self._right = np.zeros(1, dtype=np.int64)
        self._rejected = 0
        self._path: list[tuple[int, float]] = []
        self._fell_at: int | None = None
        self._bets: Any = None

    @property
    def epsilon(self) -> float:
        """Return the bound so far."""
        return epsilon_after(self._family, self._rejected)

    @property
    def effective_noise(self) -> float | None:
        """The noise that the mechanism has at most, in units of the claimed noise; None if no amount is excluded yet."""
        return noise_after(self._family, self._rejected)

    def update(self, scores: Scores) -> float:
        """Wager on further trials, in the order of their indices, and return the bound so far."""
        self.method.check(scores.design, sequential=scores.sequential)
        logits, coins = self._coins.add(scores)
        if len(logits):
            self._wager(logits, coins, scores.canaries if self.method.canary_by_canary else 1)
        return self.epsilon

    def _wager(self, logits: Floats, coins: Bools, rows_per_trial: int) -> None:
        """Wager on rows of coins, the last ones of all that were received."""
        rows_before = self._coins.received * rows_per_trial - len(logits)
        if self._bets is None:
            self._start(coins.shape[1])
            # The first trial may be the only one: bet against every hypothesis there.
            self._wager_rows(logits[:1], coins[:1], rows_before, rows_per_trial, len(self._family))
            logits, coins, rows_before = logits[1:], coins[1:], rows_before + 1
        if len(logits):
            self._wager_rows(logits, coins, rows_before, rows_per_trial, _WINDOW)

    def _wager_rows(self, logits: Floats, coins: Bools, rows_before: int, rows_per_trial: int, window: int) -> None:
        odds, caps, charges = self._bets
        steps = np.empty((len(logits), 2), dtype=np.int64)
        parts = self.method.direction.parts
        self._rejected, written = kernels().wager(
            logits,
            coins,
            odds,
            caps,
            charges,
            math.log(1 / self.failure_probability),
            _GIVE_UP,
            Direction.FORWARD in parts,
            Direction.BACKWARD in parts,
            self._log_wealth,
            self._reached,
            self._guesses,
            self._right,
            self._rejected,
            self._family.claimed,
            window,
            steps,
        )
        for row, rejected in steps[:written]:
            seen = (rows_before + int(row)) // rows_per_trial + 1
            if self._path and self._path[-1][0] == seen:
                self._path.pop()
            self._path.append((seen, float(self._family.epsilons[rejected - 1])))
            if self._fell_at is None and rejected > self._family.claimed:
                self._fell_at = seen

    def _start(self, canaries: int) -> None:
        family, parts = self._family, self.method.direction.parts
        caps = gambler_caps(family, canaries)
        prices = (Direction.FORWARD in parts) * family.forward + (Direction.BACKWARD in parts) * family.backward
        with np.errstate(over="ignore"):  # nothing is worth betting at infinite odds
            odds = np.exp(family.rungs)
        self._bets = odds, caps, log_charge(caps, prices[:, None, :], canaries)
        self._log_wealth = np.zeros(caps.shape[:2])
        self._reached = np.zeros(len(family))

    def bound(self) -> EpsilonBound:
        """Return the bound on all trials so far, with its path."""
        if self._coins.last is None:
            raise InvalidScores("no trial was given yet; call update first")
        wealth = self._reached[self._family.claimed] if self._bets is not None else 0.0
        assumptions = ["coins are fair, independent and hidden from the mechanism"]
        if self.method.canary_by_canary:
            assumptions.append("the output about each canary is independent of the others, and its score uses nothing else")
        return self.method.report(
            self._coins.last,
            self.epsilon,
            trials=self._coins.received,
            delta=self.delta,
            failure_probability=self.failure_probability,
            rates={
                "guesses": int(self._guesses[0]),
                "right": int(self._right[0]),
                "wealth": math.exp(min(wealth, 700.0)),
            },
            path=tuple(self._path),
            assumptions=tuple(assumptions),
            hypothesis=self.method.hypothesis,
            curve=self.method.curve,
            effective_noise=self.effective_noise,
            fell_at=self._fell_at,
        )

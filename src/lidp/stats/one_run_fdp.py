"""One run against a whole privacy curve (Mahloujifar, Melis, Chaudhuri 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lidp import checks
from lidp.curves import PrivacyCurve
from lidp.curves.gaussian import gaussian_epsilon
from lidp.designs import Design
from lidp.epsilon_bound import Guarantee, Hypothesis
from lidp.errors import MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.citations import MAHLOUJIFAR_2024
from lidp.stats.claimed_curve import check_curve, check_neighbours, checked_family, epsilon_after, noise_after
from lidp.stats.one_run import GuessCounting, Guesses, Outcome, last_rejected
from lidp.stats.planned_guesses import PlannedGuesses
from lidp.stats.storable import ADDED_LATER


@dataclass(frozen=True)
class OneRunFDP(GuessCounting):
    """Rejects privacy curves by the number of right guesses: the claimed ``curve``, or Gaussian ones if none is given.

    Guarantee: with a ``curve``, finite-sample, for fair, independent coins and a number of guesses and of runs that are fixed
    beforehand: a mechanism whose privacy curve is the claimed one or a smaller one is refuted with probability at most β, whatever
    the dependence between canaries. The bounds on its noise, and on the ε that the accountant gives for this noise, hold with the
    same β. Without a curve, conditional: μ-GDP is rejected for growing μ, and the last μ is converted to ε at δ, which is
    finite-sample if the mechanism's privacy curve is that of some Gaussian mechanism; one with another curve may be (ε, δ)-DP at
    the reported ε.

    ``PlannedGuesses()`` as ``threshold`` guesses on the fraction of coins that is best for the curve and the number of coins.
    """

    curve: PrivacyCurve | None = field(default=None, metadata=ADDED_LATER)

    name: ClassVar[str] = "one-run-fdp"
    guarantee: ClassVar[Guarantee] = Guarantee.CONDITIONAL
    summary = "The number of right guesses about coins, against the most that a privacy curve makes likely."
    works = (MAHLOUJIFAR_2024,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_curve(self.curve)
        if self.curve is not None:
            object.__setattr__(self, "guarantee", Guarantee.FINITE_SAMPLE)

    @property
    def hypothesis(self) -> Hypothesis:
        """What falls when this method refutes a claim."""
        return Hypothesis.POINT if self.curve is None else Hypothesis.CURVE

    def check(self, design: Design, *, sequential: bool = False) -> None:
        super().check(design, sequential=sequential)
        check_neighbours(self.curve, design)
        if isinstance(self.threshold, PlannedGuesses) and self.curve is None:
            raise MethodNotApplicable(
                f"{self.name} can plan its guesses only for a claimed curve; give one, or use UnionThreshold(8)"
            )

    def _options(self, scores: Scores, delta: float, failure_probability: float) -> tuple[Scores, list[Guesses], float]:
        if not isinstance(self.threshold, PlannedGuesses) or self.curve is None:
            return super()._options(scores, delta, failure_probability)
        coins = scores.trials * scores.canaries
        fraction = self.threshold.fraction(self.curve, coins, self.direction)
        return scores, [self._guess(scores, fraction)], 1.0

    def epsilon(self, guesses: Guesses, *, delta: float, failure_probability: float) -> float:
        return self.evaluate(guesses, delta=delta, failure_probability=failure_probability).epsilon

    def evaluate(self, guesses: Guesses, *, delta: float, failure_probability: float) -> Outcome:
        if self.curve is None:
            checks.probability(delta=delta)
            mu = last_rejected(lambda value: rejects_gaussian(guesses, value, failure_probability))
            return Outcome(gaussian_epsilon(mu, delta))
        from lidp.stats.guess_trade_off import rejects_curve

        family = checked_family(self.curve, delta)
        rejected = 0
        while rejected < len(family) and rejects_curve(
            guesses, family.curves[rejected], failure_probability, self.direction
        ):
            rejected += 1
        return Outcome(epsilon_after(family, rejected), rejected)

    def _curve_fields(self, outcome: Outcome, trials: int, delta: float) -> dict[str, Any]:
        if self.curve is None:
            return {}
        family = checked_family(self.curve, delta)
        return {
            "hypothesis": self.hypothesis,
            "curve": self.curve,
            "effective_noise": noise_after(family, outcome.rejected),
            "fell_at": trials if outcome.rejected > family.claimed else None,
        }

    def _family(self) -> tuple[str, ...]:
        return ("the privacy curve is that of a Gaussian mechanism (GDP)",) if self.curve is None else ()


def rejects_gaussian(guesses: Guesses, mu: float, failure_probability: float) -> bool:
    """Return whether at least ``right`` right guesses are too many for any μ-GDP mechanism."""
    from scipy.special import ndtr, ndtri

    from lidp.stats.guess_trade_off import too_many_right

    return too_many_right(guesses, lambda right: float(ndtr(ndtri(min(right, 1.0)) - mu)), 1.0, failure_probability)

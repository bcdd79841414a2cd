"""``AccountedSteps``: what the accountant of a training was told, and the claim that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from lidp import checks
from lidp.claim import USUAL_DELTA, Claim
from lidp.curves import PrivacyCurve
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class AccountedSteps:
    """What an accountant was told: noise multiplier, probability of Poisson sampling, and number of steps."""

    noise_multiplier: float
    sampling_rate: float
    steps: int

    def __post_init__(self) -> None:
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.share(sampling_rate=self.sampling_rate)
        checks.count(steps=self.steps)

    def at(self, delta: float) -> Claim:
        """Return what PLD accounting promises; its ε is stated at ``delta``."""
        return Claim.dpsgd(
            noise_multiplier=self.noise_multiplier, sampling_rate=self.sampling_rate, steps=self.steps, delta=delta
        )

    @property
    def curve(self) -> PrivacyCurve | None:
        """The promised privacy curve; None if the steps promise so little that it cannot be computed."""
        try:
            return self.at(USUAL_DELTA).curve
        except InvalidArgument:
            return None

    def choose(self, delta: float | None, claim: Claim | None) -> Claim:
        """Return ``claim``, or what PLD accounting promises at ``delta``; exactly one of them must be given."""
        if claim is not None and delta is None:
            return claim
        if delta is not None and claim is None:
            return self.at(delta)
        raise InvalidArgument("give either delta, for the claim of PLD accounting, or a claim")

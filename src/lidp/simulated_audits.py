"""Simulate audits of a Gaussian mechanism trial by trial, as far as the planner needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lidp.claim import Claim
from lidp.designs import Design
from lidp.mechanisms.gaussian import draw_gaussian
from lidp.scores import Scores
from lidp.stats.method import AnytimeMethod
from lidp.stats.registry import default_method

_FIRST_TRIALS = 8
_PILOTS = 8  # audits that are simulated to their end first, to see how long the others will take
_GROWTH = 1.4  # of the number of trials from one round of a race to the next


class SimulatedAudit:
    """One simulated audit, which is extended as needed. Its trials depend on the seed and their numbers only."""

    def __init__(
        self,
        design: Design,
        claim: Claim,
        sigma: float,
        dimension: int | None,
        failure_probability: float,
        seed: int,
    ) -> None:
        self.claim = claim
        method = default_method(design, claim)
        assert isinstance(method, AnytimeMethod)  # noqa: S101  # the default methods of these designs are
        self._run = method.begin(delta=claim.delta, failure_probability=failure_probability)
        draw = _scores_by_canary if dimension is None else _scores_in_dimension(dimension)
        self._draw = draw(design, sigma, seed)
        self._done = 0
        self._refuted_at = math.inf

    def trials_to_refute(self, most: int) -> float:
        """Return the trial at which the audit refutes the claim; infinity if it does not within ``most`` trials."""
        while self._done < most and math.isinf(self._refuted_at):
            self.refuted_by(min(max(_FIRST_TRIALS, 2 * self._done), most))
        return self._refuted_at if self._refuted_at <= most else math.inf

    def refuted_by(self, trials: int) -> float:
        """Return the trial at which the audit refutes the claim; infinity if it does not within ``trials`` trials."""
        if math.isinf(self._refuted_at) and self._done < trials:
            self._extend(trials)
        return self._refuted_at if self._refuted_at <= trials else math.inf

    def epsilon_after(self, trials: int) -> float:
        """Return the bound after so many trials."""
        if self._done < trials:
            self._extend(trials)
        return self._run.bound().epsilon_after(trials)

    def _extend(self, trials: int) -> None:
        epsilon = self._run.update(self._draw(trials - self._done))
        self._done = trials
        if math.isinf(self._refuted_at) and (epsilon > self.claim.epsilon or self.claim.curve is not None):
            refuted_at = self._run.bound().refuted_after(self.claim)
            self._refuted_at = math.inf if refuted_at is None else refuted_at


def race(audits: Sequence[SimulatedAudit], *, most: int, winners: int, watched: int) -> list[float]:
    """Return at which trial each audit refutes the claim; infinity for those that do not, or not soon enough to matter.

    All audits proceed together. The race ends when ``winners`` of them have refuted the claim and ``watched`` trials are over, or
    after ``most`` trials. So the ``winners`` smallest numbers, and all numbers up to ``watched``, are those of full audits.
    """
    pilots = [audit.trials_to_refute(most) for audit in audits[:_PILOTS]]
    trials = int(min([number for number in pilots if math.isfinite(number)], default=most))
    while True:
        numbers = [audit.refuted_by(trials) for audit in audits]
        if trials >= most or (np.isfinite(numbers).sum() >= winners and trials >= watched):
            return numbers
        trials = min(math.ceil(_GROWTH * trials), most)


Draw = Callable[[int], Scores]
"""Returns the scores of the next trials, as many as asked for."""


def _scores_by_canary(design: Design, sigma: float, seed: int) -> Draw:
    """Return a source of scores of canaries that do not interfere with one another."""
    # One stream per purpose, read trial by trial: trials are the same however many are drawn at once.
    first, second = np.random.default_rng([seed, design.canaries]).spawn(2)

    def flips(trials: int) -> Scores:
        coins = first.integers(0, 2, (trials, design.canaries))
        scores = second.standard_normal(coins.shape)
        scores *= sigma
        scores += coins
        # A block: of thousands of simulated audits, none may be refused because its fair coins look unfair by chance.
        return Scores.of_block(scores=scores, coins=coins, neighbours=design.neighbours)

    def arms(trials: int) -> Scores:
        inserted = 1 + sigma * first.standard_normal((trials, design.canaries))
        return Scores(inserted=inserted, held_out=sigma * second.standard_normal((trials, design.held_out)))

    return flips if design.has_coins else arms


def _scores_in_dimension(dimension: int) -> Callable[[Design, float, int], Draw]:
    """Return a maker of sources of scores of canaries that interfere as random vectors of this dimension do."""

    def source(design: Design, sigma: float, seed: int) -> Draw:
        done = 0

        def draw(trials: int) -> Scores:
            nonlocal done
            draws = draw_gaussian(design, trials=trials, first=done, dimension=dimension, seed=seed)
            done += trials
            return draws.scores(sigma)

        return draw

    return source

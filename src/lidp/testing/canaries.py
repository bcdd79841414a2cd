"""The contract of canary distributions: draws are a function of the generator, of the right number, independent and alike."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import preserve_global_generators, seed_global_generators
from lidp.arrays import Floats
from lidp.canaries import CanaryDistribution
from lidp.testing.comparing import equal
from lidp.testing.contract import Contract, require

_LARGEST_Z = 5.5
"""Deviations in standard errors beyond which a statistical check fails: a probability of about 4e-8 for each of five tests."""


class CanaryContract(Contract):
    """Checks of a canary distribution. Define ``make``; a distribution that needs a preparation step returns itself prepared.

    The statistical checks are seeded; on a valid distribution each fails with probability below 1e-6 over the choice of the seed.
    They compare canaries by the numbers that :meth:`feature` makes of them.
    """

    draws: ClassVar[int] = 400
    """how many draws the statistical checks use"""
    size: ClassVar[int] = 6
    """canaries per draw of the statistical checks"""
    seed: ClassVar[int] = 1

    @abstractmethod
    def make(self) -> CanaryDistribution:
        """Return the distribution to check."""

    def feature(self, canary: Any) -> float:
        """Return a number that differs between canaries: a random projection of arrays, a digest of everything else."""
        try:
            values = np.asarray(canary, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            digest = hashlib.sha256(pickle.dumps(canary)).digest()
            return int.from_bytes(digest[:6], "big") / 2**48
        return float(values @ np.random.default_rng(0).standard_normal(len(values)))

    def _draw(self, seed: int, size: int) -> Any:
        return self.make().draw(np.random.default_rng(seed), size)

    def _features(self) -> Floats:
        """Return the features of many draws: an array (draws, size)."""
        rows = [[self.feature(canary) for canary in self._draw(self.seed + n, self.size)] for n in range(self.draws)]
        return np.array(rows)

    def test_number_of_canaries_is_the_one_asked_for(self) -> None:
        for size in (1, 2, 7, 64):
            number = len(self._draw(self.seed, size))
            require(number == size, f"draw(rng, {size}) returned {number} canaries")

    def test_draws_are_a_function_of_the_generator(self) -> None:
        with preserve_global_generators():
            seed_global_generators(np.random.default_rng(1))
            first = copy.deepcopy(self._draw(self.seed, 5))
            seed_global_generators(np.random.default_rng(2))
            again = self._draw(self.seed, 5)
        require(equal(first, again), "two draws from equal generators differ: draw random numbers from rng only")

    def test_earlier_draws_do_not_change_later_ones(self) -> None:
        canaries = self.make()
        expected = copy.deepcopy(canaries.draw(np.random.default_rng(self.seed), 5))
        canaries.draw(np.random.default_rng(self.seed + 1), 3)
        again = canaries.draw(np.random.default_rng(self.seed), 5)
        require(equal(expected, again), "a draw depends on the draws before it: keep no state")
        if isinstance(again, np.ndarray) and again.flags.writeable and again.dtype != object:
            again[...] = 0  # as a mechanism might
            third = canaries.draw(np.random.default_rng(self.seed), 5)
            require(equal(expected, third), "a canary that was changed in place changed a later draw: return copies")

    def test_distribution_can_be_sent_to_workers(self) -> None:
        received = pickle.loads(pickle.dumps(self.make()))  # noqa: S301  # pickled in this line
        require(
            equal(received.draw(np.random.default_rng(self.seed), 3), self._draw(self.seed, 3)), "a copy draws otherwise"
        )

    def test_canaries_are_exchangeable_in_order(self) -> None:
        """Compare the first canary of a draw with the last: neither may be larger, or further out, more often."""
        features = self._features()
        for name, values in (("larger", features), ("further from the median", np.abs(features - np.median(features)))):
            first, last = values[:, 0], values[:, -1]
            wins, losses = int((first > last).sum()), int((first < last).sum())
            z = (wins - losses) / math.sqrt(max(wins + losses, 1))
            require(
                abs(z) < _LARGEST_Z,
                f"the first canary of a draw is {name} than the last in {wins} of {wins + losses} draws: order must not matter",
            )

    def test_canaries_of_a_draw_are_independent(self) -> None:
        """Correlate the features of two canaries of a draw, and of consecutive draws from one generator."""
        features = self._features()
        rng = np.random.default_rng(self.seed)
        canaries = self.make()
        in_turn = np.array([self.feature(canaries.draw(rng, 1)[0]) for _ in range(self.draws + 1)])
        pairs = ((features[:, 0], features[:, 1]), (features[:, 0], features[:, -1]), (in_turn[1:], in_turn[:-1]))
        for one, other in pairs:
            z = _correlation(one > np.median(one), other > np.median(other))
            require(abs(z) < _LARGEST_Z, f"canaries are correlated, by {z:.1f} standard errors: draw them independently")


def _correlation(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Return the correlation of two events in standard errors, or 0 if they are too rare or too common to tell."""
    size, first, second = len(one), int(one.sum()), int(other.sum())
    expected = first * second / size
    spread = math.sqrt(expected * (size - first) * (size - second)) / size
    if min(expected, (size - first) * (size - second) / size) < 20:
        return 0.0
    return (int((one & other).sum()) - expected) / spread


def check_canaries(canaries: CanaryDistribution) -> None:
    """Run the contract of canary distributions on one of your own; raise ``ContractViolated`` if it fails."""

    class Single(CanaryContract):
        def make(self) -> CanaryDistribution:
            return canaries

    Single().run()

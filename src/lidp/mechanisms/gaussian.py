"""The Gaussian mechanism audited with canaries on the unit sphere, and its scores from their exact law at any dimension.

The mechanism returns Σ canaries + σξ in R^d and a canary's score is its inner product with that. All a trial needs are
inner products between canaries and with the noise, whose joint law takes O(K²) numbers to draw instead of O(Kd): the
Gram matrix of K independent uniform unit vectors is that of the rows of a Bartlett factor, scaled to unit length.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidArgument
from lidp.scores import Scores
from lidp.streams import Purpose, check_seed, trial_streams

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_BLOCK_SCORES = 2**16  # a thread takes up so many scores at once, in whole trials


def simulate_gaussian(
    design: Design, *, trials: int, sigma: float, dimension: int = 10_000, seed: int = 0, threads: int | None = None
) -> Scores:
    """Scores of an audit of the Gaussian mechanism with noise σ and sensitivity 1.

    The law of the scores is exact (their values are rounded to single precision); no d-dimensional vector is drawn. The same
    seed gives the same canaries and noise for every σ, and the same scores whatever the number of threads.
    """
    sigma = checks.positive(sigma=sigma)
    return draw_gaussian(design, trials=trials, dimension=dimension, seed=seed, threads=threads).scores(sigma)


def draw_gaussian(
    design: Design, *, trials: int, dimension: int = 10_000, seed: int = 0, threads: int | None = None
) -> GaussianDraws:
    """The canaries and the noise of an audit, as far as scores depend on them: good for every σ."""
    trials, dimension, seed = checks.count(trials=trials), checks.count(dimension=dimension), check_seed(seed)
    threads = checks.count(threads=threads or os.cpu_count() or 1)
    if not isinstance(design, (CoinFlip, LeaveOneOut, ReplaceOne)):
        raise InvalidArgument(f"design must be CoinFlip, LeaveOneOut or ReplaceOne, got {design!r}")
    draws = GaussianDraws.empty(design, trials, dimension)
    size = max(1, _BLOCK_SCORES // design.canaries)
    blocks = [range(start, min(start + size, trials)) for start in range(0, trials, size)]
    if threads == 1 or len(blocks) == 1:
        for block in blocks:
            draws.fill(block, seed)
        return draws
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(draws.fill, block, seed) for block in blocks]:
            done.result()
    return draws


@dataclass(frozen=True)
class GaussianDraws:
    """What scores are made of, a row per trial: a canary's score is its ``signal`` plus σ times its ``noise``."""

    design: Design
    dimension: int
    signal: Singles
    noise: Singles
    coins: NDArray[np.bool_]
    """of the coin-flip design; no columns in the others"""
    held_out: HeldOutDraws
    """of the designs with two arms; no columns for coin flips"""

    @classmethod
    def empty(cls, design: Design, trials: int, dimension: int) -> GaussianDraws:
        """Room for so many trials."""
        flips = isinstance(design, CoinFlip)
        signal, noise = (np.empty((trials, design.canaries), np.float32) for _ in range(2))
        coins = np.empty((trials, design.canaries if flips else 0), np.bool_)
        fresh = 0 if isinstance(design, CoinFlip) else design.held_out
        return cls(design, dimension, signal, noise, coins, HeldOutDraws.empty(trials, fresh))

    def scores(self, sigma: float) -> Scores:
        """The scores at noise σ."""
        own = self.signal + np.float32(sigma) * self.noise
        if isinstance(self.design, CoinFlip):
            return Scores(scores=own, coins=self.coins, neighbours=self.design.neighbours)
        return Scores(inserted=own, held_out=self.held_out.scores(sigma), neighbours=self.design.neighbours)

    def fill(self, trials: range, seed: int) -> None:
        """Draw these trials, each from streams of its own."""
        if isinstance(self.design, CoinFlip):
            self._fill_coin_flips(trials, seed)
        else:
            self._fill_arms(trials, seed)

    def _fill_coin_flips(self, trials: range, seed: int) -> None:
        canaries = self.design.canaries
        paired = self.design.neighbours is Neighbours.REPLACE_ONE
        coins = trial_streams(seed, trials, purpose=Purpose.COINS)
        everyone = self._vectors(trials, seed, 2 * canaries if paired else canaries)
        for trial, coin_rng, vectors in zip(trials, coins, everyone, strict=True):
            flips = coin_rng.integers(0, 2, canaries, dtype=np.uint8).astype(np.bool_)
            weights = np.concatenate([flips, ~flips]) if paired else flips
            vectors.meet(weights.astype(np.float32), self.signal[trial], self.noise[trial])
            self.coins[trial] = flips

    def _fill_arms(self, trials: range, seed: int) -> None:
        weights = np.ones(self.design.canaries, np.float32)
        others = trial_streams(seed, trials, arm=0, purpose=Purpose.NOISE)
        fresh = trial_streams(seed, trials, purpose=Purpose.HELD_OUT)
        everyone = self._vectors(trials, seed, self.design.canaries)
        for trial, other, rng, vectors in zip(trials, others, fresh, everyone, strict=True):
            total, partial, along, within = vectors.meet(weights, self.signal[trial], self.noise[trial])
            if isinstance(self.design, LeaveOneOut):
                # The other arm has its own noise, and leaves the last canary out.
                known, along = partial, other.standard_normal()
                across = _chi_square(other, self.dimension - 1)
            else:
                # The same output: its noise along the canaries' sum, in the rest of their span, and outside that.
                known = total
                across = max(within - along**2, 0.0) + _chi_square(other, self.dimension - vectors.rank)
            self.held_out.set(trial, known, along, across, self.dimension, rng)

    def _vectors(self, trials: range, seed: int, count: int) -> Iterator[_UnitVectors]:
        """The canaries of each trial, and the noise in the space that they span."""
        vectors = _UnitVectors(count, self.dimension)
        canaries = trial_streams(seed, trials, purpose=Purpose.CANARIES)
        noise = trial_streams(seed, trials, arm=1, purpose=Purpose.NOISE)
        for canary_rng, noise_rng in zip(canaries, noise, strict=True):
            vectors.draw(canary_rng, noise_rng)
            yield vectors


@dataclass(frozen=True)
class HeldOutDraws:
    """Scores of fresh canaries, which meet an output through its length only.

    That length is ``known`` + σ ``along`` in the direction of the inserted canaries' sum, and σ ``across`` at right angles to
    it; a fresh canary's score is the length times its ``cosine``, the first coordinate of a uniform unit vector.
    """

    known: Floats
    along: Floats
    across: Floats
    cosine: Singles

    @classmethod
    def empty(cls, trials: int, held_out: int) -> HeldOutDraws:
        """Room for so many trials."""
        known, along, across = np.empty((3, trials))
        return cls(known, along, across, np.empty((trials, held_out), np.float32))

    def set(
        self, trial: int, known: float, along: float, across_squared: float, dimension: int, rng: np.random.Generator
    ) -> None:
        """Note an output's length, and draw the fresh canaries of a trial."""
        self.known[trial], self.along[trial], self.across[trial] = known, along, np.sqrt(across_squared)
        size = self.cosine.shape[1]
        first = rng.standard_normal(size)
        self.cosine[trial] = first / np.sqrt(first**2 + _chi_square(rng, dimension - 1, size))

    def scores(self, sigma: float) -> Singles:
        """The scores at noise σ."""
        length = np.hypot(self.known + sigma * self.along, sigma * self.across)
        scores: Singles = length.astype(np.float32)[:, None] * self.cosine
        return scores


class _UnitVectors:
    """Independent uniform unit vectors of R^dimension in coordinates of a space that holds them all, drawn again and again.

    Vector i has min(i, dimension) normal coordinates; while there is a dimension left, one more, whose square has the law of
    the squared length of all that is left: χ² with dimension - i degrees of freedom. Then it is scaled to length 1.
    """

    def __init__(self, count: int, dimension: int) -> None:
        from lidp.mechanisms import _kernels

        self.rank = min(count, dimension)
        self._meet = _kernels.meet
        self._degrees = dimension - np.arange(self.rank)
        self._coordinates = np.empty(self.rank * (self.rank - 1) // 2 + (count - self.rank) * self.rank, np.float32)
        self._last = np.empty(self.rank, np.float32)
        self._noise = np.empty(self.rank, np.float32)

    def draw(self, canaries: np.random.Generator, noise: np.random.Generator) -> None:
        """New vectors and noise."""
        canaries.standard_normal(dtype=np.float32, out=self._coordinates)
        self._last[:] = np.sqrt(canaries.chisquare(self._degrees))
        noise.standard_normal(dtype=np.float32, out=self._noise)

    def meet(self, weights: Singles, signal: Singles, noise: Singles) -> tuple[float, float, float, float]:
        """Write the inner products with Σ weights x vectors, and with the noise, of as many vectors as there is room for.

        Returns the lengths of that sum and of the sum without its last vector, the noise along the sum, and the squared
        length of the noise within the span.
        """
        found: tuple[float, float, float, float] = self._meet(
            self._coordinates, self._last, self._noise, weights, signal, noise
        )
        return found


def _chi_square(rng: np.random.Generator, degrees: int, size: int | None = None) -> Any:
    return rng.chisquare(degrees, size) if degrees else np.zeros(size or ())


@dataclass(frozen=True)
class GaussianSum:
    """The Gaussian mechanism itself: the sum of vectors of length at most 1, plus noise σ in every coordinate."""

    sigma: float
    dimension: int

    def __post_init__(self) -> None:
        checks.positive(sigma=self.sigma)
        checks.count(dimension=self.dimension)

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Floats:
        noise: Floats = self.sigma * rng.standard_normal(self.dimension)
        return noise + np.sum(dataset, axis=0) if len(dataset) else noise


class InnerProduct:
    """The score of a vector that may have been added to an output: their inner product."""

    def __call__(self, output: Floats, canary: Floats) -> float:
        return float(np.dot(output, canary))

    def many(self, output: Floats, canaries: Floats) -> Floats:
        """The scores of an array of canaries, a row each."""
        scores: Floats = np.asarray(canaries) @ output
        return scores

"""Simulate audits of the Gaussian mechanism with canaries on the unit sphere, exactly and at any dimension.

The mechanism returns Σ canaries + σξ in R^d, and the score of a canary is its inner product with that output. A trial depends on
the inner products of canaries with one another and with the noise only. Their joint law takes O(K²) numbers to draw instead of
O(Kd): the Gram matrix of K independent uniform unit vectors is that of the rows of a Bartlett factor, scaled to unit length.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Bools, Floats, Singles
from lidp.claim import Neighbours
from lidp.designs import Design, check_canary_design
from lidp.errors import InvalidArgument
from lidp.scores import Scores
from lidp.streams import Purpose, check_seed, trial_words

_MAX_SIGMA = 1e30
_SCORES_PER_BLOCK = 2**16  # scores that a thread draws at a time, in whole trials


def simulate_gaussian(
    design: Design, *, trials: int, sigma: float, dimension: int = 10_000, seed: int = 0, threads: int | None = None
) -> Scores:
    """Return the scores of an audit of the Gaussian mechanism with noise σ and sensitivity 1 for adding or removing a record.

    Its true ε at δ is ``gaussian_epsilon(1 / σ, δ)`` under add/remove neighbours. Under replace-one neighbours, where a unit vector
    may become its opposite, it is ``gaussian_epsilon(2 / σ, δ)``.

    The law of the scores is exact, up to rounding to single precision, although no d-dimensional vector is drawn. The same seed
    gives the same canaries and noise for every σ, and the same scores for any number of threads.
    """
    sigma = checks.positive(sigma=sigma)
    if sigma > _MAX_SIGMA:
        raise InvalidArgument(f"sigma must be at most {_MAX_SIGMA:g}, for single precision, got {sigma:g}")
    return draw_gaussian(design, trials=trials, dimension=dimension, seed=seed, threads=threads).scores(sigma)


def draw_gaussian(
    design: Design,
    *,
    trials: int,
    first: int = 0,
    dimension: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
) -> GaussianDraws:
    """Draw the canaries and the noise of an audit, as far as scores depend on them. The result gives the scores for every σ.

    The trials begin with number ``first``, so that an audit can be drawn in parts, which are the same as those of the whole.
    Besides the result, each thread needs memory for the vectors of one trial: K·min(K, d)/2 numbers of 4 bytes.
    """
    trials, dimension, seed = checks.count(trials=trials), checks.count(dimension=dimension), check_seed(seed)
    threads = checks.count(threads=(os.cpu_count() or 1) if threads is None else threads)
    check_canary_design(design)
    draws = GaussianDraws.empty(design, trials, dimension, first)
    size = max(1, _SCORES_PER_BLOCK // design.canaries)
    blocks = [range(start, min(start + size, trials)) for start in range(0, trials, size)]
    if threads == 1 or len(blocks) == 1:
        for block in blocks:
            draws.fill(block, seed)
        return draws
    with ThreadPoolExecutor(threads) as pool:
        try:
            for future in [pool.submit(draws.fill, block, seed) for block in blocks]:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # so that an interrupt need not wait for all blocks
            raise
    return draws


@dataclass(frozen=True)
class GaussianDraws:
    """Draws that determine the scores for every σ, one row per trial: a score is its ``signal`` plus σ times its ``noise``."""

    design: Design
    dimension: int
    signal: Singles
    noise: Singles
    coins: Bools
    """Coins of the coin-flip design; no columns in other designs."""
    held_out: HeldOutDraws
    """Held-out canaries of designs with two arms; no columns in the coin-flip design."""
    first: int = 0
    """The number of the first trial."""

    @classmethod
    def empty(cls, design: Design, trials: int, dimension: int, first: int = 0) -> GaussianDraws:
        """Return uninitialised draws for ``trials`` trials."""
        signal, noise = (np.empty((trials, design.canaries), np.float32) for _ in range(2))
        coins = np.empty((trials, design.canaries if design.has_coins else 0), np.bool_)
        return cls(design, dimension, signal, noise, coins, HeldOutDraws.empty(trials, design.held_out), first)

    def scores(self, sigma: float) -> Scores:
        """Return the scores at noise σ."""
        scores = self.signal + np.float32(sigma) * self.noise
        if self.design.has_coins:
            return Scores(scores=scores, coins=self.coins, neighbours=self.design.neighbours)
        return Scores(inserted=scores, held_out=self.held_out.scores(sigma), neighbours=self.design.neighbours)

    def fill(self, rows: range, seed: int) -> None:
        """Draw the trials of these rows, each from separate streams."""
        from lidp._compiled import gaussian_trials

        def states(purpose: Purpose, arm: int = 0) -> NDArray[np.uint64]:
            return trial_words(seed, range(self.first + rows.start, self.first + rows.stop), arm=arm, purpose=purpose)

        part = slice(rows.start, rows.stop)
        canaries, noise = states(Purpose.CANARIES), states(Purpose.NOISE, 1)
        outputs = (self.dimension, self.signal[part], self.noise[part])
        if self.design.has_coins:
            paired = self.design.neighbours is Neighbours.REPLACE_ONE
            gaussian_trials.coin_flips(states(Purpose.COINS), canaries, noise, paired, *outputs, self.coins[part])
        else:
            # The noise of the other arm; under replace-one, that of the same output outside the span of the canaries.
            other_noise, fresh_canaries = states(Purpose.NOISE, 0), states(Purpose.HELD_OUT)
            one_output = self.design.models_per_trial == 1
            held_out = (self.held_out.lengths[part], self.held_out.cosine[part])
            gaussian_trials.two_arms(canaries, noise, other_noise, fresh_canaries, one_output, *outputs, *held_out)


@dataclass(frozen=True)
class HeldOutDraws:
    """Scores of held-out canaries, whose law depends on an output through its length only.

    The columns of ``lengths`` are the length of the sum of inserted canaries, and the components of the noise along and across that
    sum, both to be multiplied by σ. They determine the length of the output. The score of a held-out canary is that length times
    its ``cosine``, which has the law of the first coordinate of a uniform unit vector.
    """

    lengths: Floats
    cosine: Singles

    @classmethod
    def empty(cls, trials: int, held_out: int) -> HeldOutDraws:
        """Return uninitialised draws for ``trials`` trials."""
        return cls(np.empty((trials, 3)), np.empty((trials, held_out), np.float32))

    def scores(self, sigma: float) -> Singles:
        """Return the scores at noise σ."""
        canary_sum, along, across = self.lengths.T
        length = np.hypot(canary_sum + sigma * along, sigma * across)
        scores: Singles = length.astype(np.float32)[:, None] * self.cosine
        return scores


@dataclass(frozen=True)
class GaussianSum:
    """The Gaussian mechanism: the sum of vectors of length at most 1, plus noise σ in every coordinate.

    Adding or removing a vector changes the sum by at most 1, replacing one by at most 2.
    """

    sigma: float
    dimension: int
    draws_only_from_rng: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive(sigma=self.sigma)
        checks.count(dimension=self.dimension)

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Floats:
        noise: Floats = self.sigma * rng.standard_normal(self.dimension)
        return noise + np.sum(dataset, axis=0) if len(dataset) else noise


class InnerProduct:
    """The inner product of an output with a canary, as the score of that canary."""

    def __call__(self, output: Floats, canary: Floats) -> float:
        return float(np.dot(output, canary))

    def many(self, output: Floats, canaries: Floats) -> Floats:
        """Return the score of each row."""
        scores: Floats = np.asarray(canaries) @ output
        return scores

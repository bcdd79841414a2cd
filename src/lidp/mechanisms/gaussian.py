"""The Gaussian mechanism audited with canaries on the unit sphere, and its scores from their exact law at any dimension.

The mechanism returns Σ canaries + σξ in R^d and a canary's score is its inner product with that. All a trial needs are
inner products between canaries and with the noise, whose joint law takes O(K²) numbers to draw instead of O(Kd): the
Gram matrix of K independent uniform unit vectors is that of the rows of a Bartlett factor, scaled to unit length.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidArgument
from lidp.scores import Scores
from lidp.streams import Purpose, check_seed, trial_words

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_MOST_NOISE = 1e30
_BLOCK_SCORES = 2**16  # a thread takes up so many scores at once, in whole trials


def simulate_gaussian(
    design: Design, *, trials: int, sigma: float, dimension: int = 10_000, seed: int = 0, threads: int | None = None
) -> Scores:
    """Scores of an audit of the Gaussian mechanism with noise σ and sensitivity 1 for adding or removing a record.

    Its true ε at δ is ``gaussian_epsilon(1 / σ, δ)`` for add/remove neighbours; for replace-one neighbours, where a unit vector may
    become its opposite, it is ``gaussian_epsilon(2 / σ, δ)``.

    The law of the scores is exact (their values are rounded to single precision); no d-dimensional vector is drawn. The same
    seed gives the same canaries and noise for every σ, and the same scores whatever the number of threads.
    """
    sigma = checks.positive(sigma=sigma)
    if sigma > _MOST_NOISE:
        raise InvalidArgument(f"sigma must be at most {_MOST_NOISE:g}, which single precision can hold, got {sigma:g}")
    return draw_gaussian(design, trials=trials, dimension=dimension, seed=seed, threads=threads).scores(sigma)


def draw_gaussian(
    design: Design, *, trials: int, dimension: int = 10_000, seed: int = 0, threads: int | None = None
) -> GaussianDraws:
    """The canaries and the noise of an audit, as far as scores depend on them: good for every σ.

    Takes the memory of the result, and of the vectors of one trial for each thread: K·min(K, d)/2 numbers of 4 bytes.
    """
    trials, dimension, seed = checks.count(trials=trials), checks.count(dimension=dimension), check_seed(seed)
    threads = checks.count(threads=(os.cpu_count() or 1) if threads is None else threads)
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
        try:
            for done in [pool.submit(draws.fill, block, seed) for block in blocks]:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # an interrupt does not wait for all blocks
            raise
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
        from lidp._compiled import gaussian_trials

        def states(purpose: Purpose, arm: int = 0) -> NDArray[np.uint64]:
            return trial_words(seed, trials, arm=arm, purpose=purpose)

        here = slice(trials.start, trials.stop)
        canaries, noise = states(Purpose.CANARIES), states(Purpose.NOISE, 1)
        own = (self.dimension, self.signal[here], self.noise[here])
        if isinstance(self.design, CoinFlip):
            paired = self.design.neighbours is Neighbours.REPLACE_ONE
            gaussian_trials.coin_flips(states(Purpose.COINS), canaries, noise, paired, *own, self.coins[here])
        else:
            # The noise of the other arm; in replace-one, of the same output outside the canaries' span.
            other, fresh = states(Purpose.NOISE, 0), states(Purpose.HELD_OUT)
            one_output = isinstance(self.design, ReplaceOne)
            held_out = (self.held_out.lengths[here], self.held_out.cosine[here])
            gaussian_trials.two_arms(canaries, noise, other, fresh, one_output, *own, *held_out)


@dataclass(frozen=True)
class HeldOutDraws:
    """Scores of fresh canaries, which meet an output through its length only.

    The columns of ``lengths`` are the length of the inserted canaries' sum, and the noise along and across it, both to be
    multiplied by σ. A fresh canary's score is the length of all that times its ``cosine``, which has the law of the first
    coordinate of a uniform unit vector.
    """

    lengths: Floats
    cosine: Singles

    @classmethod
    def empty(cls, trials: int, held_out: int) -> HeldOutDraws:
        """Room for so many trials."""
        return cls(np.empty((trials, 3)), np.empty((trials, held_out), np.float32))

    def scores(self, sigma: float) -> Singles:
        """The scores at noise σ."""
        known, along, across = self.lengths.T
        length = np.hypot(known + sigma * along, sigma * across)
        scores: Singles = length.astype(np.float32)[:, None] * self.cosine
        return scores


@dataclass(frozen=True)
class GaussianSum:
    """The Gaussian mechanism itself: the sum of vectors of length at most 1, plus noise σ in every coordinate.

    Adding or removing a vector moves the sum by at most 1, replacing one by at most 2.
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
    """The score of a vector that may have been added to an output: their inner product."""

    def __call__(self, output: Floats, canary: Floats) -> float:
        return float(np.dot(output, canary))

    def many(self, output: Floats, canaries: Floats) -> Floats:
        """The scores of an array of canaries, a row each."""
        scores: Floats = np.asarray(canaries) @ output
        return scores

"""The Gaussian mechanism audited with canaries on the unit sphere: scores from their exact law, at any dimension.

The mechanism returns Σ canaries + σξ in R^d and a canary's score is its inner product with that. All a trial needs are
inner products between canaries and with the noise, whose joint law takes O(K²) numbers to draw instead of O(Kd): the
Gram matrix of K independent uniform unit vectors is that of the rows of a Bartlett factor, scaled to unit length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.errors import InvalidArgument
from lidp.scores import Scores
from lidp.streams import Purpose, check_seed, stream

Floats = NDArray[np.float64]


def simulate_gaussian(design: Design, *, trials: int, sigma: float, dimension: int = 10_000, seed: int = 0) -> Scores:
    """Scores of an audit of the Gaussian mechanism with noise σ and sensitivity 1.

    The law of the scores is exact; no d-dimensional vector is drawn. The same seed gives the same canaries and noise for
    every σ. Covers leave-one-out and coin-flip designs under add/remove neighbours.
    """
    trials, dimension = checks.count(trials=trials), checks.count(dimension=dimension)
    sigma, seed = checks.positive(sigma=sigma), check_seed(seed)
    if isinstance(design, CoinFlip):
        pairs = [_coin_flip_trial(design, sigma, dimension, seed, trial) for trial in range(trials)]
        first, second = (np.array(column) for column in zip(*pairs, strict=True))
        return Scores(scores=first, coins=second, neighbours=design.neighbours)
    if isinstance(design, LeaveOneOut):
        pairs = [_leave_one_out_trial(design, sigma, dimension, seed, trial) for trial in range(trials)]
        first, second = (np.array(column) for column in zip(*pairs, strict=True))
        return Scores(inserted=first, held_out=second)
    raise InvalidArgument(f"the Gaussian simulation covers LeaveOneOut and CoinFlip, got {design!r}")


def _coin_flip_trial(design: CoinFlip, sigma: float, dimension: int, seed: int, trial: int) -> tuple[Floats, Floats]:
    coins = stream(seed, trial=trial, purpose=Purpose.COINS).integers(0, 2, design.canaries).astype(np.float64)
    canaries = _unit_vectors(design.canaries, dimension, stream(seed, trial=trial, purpose=Purpose.CANARIES))
    noise = stream(seed, trial=trial, purpose=Purpose.NOISE).standard_normal(canaries.shape[1])
    return canaries @ (coins @ canaries + sigma * noise), coins


def _leave_one_out_trial(design: LeaveOneOut, sigma: float, dimension: int, seed: int, trial: int) -> tuple[Floats, Floats]:
    canaries = _unit_vectors(design.canaries, dimension, stream(seed, trial=trial, purpose=Purpose.CANARIES))
    noise = stream(seed, trial=trial, arm=1, purpose=Purpose.NOISE).standard_normal(canaries.shape[1])
    inserted = canaries @ (canaries.sum(axis=0) + sigma * noise)
    # The other arm leaves the last canary out. Its output matters to fresh canaries through its length only.
    length = float(np.linalg.norm(canaries[:-1].sum(axis=0)))
    other_noise = stream(seed, trial=trial, arm=0, purpose=Purpose.NOISE)
    along, across = other_noise.standard_normal(), _chi_square(other_noise, dimension - 1)
    length = math.hypot(length + sigma * along, sigma * math.sqrt(float(across[0])))
    fresh = stream(seed, trial=trial, purpose=Purpose.HELD_OUT)
    first = fresh.standard_normal(design.held_out)
    cosines = first / np.sqrt(first**2 + _chi_square(fresh, dimension - 1, design.held_out))
    return inserted, length * cosines


def _unit_vectors(count: int, dimension: int, rng: np.random.Generator) -> Floats:
    """``count`` independent uniform unit vectors of R^dimension, in coordinates of a space that holds them all."""
    rank = min(count, dimension)
    vectors = np.tril(rng.standard_normal((count, rank)))
    diagonal = np.arange(rank)
    vectors[diagonal, diagonal] = np.sqrt(rng.chisquare(dimension - diagonal))
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _chi_square(rng: np.random.Generator, degrees: int, size: int = 1) -> Floats:
    return rng.chisquare(degrees, size) if degrees else np.zeros(size)


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

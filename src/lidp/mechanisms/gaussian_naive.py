"""Simulate the Gaussian mechanism with d-dimensional vectors: the reference for the fast simulation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Floats
from lidp.claim import Neighbours
from lidp.designs import Design
from lidp.scores import Scores
from lidp.streams import Purpose, check_seed, stream


def simulate_gaussian_naively(
    design: Design, *, trials: int, sigma: float, dimension: int = 10_000, seed: int = 0
) -> Scores:
    """Return scores with the law of :func:`simulate_gaussian`, by drawing every canary and every coordinate of the noise.

    This takes O(trials x canaries x dimension) time. For the same seed, the two functions return different scores of the same law.
    """
    trials, dimension = checks.count(trials=trials), checks.count(dimension=dimension)
    sigma, seed = checks.positive(sigma=sigma), check_seed(seed)
    columns: tuple[list[NDArray[np.generic]], list[NDArray[np.generic]]] = ([], [])
    for trial in range(trials):

        def rng(purpose: Purpose, arm: int = 0, trial: int = trial) -> np.random.Generator:
            return stream(seed, trial=trial, arm=arm, purpose=purpose)

        canaries = _sphere(rng(Purpose.CANARIES), design.canaries, dimension)
        noise = sigma * rng(Purpose.NOISE, 1).standard_normal(dimension)
        if design.has_coins:
            coins = rng(Purpose.COINS).integers(0, 2, design.canaries)
            output = coins @ canaries + noise
            if design.neighbours is Neighbours.REPLACE_ONE:
                output += (1 - coins) @ _sphere(rng(Purpose.AUXILIARY), design.canaries, dimension)
            pair: tuple[NDArray[np.generic], NDArray[np.generic]] = canaries @ output, coins
        else:
            output = canaries.sum(axis=0) + noise
            inserted = canaries @ output
            if design.models_per_trial == 2:  # held-out canaries are scored on a model without one of the inserted ones
                output = canaries[:-1].sum(axis=0) + sigma * rng(Purpose.NOISE, 0).standard_normal(dimension)
            pair = inserted, _sphere(rng(Purpose.HELD_OUT), design.held_out, dimension) @ output
        for column, values in zip(columns, pair, strict=True):
            column.append(values)
    first, second = (np.array(column) for column in columns)
    if design.has_coins:
        return Scores(scores=first, coins=second, neighbours=design.neighbours)
    return Scores(inserted=first, held_out=second, neighbours=design.neighbours)


def _sphere(rng: np.random.Generator, count: int, dimension: int) -> Floats:
    vectors = rng.standard_normal((count, dimension))
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit

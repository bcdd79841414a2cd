"""Simulating the Gaussian mechanism: the exact law against drawing every coordinate, in numpy and compiled."""

from __future__ import annotations

import time

import numpy as np
from numba import njit

from lidp import LeaveOneOut
from lidp.mechanisms.gaussian import draw_gaussian, simulate_gaussian
from lidp.mechanisms.gaussian_naive import simulate_gaussian_naively

SIGMA = 2.149
DESIGN = LeaveOneOut(32, 32)
DIMENSION = 10**6


@njit
def obvious_loop(trials: int, canaries: int, dimension: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What one would write first: canary by canary, coordinate by coordinate."""
    np.random.seed(seed)  # noqa: NPY002  # what numba has
    inserted, held_out = np.empty((trials, canaries)), np.empty((trials, canaries))
    vectors = np.empty((canaries, dimension))
    for t in range(trials):
        outputs = np.empty((2, dimension))
        for j in range(dimension):
            outputs[0, j] = sigma * np.random.normal()  # noqa: NPY002
            outputs[1, j] = sigma * np.random.normal()  # noqa: NPY002
        for k in range(canaries):
            square = 0.0
            for j in range(dimension):
                vectors[k, j] = np.random.normal()  # noqa: NPY002
                square += vectors[k, j] ** 2
            for j in range(dimension):
                vectors[k, j] /= square**0.5
                outputs[1, j] += vectors[k, j]
                if k < canaries - 1:
                    outputs[0, j] += vectors[k, j]
        for k in range(canaries):
            inserted[t, k] = np.dot(vectors[k], outputs[1])
            total, square = 0.0, 0.0
            for j in range(dimension):
                x = np.random.normal()  # noqa: NPY002
                total += x * outputs[0, j]
                square += x * x
            held_out[t, k] = total / square**0.5
    return inserted, held_out


def seconds(work, trials: int) -> float:
    """Seconds a trial."""
    start = time.perf_counter()
    work(trials)
    return (time.perf_counter() - start) / trials


def main() -> None:
    simulate_gaussian(DESIGN, trials=2, sigma=SIGMA)  # compiles
    obvious_loop(1, 2, 10, SIGMA, 0)
    exact = seconds(lambda n: simulate_gaussian(DESIGN, trials=n, sigma=SIGMA, dimension=DIMENSION), 50_000)
    naive = seconds(lambda n: simulate_gaussian_naively(DESIGN, trials=n, sigma=SIGMA, dimension=DIMENSION), 3)
    loop = seconds(lambda n: obvious_loop(n, 32, DIMENSION, SIGMA, 0), 3)
    print(f"leave one out, K = 32, d = 10^6, two arms: {exact * 1e6:.1f} µs a trial on all cores; the others use one")
    print(f"  numpy, every coordinate:    {naive:.2f} s a trial, {naive / exact:,.0f} times as long (target 10,000)")
    print(f"  compiled, every coordinate: {loop:.2f} s a trial, {loop / exact:,.0f} times as long")
    large = 65_536 * seconds(lambda n: draw_gaussian(LeaveOneOut(256, 256), trials=n), 65_536)
    print(f"leave one out, K = 256, n = 65,536: {large:.1f} s (target 60)")

"""Speed and memory, as ratios against a reference measured in the same run: the machine's own speed cancels."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from lidp import CentralGrid, CoinWager, LiftedBetting, Scores, UnionThreshold, Wilson
from lidp.stats.xbern import moment_table

ROUNDS = 5


def interleaved(*functions: Callable[[], object]) -> list[float]:
    """The best time of each function; rounds alternate between them, so that a slow spell hits all alike."""
    for function in functions:
        function()  # compiles, fills caches
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def peak_memory(function: Callable[[], object]) -> float:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def indicator_array(inserted: np.ndarray, held_out: np.ndarray, thresholds: np.ndarray) -> list[np.ndarray]:
    """What the paper's code does: the whole (trials, canaries, thresholds) array of indicators, then its moments."""
    moments = []
    for arm in (inserted, held_out):
        counts = (arm[:, :, None] >= thresholds).sum(axis=1)
        moments.append(moment_table(arm.shape[1], 2)[:, counts].mean(axis=1))
    return moments


def thresholds() -> None:
    rng = np.random.default_rng(0)
    n, k = 4096, 64
    inserted, held_out = 1 + 2.15 * rng.standard_normal((n, k)), 2.15 * rng.standard_normal((n, k))
    grid = CentralGrid(500)(inserted, held_out)
    method = Wilson(2, direction="forward", threshold=UnionThreshold(tuple(grid)))
    scores = Scores(inserted=inserted, held_out=held_out)

    def ours() -> object:
        return method.bound(scores, delta=1e-5, failure_probability=0.05)

    def naive() -> object:
        return indicator_array(inserted, held_out, grid)

    fast, slow = interleaved(ours, naive)
    print(f"Wilson(2), 500 candidates, n={n:,}, K={k}: {1e3 * fast:.1f} ms, indicator array {1e3 * slow:.0f} ms")
    print(f"  {slow / fast:.0f} times faster (target 20)")
    megabytes = inserted.nbytes / 1e6
    print(f"  peak memory {peak_memory(ours):.0f} MB against {peak_memory(naive):.0f} MB; one arm is {megabytes:.0f} MB")


def lifted_betting() -> None:
    rng = np.random.default_rng(0)
    n, k = 65_536, 64
    inserted, held_out = 1 + 2.15 * rng.standard_normal((n, k)), 2.15 * rng.standard_normal((n, k))
    scores = Scores(inserted=inserted, held_out=held_out)
    both = np.concatenate([inserted.ravel(), held_out.ravel()])
    bet, sort = interleaved(
        lambda: LiftedBetting().bound(scores, delta=1e-5, failure_probability=0.05), lambda: np.sort(both)
    )
    print(f"LiftedBetting, n={n:,}, K={k}: {bet:.2f} s, sorting the scores once {sort:.3f} s")
    print(f"  {bet / sort:.1f} times the sort (limit 30)")


def coin_wager() -> None:
    rng = np.random.default_rng(0)
    for n, k in ((15_625, 64), (1, 1_000_000), (1_000_000, 1)):
        coins = rng.integers(0, 2, (n, k))
        values = coins + 2.15 * rng.standard_normal((n, k))
        scores = Scores(scores=values, coins=coins)
        bet, sort = interleaved(
            lambda scores=scores: CoinWager().bound(scores, delta=1e-5, failure_probability=0.05),
            lambda values=values: np.sort(values, axis=None),
        )
        print(f"CoinWager, {n:,} trials of {k:,} coins: {bet:.3f} s, sorting the scores once {sort:.4f} s")
        print(f"  {bet / sort:.1f} times the sort (limit 30)")


def main() -> None:
    thresholds()
    lifted_betting()
    coin_wager()

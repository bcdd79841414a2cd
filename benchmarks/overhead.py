"""The cost of the audit engine: stored trials per second with a free mechanism, and throughput against the ideal."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import lidp
from lidp import Claim, CoinFlip, Target


class Zeros:
    """Canaries that cost nothing."""

    def draw(self, rng, size):
        return [0.0] * size


def free(dataset, rng):
    return 0.0


def sleepy(dataset, rng):
    time.sleep(0.05)
    return 0.0


def score(output, canary):
    return 0.0


def measure(mechanism, trials: int, store: Path | None, workers: int = 1) -> float:
    """Seconds of an audit of so many trials."""
    start = time.perf_counter()
    target = Target(mechanism, Zeros(), score)
    design = CoinFlip(32)
    lidp.audit(target, claim=Claim(9.0), design=design, trials=trials, stop_when="never", store=store, workers=workers)
    return time.perf_counter() - start


def main() -> None:
    measure(free, 64, None)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        rate = 10_000 / measure(free, 10_000, Path(folder) / "a.db")
        print(f"free mechanism, K=32, one worker, stored: {rate:,.0f} trials per second (target 2,000)")
        share = 400 * 0.05 / 2 / measure(sleepy, 400, Path(folder) / "b.db", workers=2)
        print(f"50 ms mechanism, two workers: {share:.1%} of the ideal throughput (target 95 %)")

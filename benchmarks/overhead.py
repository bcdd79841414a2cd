"""What the audit engine adds: stored trials a second with a free mechanism, and throughput against the ideal."""

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


def main() -> None:
    claim = Claim(9.0)
    with tempfile.TemporaryDirectory() as folder:
        lidp.audit(Target(free, Zeros(), score), claim=claim, design=CoinFlip(32), trials=64, stop_when="never")
        start = time.perf_counter()
        trials = 10_000
        lidp.audit(
            Target(free, Zeros(), score),
            claim=claim,
            design=CoinFlip(32),
            trials=trials,
            stop_when="never",
            store=Path(folder) / "a.db",
        )
        seconds = time.perf_counter() - start
        print(f"free mechanism, K=32, one worker, stored: {trials / seconds:,.0f} trials a second (target 2,000)")
        start = time.perf_counter()
        trials = 400
        lidp.audit(
            Target(sleepy, Zeros(), score),
            claim=claim,
            design=CoinFlip(32),
            trials=trials,
            stop_when="never",
            store=Path(folder) / "b.db",
            workers=2,
        )
        seconds = time.perf_counter() - start
        ideal = trials * 0.05 / 2
        print(f"50 ms mechanism, two workers: {ideal / seconds:.1%} of the ideal throughput (target 95 %)")

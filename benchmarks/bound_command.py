"""``lidp bound`` on 128 x 64 scores, after the first time: seconds of the whole command, against importing numba alone."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_REPEATS = 5


def seconds_of(*arguments: str) -> tuple[float, float]:
    """Return the shortest of some runs of a Python process, and its fewest processor seconds, which other work hardly changes."""
    elapsed, used = [], []
    for _ in range(_REPEATS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # our own commands
        elapsed.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(elapsed), min(used)


def main() -> None:
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (128, 64))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npz"
        np.savez(file, scores=coins + 0.5 * rng.standard_normal(coins.shape), coins=coins)
        # The shortest: the first one may compile.
        bound, used = seconds_of("-m", "lidp", "bound", str(file), "--delta", "1e-5")
    numba, _ = seconds_of("-c", "import numba")
    print(
        f"lidp bound, 128 x 64 scores: {bound:.2f} s (asked: at most 1), {used:.2f} s of processor time, {bound / numba:.1f} times "
        "as long as importing numba"
    )

"""``lidp bound`` on 128 x 64 scores, after the first time: seconds of the whole command, against importing numba alone."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_REPEATS = 5


def processor_seconds(*arguments: str) -> float:
    """The processor seconds of a Python process, which other work on the machine hardly changes; the least of some."""
    found = []
    for _ in range(_REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # our own commands
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (128, 64))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npz"
        np.savez(file, scores=coins + 0.5 * rng.standard_normal(coins.shape), coins=coins)
        bound = processor_seconds(
            "-m", "lidp", "bound", str(file), "--delta", "1e-5"
        )  # the least: the first one may compile
    numba = processor_seconds("-c", "import numba")
    print(f"lidp bound, 128 x 64 scores: {bound:.2f} s (target 1), {bound / numba:.1f} times as long as importing numba")

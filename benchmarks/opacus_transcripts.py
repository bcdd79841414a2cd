"""What recording transcripts adds to a step of Opacus: the same training with and without, in turn, in one run.

An MLP on data of Fashion-MNIST's shape, Poisson batches of mean 100, hooks and ghost clipping; 64 watched canaries along one
coordinate each, half of them inserted. Needs the extra ``torch``.
"""

from __future__ import annotations

import itertools
import statistics

import numpy as np

from benchmarks.opacus_overhead import CLASSES, FEATURES, ROUNDS, STEPS, random_records, train_seconds

CANARIES, WANTED = 64, 0.15
WIDTHS = (FEATURES, 256, 256, CLASSES)


def main() -> None:
    import torch

    from lidp.canaries.coordinates import SpreadCoordinates

    torch.set_num_threads(1)
    records = random_records()
    sizes = tuple(size for inputs, outputs in itertools.pairwise(WIDTHS) for size in (inputs * outputs, outputs))
    watched = SpreadCoordinates(sizes).draw(np.random.default_rng(0), CANARIES)
    for mode in ("hooks", "ghost"):
        plain, recorded = [], []
        for _ in range(ROUNDS + 1):
            plain.append(train_seconds(records, mode))
            recorded.append(train_seconds(records, mode, inserted=watched[: CANARIES // 2], watched=watched))
        ratio = statistics.median(b / a for a, b in zip(plain[1:], recorded[1:], strict=True))
        step = 1e6 * statistics.median(plain[1:]) / STEPS
        print(
            f"Opacus, {mode}: {step:,.0f} µs per step; transcripts of {CANARIES} canaries add {100 * (ratio - 1):.1f} % "
            f"(goal: at most {100 * WANTED:.0f} %)"
        )

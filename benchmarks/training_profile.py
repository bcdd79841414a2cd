"""Where the time of a DP-SGD step goes: the parts of the compiled loop, in one run and on one core.

Runs the step up to each part, and prints the differences: so every part finds the caches as it does in training. Then, what random
gradient canaries add to a step. Times are processor times, and the best of interleaved
rounds counts: the machine may be shared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.training import BATCH, CLASSES, FEATURES, NETWORKS, RECORDS, ROUNDS, STEPS, floor, images, ours
from lidp._compiled import clipped_gradients, dp_sgd, noise, panels, prefetching
from lidp._runtime.workers import use_one_core
from lidp.errors import InvalidData
from lidp.training import DPSGD, Kind, Network, TrainingSet
from lidp.training.gradients import RandomSigns

PARTS = (
    "sampling the batch",
    "gathering its records",
    "forward products",
    "softmax",
    "backward products and norms",
    "clipping",
    "products for the gradient",
    "noise",
    "update",
)
CANARIES = 64
UNIT = np.float32(1 / 255)
EPOCHS_RECORDS = 6_000  # few, so that every batch has a canary
FEW_RECORDS = 1_500  # few enough to stay in the cache
Runs = dict[str, Callable[[], float]]


@numba.njit(nogil=True)
def steps_up_to(part, steps, x, y, row_squares, theta, widths, words, lanes, workspace, source):
    """Run steps, each only up to a part by its number in PARTS; as in ``dp_sgd.train``, with Poisson batches and no canaries."""
    capacity = 2 * BATCH
    batch, labels, squares = np.empty(capacity, np.int64), np.zeros(capacity, np.int64), np.empty(capacity)
    rows, signal_squares = np.empty(capacity, np.int64), np.empty(capacity, np.float32)
    activations = np.zeros(capacity * widths.sum(), np.float32)
    signals = np.zeros(capacity * widths[1:].sum(), np.float32)
    norms, largest, factors = np.empty(capacity), np.empty(capacity), np.ones(capacity, np.float32)
    gradient, drawn = np.zeros(theta.shape[0], np.float32), np.zeros(4096, np.float32)
    one = np.float32(1.0)
    upcoming, count = np.empty(capacity, np.int64), 0
    label_counts, sorted_batch = np.empty(CLASSES + 1, np.int64), np.empty(capacity, np.int64)
    for _ in range(steps):
        batch, upcoming = upcoming, batch
        b = count
        count = min(dp_sgd.poisson_batch(words, BATCH / RECORDS, RECORDS, upcoming), capacity)
        if part >= 1:
            if panels.uses_panels(workspace, widths[0], widths[1]):
                dp_sgd.sort_by_label(batch[:b], y, label_counts, sorted_batch)
            dp_sgd.take_examples(x, UNIT, y, row_squares, batch[:b], 0, rows, labels, squares)
            if source is None:
                dp_sgd.copy_examples(x, UNIT, rows[:b], widths[0], activations)
        if part == 1:
            prefetching.prefetch_rows(x, upcoming[:count])  # later parts do it meanwhile
        if part >= 2:
            clipped_gradients.forward(theta, widths, b, source, UNIT, rows[:b], activations, workspace, x, upcoming[:count])
        if part >= 3:
            clipped_gradients.signal_outputs(widths, labels[:b], activations, signals, signal_squares)
        if part >= 4:
            clipped_gradients.backward(theta, widths, squares, activations, signals, signal_squares, norms[:b], largest[:b])
        if part >= 5:
            clipped_gradients.clip_examples(widths, one, norms[:b], largest[:b], activations, signals, factors[:b])
        if part >= 6:
            clipped_gradients.weighted_sums(
                widths, factors[:b], source, UNIT, rows[:b], activations, signals, workspace, gradient
            )
        for first in range(0, theta.shape[0] if part >= 7 else 0, drawn.shape[0]):
            chunk = theta[first : first + drawn.shape[0]]
            noise.fill_noise(lanes, drawn[: chunk.shape[0]], one)
            if part >= 8:
                dp_sgd.update(chunk, gradient[first : first + drawn.shape[0]], drawn, np.float32(1e-4))


def best_seconds(runs: Runs) -> dict[str, float]:
    """Return the shortest time of each run, over rounds in which all take turns."""
    for run in runs.values():
        run()  # compiles, warms up
    seconds = dict.fromkeys(runs, np.inf)
    for _ in range(3 * ROUNDS):
        for name, run in runs.items():
            seconds[name] = min(seconds[name], run())
    return seconds


def part_runs(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], steps: int) -> Runs:
    """Return for each part the time per step up to it."""
    network = Network(FEATURES, CLASSES, hidden)
    widths, start = np.array(network.widths), network.initial(np.random.default_rng(0))
    row_squares = dp_sgd.square_rows(x, UNIT)
    workspace = panels.new_workspace(network.widths, 2 * BATCH, BATCH)
    source = x if dp_sgd.reads_in_place(x, UNIT, network.widths, workspace) else None

    def run(part: int) -> float:
        rng = np.random.default_rng(0)
        words, lanes = rng.integers(0, 2**64, 4, dtype=np.uint64), rng.integers(0, 2**32, (4, noise.LANES), dtype=np.uint32)
        theta = start.copy()
        began = time.process_time()
        steps_up_to(part, steps, x, y, row_squares, theta, widths, words, lanes, workspace, source)
        return (time.process_time() - began) / steps

    return {name: lambda part=part: run(part) for part, name in enumerate(PARTS)}


def canary_runs(x: np.ndarray, y: np.ndarray, steps: int) -> Runs:
    """Return the time per step of training a perceptron without canaries, with some, and of drawing them."""
    network = Network(FEATURES, CLASSES, NETWORKS["MLP 256-256"])
    trainer = DPSGD(network, BATCH / EPOCHS_RECORDS, BATCH, steps, 0.01, 1.0)
    plain = TrainingSet(x[:EPOCHS_RECORDS], y[:EPOCHS_RECORDS], Kind.SIGNS, unit=1 / 255)
    distribution = RandomSigns(network.size)
    planted = plain.with_canaries(distribution.draw(np.random.default_rng(1), CANARIES))

    def timed(act: Callable[[], object]) -> float:
        began = time.process_time()
        act()
        return (time.process_time() - began) / steps

    return {
        "without canaries": lambda: timed(lambda: trainer.train(plain, np.random.default_rng(0))),
        f"with {CANARIES} canaries": lambda: timed(lambda: trainer.train(planted, np.random.default_rng(0))),
        f"drawing {CANARIES} canaries": lambda: timed(lambda: distribution.draw(np.random.default_rng(0), CANARIES)),
    }


def print_table(header: str, seconds: dict[str, float]) -> None:
    print(f"| {header} | µs per step |\n|---|---|")
    for name, value in seconds.items():
        print(f"| {name} | {value * 1e6:,.1f} |")
    print()


def whole_runs(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], steps: int) -> Runs:
    """Return the time per step of the trainer, and of the products alone."""
    train, products_alone = ours(x, y, hidden), floor(hidden)
    return {"step of the trainer": lambda: train(steps) / steps, "floor": lambda: products_alone(1)}


def cached_runs(x: np.ndarray, y: np.ndarray) -> Runs:
    """Return the time per step of training a linear model on few records, which stay in the cache."""
    records = TrainingSet(x[:FEW_RECORDS], y[:FEW_RECORDS], Kind.EXAMPLE, unit=1 / 255)
    trainer = DPSGD(Network(FEATURES, CLASSES), BATCH / FEW_RECORDS, BATCH, STEPS["linear"], 0.01, 1.0)

    def run() -> float:
        began = time.process_time()
        trainer.train(records, np.random.default_rng(0))
        return (time.process_time() - began) / STEPS["linear"]

    return {f"step of the trainer, {FEW_RECORDS:,} records": run}


def print_skipped(x: np.ndarray, y: np.ndarray, batches: int = 200) -> None:
    """Print which share of the products of a wide first layer is skipped because features are 0."""
    rng = np.random.default_rng(0)
    forward, gradient = [], []
    for _ in range(batches):
        batch = rng.choice(RECORDS, BATCH, replace=False)
        rows = x[batch[np.argsort(y[batch], kind="stable")]] == 0
        forward.append(rows.reshape(-1, 4, FEATURES).all(axis=1).mean())
        gradient.append(rows.reshape(BATCH, -1, 4).all(axis=2).mean())
    print(
        f"skipped products of a wide first layer: {np.mean(forward):.0%} forward, {np.mean(gradient):.0%} for the gradient"
    )


def main() -> None:
    use_one_core()
    try:
        x, y = images()
    except InvalidData as error:
        sys.exit(f"not measured: {error}")
    for name, hidden in NETWORKS.items():
        steps = 20 if hidden else 400
        whole = whole_runs(x, y, hidden, STEPS[name]) | ({} if hidden else cached_runs(x, y))
        seconds = best_seconds(part_runs(x, y, hidden, steps) | whole)
        totals = [0.0] + [seconds[part] for part in PARTS]
        differences = {part: after - before for part, before, after in zip(PARTS, totals, totals[1:], strict=False)}
        print_table(name, differences | {label: seconds[label] for label in whole})
    print_table("MLP 256-256, 60 steps on 6,000 records", best_seconds(canary_runs(x, y, 60)))
    print_skipped(x, y)

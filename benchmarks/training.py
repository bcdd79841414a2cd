"""DP-SGD steps a second against Opacus (hooks and ghost clipping) and jax-privacy, in one run and on one core each.

Fashion-MNIST's shape (60,000 x 784, ten classes; the values are made up), Poisson batches of mean 100, clipping, noise. Needs the
extra ``bench``.
"""

from __future__ import annotations

import itertools
import resource
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np

from lidp.training import DPSGD, Kind, Network, TrainingSet
from lidp.workers import use_one_core

RECORDS, FEATURES, CLASSES, BATCH = 60_000, 784, 10, 100
ROUNDS = 3
Steps = Callable[[int], float]
"""Runs so many steps and returns the seconds."""


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((RECORDS, FEATURES), dtype=np.float32), rng.integers(0, CLASSES, RECORDS)


def ours(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...]) -> Steps:
    records = TrainingSet(x, y, Kind.EXAMPLE)

    def run(steps: int) -> float:
        trainer = DPSGD(Network(FEATURES, CLASSES, hidden), BATCH / RECORDS, BATCH, steps, 0.01, 1.0)
        start = time.perf_counter()
        trainer.train(records, np.random.default_rng(0))
        return time.perf_counter() - start

    return run


def opacus(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], mode: str) -> Steps:
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    widths = (FEATURES, *hidden, CLASSES)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model: torch.nn.Module = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    records = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    loader = torch.utils.data.DataLoader(records, batch_size=BATCH)
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        criterion=torch.nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, *rest = made
    criterion = rest[0] if mode == "ghost" else torch.nn.CrossEntropyLoss()
    loader = rest[-1]

    def run(steps: int) -> float:
        batches = iter(loader)
        start = time.perf_counter()
        for _ in range(steps):
            features, labels = next(batches)
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
        return time.perf_counter() - start

    return run


def jax_privacy(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...]) -> Steps:
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipped_grad

    widths = (FEATURES, *hidden, CLASSES)
    key = jax.random.key(0)
    parameters = [(jax.random.normal(key, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)) for a, b in itertools.pairwise(widths)]

    def loss(parameters, features, label):
        signal = features
        for k, (weights, bias) in enumerate(parameters):
            signal = signal @ weights + bias
            signal = jax.nn.relu(signal) if k < len(parameters) - 1 else signal
        return -jax.nn.log_softmax(signal)[label].sum()

    gradient = clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2), keep_batch_dim=False)

    @jax.jit
    def step(parameters, features, labels, key):
        total = gradient(parameters, features, labels)
        leaves, tree = jax.tree.flatten(total)
        keys = jax.random.split(key, len(leaves))
        noisy = [g + jax.random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
        return jax.tree.map(lambda p, g: p - 0.01 / BATCH * g, parameters, jax.tree.unflatten(tree, noisy))

    rng = np.random.default_rng(0)

    def run(steps: int) -> float:
        # A fixed batch size: a new size each step would be compiled anew each step.
        chosen = rng.integers(0, RECORDS, (steps, BATCH))
        now, own = parameters, key
        now = step(now, x[chosen[0]], y[chosen[0]], own)
        start = time.perf_counter()
        for places in chosen:
            own, this = jax.random.split(own)
            now = step(now, x[places], y[places], this)
        jax.block_until_ready(now)
        return time.perf_counter() - start

    return run


def main() -> None:
    warnings.simplefilter("ignore")
    x, y = data()
    with use_one_core():
        for name, hidden, steps in (("linear", (), 100), ("MLP 256-256", (256, 256), 20)):
            ways: dict[str, tuple[Steps, int]] = {"lidp": (ours(x, y, hidden), 20 * steps)}
            for label, make in {
                "Opacus, hooks": lambda hidden=hidden: opacus(x, y, hidden, "hooks"),
                "Opacus, ghost clipping": lambda hidden=hidden: opacus(x, y, hidden, "ghost"),
                "jax-privacy": lambda hidden=hidden: jax_privacy(x, y, hidden),
            }.items():
                try:
                    ways[label] = (make(), steps)
                except ImportError as error:
                    print(f"{label}: not measured ({error})")
            for run, _ in ways.values():
                run(3)  # compiles, warms up
            # Round by round, so that a busy moment of the machine falls on all of them.
            found = {label: [] for label in ways}
            for _ in range(ROUNDS):
                for label, (run, count) in ways.items():
                    found[label].append(run(count) / count)
            best = {label: statistics.median(seconds) for label, seconds in found.items()}
            for label, seconds in best.items():
                ratio = seconds / best["lidp"]
                print(f"{name}, {label}: {seconds * 1e6:,.0f} µs a step, {ratio:.1f} times ours")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process, peers included: {peak:,.0f} MB")

"""What planting canaries adds to a step of Opacus: the same training with and without, in turn, in one run.

An MLP on data of Fashion-MNIST's shape, Poisson batches of mean 100, hooks and ghost clipping; 32 gradient canaries, as half of 64
are in an audit. Needs the extra ``torch``.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

RECORDS, FEATURES, CLASSES, BATCH, STEPS, ROUNDS = 10_000, 784, 10, 100, 40, 7
WANTED = 0.10


def random_records():
    """Return random data of Fashion-MNIST's shape."""
    import torch

    rng = np.random.default_rng(0)
    return torch.utils.data.TensorDataset(
        torch.from_numpy(rng.random((RECORDS, FEATURES), dtype=np.float32)),
        torch.from_numpy(rng.integers(0, CLASSES, RECORDS)),
    )


def main() -> None:
    import torch

    torch.set_num_threads(1)
    records = random_records()
    for mode in ("hooks", "ghost"):
        plain, planted = [], []
        for _ in range(ROUNDS + 1):
            plain.append(train_seconds(records, mode))
            planted.append(train_seconds(records, mode, inserted=np.arange(32)))
        ratio = statistics.median(b / a for a, b in zip(plain[1:], planted[1:], strict=True))
        step = 1e6 * statistics.median(plain[1:]) / STEPS
        print(
            f"Opacus, {mode}: {step:,.0f} µs a step; canaries add {100 * (ratio - 1):.1f} % (asked: below {100 * WANTED:.0f} %)"
        )


def train_seconds(records, mode: str, inserted=None, watched=None) -> float:
    """Return the seconds of ``STEPS`` steps; without ``inserted`` canaries, those of plain Opacus."""
    import torch
    from opacus import PrivacyEngine

    from lidp.integrations.opacus_planting import OpacusPlanting

    torch.manual_seed(0)
    model: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, CLASSES),
    )
    engine = PrivacyEngine()
    model, optimizer, *rest = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(records, batch_size=BATCH),
        criterion=torch.nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    criterion = rest[0] if mode == "ghost" else torch.nn.CrossEntropyLoss()
    if inserted is not None:
        planting = OpacusPlanting(
            inserted, np.random.default_rng(0), watched=watched, length=RECORDS, actual_length=RECORDS
        )
        planting.attach(engine, optimizer, rest[-1])
    batches = iter(rest[-1])
    start = time.perf_counter()
    for _ in range(STEPS):
        features, labels = next(batches)
        optimizer.zero_grad()
        criterion(model(features), labels).backward()
        optimizer.step()
    return time.perf_counter() - start

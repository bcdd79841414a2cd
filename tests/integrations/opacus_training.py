"""A small training script as a user of Opacus would have it, right and wrong."""

from __future__ import annotations

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES, RECORDS = 200, 2, 200


def some_records(count=RECORDS, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((count, FEATURES)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def outliers(count=32, seed=1):
    """Canaries: large examples under the wrong label, whose gradients are far above the clip norm."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, FEATURES)).astype(np.float32)
    x *= 8 / np.linalg.norm(x, axis=1, keepdims=True)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy((x[:, 0] <= 0).astype(np.int64)))


class Script:
    """``train(records, planting)`` with switches for what may be done wrong."""

    loader: dict = {}  # noqa: RUF012

    def __init__(
        self,
        *,
        noise=4.0,
        told=None,
        mode="hooks",
        poisson=True,
        clipping=True,
        attach=True,
        epochs=5,
        batch=100,
        accountant="rdp",
    ):
        self.noise, self.told, self.mode, self.poisson = noise, told, mode, poisson
        self.clipping, self.attach, self.epochs, self.batch, self.accountant = clipping, attach, epochs, batch, accountant
        self.engine = None

    def __call__(self, records, planting):
        model = torch.nn.Linear(FEATURES, CLASSES)
        torch.nn.init.zeros_(model.weight)
        criterion = torch.nn.CrossEntropyLoss()
        engine = self.engine = PrivacyEngine(accountant=self.accountant)
        model, optimizer, *rest = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            criterion=criterion,
            data_loader=DataLoader(records, batch_size=self.batch, shuffle=not self.poisson, **self.loader),
            noise_multiplier=self.told or self.noise,
            max_grad_norm=1.0,
            grad_sample_mode=self.mode,
            poisson_sampling=self.poisson,
        )
        if self.mode == "ghost":
            criterion = rest[0]
        loader = rest[-1]
        if self.told:  # less noise than the accountant knows of
            add_noise, noise = optimizer.add_noise, self.noise

            def with_less_noise():
                told, optimizer.noise_multiplier = optimizer.noise_multiplier, noise
                add_noise()
                optimizer.noise_multiplier = told

            optimizer.add_noise = with_less_noise
        if not self.clipping:

            def sum_as_they_are():
                for p in optimizer.params:
                    p.summed_grad = p.grad_sample.sum(dim=0)

            optimizer.clip_and_accumulate = sum_as_they_are
        if self.attach:
            planting.attach(engine, optimizer, loader)
        for _ in range(self.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
        return model

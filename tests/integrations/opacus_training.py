"""A small training script as a user of Opacus would have it, right and wrong."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
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
        parts=None,
    ):
        self.noise, self.told, self.mode, self.poisson = noise, told, mode, poisson
        self.clipping, self.attach, self.epochs, self.batch, self.accountant = clipping, attach, epochs, batch, accountant
        self.parts = parts
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
            grad_sample_mode="ghost" if self.mode == "fast" else self.mode,
            poisson_sampling=self.poisson,
            **({"use_ghost_clipping": False} if self.mode == "fast" else {}),
        )
        if self.mode in ("ghost", "fast"):
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
        whole = contextlib.nullcontext(loader)
        if self.parts is not None:  # virtual steps
            whole = BatchMemoryManager(data_loader=loader, max_physical_batch_size=self.parts, optimizer=optimizer)
        with whole as batches:
            for _ in range(self.epochs):
                for x, y in self.batches(batches):
                    optimizer.zero_grad()
                    criterion(model(x), y).backward()
                    optimizer.step()
        return model

    def batches(self, loader):
        """What is trained on: as it should be, what the loader gives."""
        return loader

"""A small training script of an Opacus user, with options that make it wrong."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES, RECORDS = 200, 2, 200
MODES = ["hooks", "functorch", "ew", "ghost", "fast"]


def some_records(count=RECORDS, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((count, FEATURES)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def outliers(count=32, seed=1):
    """Return canaries: large examples with the wrong label, whose gradients are far above the clipping norm."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, FEATURES)).astype(np.float32)
    x *= 8 / np.linalg.norm(x, axis=1, keepdims=True)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy((x[:, 0] <= 0).astype(np.int64)))


class Script:
    """A function ``train(records, planting)`` with options for common mistakes.

    With ``stated_noise``, the accountant counts this noise multiplier, but the optimizer adds only ``noise``.
    """

    loader: dict = {}  # noqa: RUF012

    def __init__(
        self,
        *,
        noise=4.0,
        stated_noise=None,
        mode="hooks",
        poisson=True,
        clipping=True,
        attach=True,
        epochs=5,
        batch=100,
        accountant="rdp",
        parts=None,
        optimizer=torch.optim.SGD,
    ):
        self.noise, self.stated_noise, self.mode, self.poisson = noise, stated_noise, mode, poisson
        self.clipping, self.attach, self.epochs, self.batch, self.accountant = clipping, attach, epochs, batch, accountant
        self.parts, self.make_optimizer = parts, optimizer
        self.engine = None

    def __call__(self, records, planting):
        model = torch.nn.Linear(FEATURES, CLASSES)
        torch.nn.init.zeros_(model.weight)
        criterion = torch.nn.CrossEntropyLoss()
        engine = self.engine = PrivacyEngine(accountant=self.accountant)
        model, optimizer, *rest = engine.make_private(
            module=model,
            optimizer=self.make_optimizer(model.parameters(), lr=0.5),
            criterion=criterion,
            data_loader=DataLoader(records, batch_size=self.batch, shuffle=not self.poisson, **self.loader),
            noise_multiplier=self.stated_noise or self.noise,
            max_grad_norm=1.0,
            grad_sample_mode="ghost" if self.mode == "fast" else self.mode,
            poisson_sampling=self.poisson,
            **({"use_ghost_clipping": False} if self.mode == "fast" else {}),
        )
        if self.mode in ("ghost", "fast"):
            criterion = rest[0]
        loader = rest[-1]
        if self.stated_noise:
            add_noise, noise = optimizer.add_noise, self.noise

            def with_less_noise():
                stated, optimizer.noise_multiplier = optimizer.noise_multiplier, noise
                add_noise()
                optimizer.noise_multiplier = stated

            optimizer.add_noise = with_less_noise
        if not self.clipping:

            def sum_without_clipping():
                for p in optimizer.params:
                    p.summed_grad = p.grad_sample.sum(dim=0)

            optimizer.clip_and_accumulate = sum_without_clipping
        if self.attach:
            planting.attach(engine, optimizer, loader)
        batches = contextlib.nullcontext(loader)
        if self.parts is not None:  # virtual steps
            batches = BatchMemoryManager(data_loader=loader, max_physical_batch_size=self.parts, optimizer=optimizer)
        with batches as loader:
            for _ in range(self.epochs):
                for x, y in self.batches(loader):
                    optimizer.zero_grad()
                    criterion(model(x), y).backward()
                    optimizer.step()
        return model

    def batches(self, loader):
        """Return the batches to train on; subclasses may take them from elsewhere."""
        return loader

"""A DP-SGD loop in plain PyTorch whose clipped sums are known, with options that make it wrong."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import torch

RECORDS = (np.linspace(-1, 2, 20, dtype=np.float32), np.zeros(20, np.int64))
NAMES = ("first.weight", "first.bias", "second.weight", "second.bias")
SIZES = (120, 12, 36, 3)


class NoisyLoop:
    """A function ``train(records, planting)`` with Gaussian noise.

    The claim is about the noise multiplier ``stated``; the loop adds ``noise``, and none to the parameters called ``silent``.
    """

    def __init__(self, *, noise=2.0, stated=2.0, rate=0.5, steps=10, clip_norm=1.0, silent="", releases=True):
        self.noise, self.stated, self.rate, self.steps, self.clip_norm = noise, stated, rate, steps, clip_norm
        self.silent, self.releases = silent, releases

    def __call__(self, records, planting):
        layers = OrderedDict(first=torch.nn.Linear(10, 12), second=torch.nn.Linear(12, 3))
        model = torch.nn.Sequential(layers)
        parameters = dict(model.named_parameters())
        self.watch(model, planting)
        for _ in range(self.steps):
            sums = [torch.full_like(p, float(records[0].sum())) + p.detach() for p in parameters.values()]
            planting.add(sums, clip_norm=self.clip_norm, rate=self.rate)
            stds = [self.clip_norm * (0.0 if name == self.silent else self.noise) for name in parameters]
            noisy = [total + std * torch.randn_like(total) for total, std in zip(sums, stds, strict=True)]
            if self.releases:
                planting.released(noisy, clip_norm=self.clip_norm, noise_multiplier=self.stated, rate=self.rate)
            with torch.no_grad():
                for parameter, total in zip(parameters.values(), noisy, strict=True):
                    parameter -= 0.1 * total
        return model

    def watch(self, model, planting):
        """Pass the parameters to the planting; subclasses may pass them without names."""
        planting.watch(model.named_parameters())

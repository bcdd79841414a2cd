"""``Planting``: adds gradient canaries to a training loop in PyTorch, and collects what scores need.

A canary is stored as a seed, from which its direction is drawn whenever it is needed: the directions of many canaries of a large
model would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lidp.arrays import Floats, Ints, Singles
from lidp.errors import AuditFailed
from lidp.training.gradients import RandomGradients

if TYPE_CHECKING:
    import torch

_MAX_CACHED_NUMBERS = 2**26
"""Largest total size of directions that are kept in memory instead of being drawn again: 256 MB."""
_MAX_RELEASED_NUMBERS = 2**26
"""Largest total size of the noisy gradients of one run that white-box scores keep: 256 MB."""


@dataclass(frozen=True)
class GradientSeeds:
    """Canaries that are gradients in uniformly random directions, each given by a seed."""

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """Return ``size`` seeds."""
        return rng.integers(0, 2**62, size)


def directions(seeds: Iterable[int], size: int) -> Singles:
    """Return the directions of canaries, one row of length 1 per seed; each has ``size`` numbers."""
    drawn = [RandomGradients(size).draw(np.random.default_rng(int(seed)), 1)[0] for seed in seeds]
    return np.array(drawn, np.float32).reshape(len(drawn), size)


class Planting:
    """Adds canaries to the sums of clipped gradients of one training run, and records what the run released.

    A training loop calls :meth:`watch` once with its parameters, :meth:`add` at every step with the sums of clipped gradients
    before it adds noise, and, for white-box scores, :meth:`released` with the noisy sums.
    """

    def __init__(
        self,
        seeds: Ints,
        rng: np.random.Generator,
        *,
        white_box: bool = False,
        noiseless: bool = False,
        required: bool = True,
    ) -> None:
        """Create the planting of one run.

        If ``required``, a run that never calls :meth:`add` ends the audit, whether or not canaries were to be inserted.
        """
        self._seeds = seeds  # which canaries are inserted; hidden from the training loop
        self.white_box = white_box
        self.required = required
        self.noiseless = noiseless
        """Whether this is a pilot run, which needs no noise. Loops may ignore it."""
        self.steps = 0
        self._rng = rng
        self._parameters: list[torch.Tensor] = []
        self._start = np.empty(0, np.float32)
        self._cached_directions: Singles | None = None
        self._step_in_epoch = np.empty(0, np.int64)
        self._released: list[Singles] = []
        self._weights: list[tuple[float, float]] = []

    @property
    def watches(self) -> bool:
        """Whether the loop has called :meth:`watch`."""
        return bool(self._parameters)

    @property
    def size(self) -> int:
        """Number of parameters, and so of numbers in a gradient."""
        return len(self._start)

    def watch(self, parameters: Iterable[torch.Tensor]) -> None:
        """Record the values of the parameters before training."""
        if self._parameters:
            raise AuditFailed("planting.watch was called twice; each run gets a new planting")
        self._parameters = list(parameters)
        if not self._parameters:
            raise AuditFailed("there are no parameters to watch; pass model.parameters()")
        self._start = _flat(self._parameters)
        if len(self._seeds) * self.size <= _MAX_CACHED_NUMBERS:
            self._cached_directions = directions(self._seeds, self.size)

    def add(
        self, sums: Iterable[torch.Tensor], *, clip_norm: float, rate: float, steps_per_epoch: int | None = None
    ) -> None:
        """Add the canaries sampled in this step, each of length ``clip_norm``, to the sums of clipped gradients, in place.

        Each canary is sampled with probability ``rate``. If the batches of an epoch partition a shuffled data set, pass
        ``steps_per_epoch``: each canary is then sampled in one step of each epoch.

        Raises:
            AuditFailed: if canaries cannot be added. This happens in every run or in none, and so reveals nothing about the coins.
        """
        sums = list(sums)
        if not self._parameters:
            raise AuditFailed("call planting.watch(parameters) before the first step")
        numbers = sum(tensor.numel() for tensor in sums)
        if numbers != self.size:
            raise AuditFailed(f"the sums have {numbers:,} numbers, but the watched parameters have {self.size:,}")
        sampled = self._sample(rate, steps_per_epoch)
        self.steps += 1
        if not len(sampled):
            return
        total = np.zeros(self.size, np.float32)
        for number in sampled:  # one by one: indexing all at once would copy them
            total += self._direction(number)
        total *= np.float32(clip_norm)
        _add_in_parts(total, sums)

    def _direction(self, number: int) -> Singles:
        if self._cached_directions is not None:
            cached: Singles = self._cached_directions[number]
            return cached
        drawn: Singles = directions(self._seeds[[number]], self.size)[0]
        return drawn

    def _sample(self, rate: float, steps_per_epoch: int | None) -> Ints:
        if steps_per_epoch is None:
            return np.flatnonzero(self._rng.random(len(self._seeds)) < rate)
        if self.steps % steps_per_epoch == 0:
            self._step_in_epoch = self._rng.integers(0, steps_per_epoch, len(self._seeds))
        return np.flatnonzero(self._step_in_epoch == self.steps % steps_per_epoch)

    def released(self, sums: Sequence[torch.Tensor], *, clip_norm: float, noise_multiplier: float, rate: float) -> None:
        """Record the sums with noise that a step releases, before they are scaled. Without white-box scores, do nothing."""
        if not self.white_box:
            return
        if (len(self._released) + 1) * self.size > _MAX_RELEASED_NUMBERS:
            raise AuditFailed(
                f"white-box scores would keep more than {_MAX_RELEASED_NUMBERS:,} numbers of one run "
                f"({self.size:,} per step); use a smaller model, fewer steps, or scores of the final model"
            )
        self._released.append(_flat(sums) / np.float32(clip_norm))
        self._weights.append((rate, noise_multiplier))

    def outcome(self, model: Any) -> Trained:
        """Return the outcome of the run, for scores.

        Raises:
            AuditFailed: if the run cannot have planted canaries.
        """
        if self.required and not (self.watches and self.steps):
            raise AuditFailed(
                "the training loop planted no canaries: call planting.attach(engine, optimizer, loader) with Opacus, or "
                "planting.watch(parameters) and at every step planting.add(sums, ...)"
            )
        moved = _flat(self._parameters) - self._start if self.watches else self._start
        steps = np.array(self._released, np.float32) if self._released else None
        return Trained(model, moved, self.steps, steps, np.array(self._weights, np.float64).reshape(-1, 2))


@dataclass(frozen=True)
class Trained:
    """The outcome of a training run."""

    model: Any
    moved: Singles
    """Change of all parameters by the training."""
    steps: int
    released: Singles | None
    """Noisy gradient of each step, in units of the clipping norm; None without white-box scores."""
    weights: Floats
    """Sampling rate and noise multiplier of each step for which ``released`` was called."""


def _add_in_parts(gradient: Singles, sums: Sequence[torch.Tensor]) -> None:
    """Add a flat gradient to tensors, each of which gets the part of its own shape."""
    import torch

    whole, start = torch.from_numpy(gradient), 0
    with torch.no_grad():
        for tensor in sums:
            part = whole[start : start + tensor.numel()].reshape(tensor.shape)
            tensor.add_(part.to(device=tensor.device, dtype=tensor.dtype))
            start += tensor.numel()


def _flat(tensors: Sequence[torch.Tensor]) -> Singles:
    return np.concatenate([tensor.detach().cpu().numpy().ravel() for tensor in tensors]).astype(np.float32)

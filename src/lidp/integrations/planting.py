"""``Planting``: gradient canaries for a training loop in PyTorch, and what scores will look at.

A canary is a seed, from which its direction is drawn anew whenever it is needed: models have many parameters, and canaries are
many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lidp.errors import AuditFailed
from lidp.training.gradients import RandomGradients

if TYPE_CHECKING:
    import torch

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

_KEPT_NUMBERS = 2**26
"""Directions are kept, not drawn anew, as long as they have no more numbers than this in all."""
_RELEASED_NUMBERS = 2**26
"""Numbers of noisy gradients that white-box scores may keep of one run: 256 MB."""


@dataclass(frozen=True)
class GradientSeeds:
    """Canaries that are gradients in uniformly random directions, each given by a seed."""

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """So many seeds."""
        return rng.integers(0, 2**62, size)


def directions(seeds: Iterable[int], size: int) -> Singles:
    """The directions of some canaries, of length 1, a row each."""
    drawn = [RandomGradients(size).draw(np.random.default_rng(int(seed)), 1)[0] for seed in seeds]
    return np.array(drawn, np.float32).reshape(len(drawn), size)


class Planting:
    """Given to a training run: it adds canaries where the run sums up clipped gradients, and remembers what was released.

    Use in a loop of one's own: :meth:`watch` the parameters once, :meth:`add` at every step to the sums of clipped gradients before
    noise is added, and for white-box scores tell what was :meth:`released` after it.
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
        """If ``required``, a run that never adds canaries ends the audit, whether or not it had any to add."""
        self._seeds = seeds  # who is in, which is no business of the loop's
        self.white_box = white_box
        self.required = required
        self.noiseless = noiseless
        """whether this is a pilot run that needs no noise; loops may ignore it"""
        self.steps = 0
        self._rng = rng
        self._parameters: list[torch.Tensor] = []
        self._start = np.empty(0, np.float32)
        self._kept: Singles | None = None
        self._turns = np.empty(0, np.int64)
        self._released: list[Singles] = []
        self._weights: list[tuple[float, float]] = []

    @property
    def watches(self) -> bool:
        """Whether the loop has said what it trains."""
        return bool(self._parameters)

    @property
    def size(self) -> int:
        """How many numbers a gradient has."""
        return len(self._start)

    def watch(self, parameters: Iterable[torch.Tensor]) -> None:
        """Remember parameters as they are before training."""
        if self._parameters:
            raise AuditFailed("this run watches its parameters already; each run gets a planting of its own")
        self._parameters = list(parameters)
        if not self._parameters:
            raise AuditFailed("there are no parameters to watch; pass model.parameters()")
        self._start = _flat(self._parameters)
        if len(self._seeds) * self.size <= _KEPT_NUMBERS:
            self._kept = directions(self._seeds, self.size)

    def add(self, sums: Iterable[torch.Tensor], *, clip_norm: float, rate: float, once_in: int | None = None) -> None:
        """Add the canaries that are sampled in this step, each of length ``clip_norm``, to sums of clipped gradients, in place.

        Each is sampled with probability ``rate``; or, if batches are a shuffled data set cut up, ``once_in`` so many steps.

        Raises:
            AuditFailed: if they cannot be added; in every run alike, so that failing tells nothing of the coins.
        """
        sums = list(sums)
        if not self._parameters:
            raise AuditFailed("call planting.watch(parameters) before the first step")
        numbers = sum(tensor.numel() for tensor in sums)
        if numbers != self.size:
            raise AuditFailed(f"the sums have {numbers:,} numbers, the watched parameters {self.size:,}")
        sampled = self._sample(rate, once_in)
        self.steps += 1
        if not len(sampled):
            return
        total = np.zeros(self.size, np.float32)
        for number in sampled:  # one after the other: an array of them all would be copied first
            total += self._direction(number)
        total *= np.float32(clip_norm)
        self._spread(total, sums)

    def _direction(self, number: int) -> Singles:
        found: Singles = directions(self._seeds[[number]], self.size)[0] if self._kept is None else self._kept[number]
        return found

    def _sample(self, rate: float, once_in: int | None) -> Ints:
        if once_in is None:
            return np.flatnonzero(self._rng.random(len(self._seeds)) < rate)
        if self.steps % once_in == 0:
            self._turns = self._rng.integers(0, once_in, len(self._seeds))
        return np.flatnonzero(self._turns == self.steps % once_in)

    def _spread(self, gradient: Singles, sums: Sequence[torch.Tensor]) -> None:
        import torch

        whole, place = torch.from_numpy(gradient), 0
        with torch.no_grad():
            for tensor in sums:
                part = whole[place : place + tensor.numel()].reshape(tensor.shape)
                tensor.add_(part.to(device=tensor.device, dtype=tensor.dtype))
                place += tensor.numel()

    def released(self, sums: Sequence[torch.Tensor], *, clip_norm: float, noise_multiplier: float, rate: float) -> None:
        """Tell what a step has released: the sums with noise, before they are scaled. Only white-box scores keep it."""
        if not self.white_box:
            return
        if (len(self._released) + 1) * self.size > _RELEASED_NUMBERS:
            raise AuditFailed(
                f"white-box scores would keep more than {_RELEASED_NUMBERS:,} numbers of one run "
                f"({self.size:,} a step); use a smaller model, fewer steps, or scores of the final model"
            )
        self._released.append(_flat(sums) / np.float32(clip_norm))
        self._weights.append((rate, noise_multiplier))

    def outcome(self, model: Any) -> Trained:
        """What the run gives to scores.

        Raises:
            AuditFailed: if canaries cannot have been planted.
        """
        if self.required and not (self.watches and self.steps):
            raise AuditFailed(
                "the training loop planted nothing: call planting.attach(engine, optimizer, loader) with Opacus, or "
                "planting.watch(parameters) and at every step planting.add(sums, ...)"
            )
        moved = _flat(self._parameters) - self._start if self.watches else self._start
        steps = np.array(self._released, np.float32) if self._released else None
        return Trained(model, moved, self.steps, steps, np.array(self._weights, np.float64).reshape(-1, 2))


@dataclass(frozen=True)
class Trained:
    """A trained model; how far its parameters moved, which scores of gradients look at; and if asked for what each step released.

    ``weights`` has the sampling rate and the noise multiplier of each step.
    """

    model: Any
    moved: Singles
    steps: int
    released: Singles | None
    weights: NDArray[np.float64]


def _flat(tensors: Sequence[torch.Tensor]) -> Singles:
    return np.concatenate([tensor.detach().cpu().numpy().ravel() for tensor in tensors]).astype(np.float32)

"""The gradients of canaries among the parameters of a model: add them to sums, and read what sums show of them.

Sums are arrays of numpy or tensors of PyTorch, one for each array or tensor of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Floats, Ints, Singles
from lidp.canaries.coordinates import locate
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.gradient_canaries import directions
from lidp.integrations.parameter_arrays import ParameterArray, add_at, add_flat, flatten

if TYPE_CHECKING:
    import torch

_MAX_CACHED_NUMBERS = 2**26
"""Largest total size of directions that are kept in memory instead of being drawn again: 256 MB."""


class PlantedGradients(Protocol):
    """The gradients of some canaries, each of length 1, for a model of known parameters."""

    groups: Ints | None
    """The number of the array of parameters that each canary changes; None if canaries change several."""

    def add(self, sums: Sequence[ParameterArray], chosen: Ints, length: float) -> None:
        """Add the gradients of the chosen canaries, times ``length``, to sums in place."""

    def snapshot(self, sums: Sequence[ParameterArray]) -> NDArray[Any]:
        """Return a copy of what :meth:`products` needs of sums."""
        ...

    def products(self, before: NDArray[Any], sums: Sequence[ParameterArray]) -> Floats:
        """Return the inner product of each gradient with the sums minus those of an earlier snapshot."""
        ...


def gradients_of(canaries: NDArray[Any], group_sizes: Sequence[int]) -> PlantedGradients:
    """Return the gradients of canaries, which are seeds of random directions or rows (coordinate, sign)."""
    if canaries.ndim == 1:
        return RandomDirections(canaries, sum(group_sizes))
    return Coordinates(canaries, group_sizes)


class RandomDirections:
    """Gradients in random directions, given by seeds. A snapshot holds all numbers of the sums."""

    groups: Ints | None = None

    def __init__(self, seeds: Ints, size: int) -> None:
        self._seeds, self._size = seeds, size
        self._cached: Singles | None = None
        if len(seeds) * size <= _MAX_CACHED_NUMBERS:
            self._cached = directions(seeds, size)

    def _direction(self, number: int) -> Singles:
        if self._cached is not None:
            cached: Singles = self._cached[number]
            return cached
        drawn: Singles = directions(self._seeds[[number]], self._size)[0]
        return drawn

    def add(self, sums: Sequence[ParameterArray], chosen: Ints, length: float) -> None:
        total = np.zeros(self._size, np.float32)
        for number in chosen:  # one by one: indexing all at once would copy them
            total += self._direction(number)
        total *= np.float32(length)
        add_flat(total, sums)

    def snapshot(self, sums: Sequence[ParameterArray]) -> Singles:
        return flatten(sums)

    def products(self, before: NDArray[Any], sums: Sequence[ParameterArray]) -> Floats:
        residual = flatten(sums) - before
        if self._cached is not None:
            products: Floats = (self._cached @ residual).astype(np.float64)
            return products
        return np.array([self._direction(number) @ residual for number in range(len(self._seeds))], np.float64)


class Coordinates:
    """Gradients along one coordinate, given by rows (coordinate, sign). A snapshot holds one number per canary."""

    groups: Ints | None

    def __init__(self, canaries: NDArray[Any], group_sizes: Sequence[int]) -> None:
        coordinates, self._signs = canaries[:, 0].astype(np.int64), canaries[:, 1].astype(np.float64)
        try:
            self.groups, self._within = locate(coordinates, group_sizes)
        except InvalidArgument as error:
            raise AuditFailed(f"{error}; watch the same parameters in every run") from error
        self._order = np.argsort(self.groups, kind="stable")
        self._used_groups = [int(group) for group in np.unique(self.groups)]
        self._indices: dict[tuple[int, torch.device], torch.Tensor] = {}

    def add(self, sums: Sequence[ParameterArray], chosen: Ints, length: float) -> None:
        assert self.groups is not None  # noqa: S101  # for the type checker
        for group in np.unique(self.groups[chosen]):
            numbers = chosen[self.groups[chosen] == group]
            add_at(sums[group], self._within[numbers], length * self._signs[numbers])

    def snapshot(self, sums: Sequence[ParameterArray]) -> Floats:
        values = np.empty(len(self._signs))
        if len(values):
            parts = [sums[group] for group in self._used_groups]
            values[self._order] = (
                np.concatenate(self._read_arrays(sums))
                if all(isinstance(part, np.ndarray) for part in parts)
                else self._read_tensors(sums)
            )
        return values

    def _read_arrays(self, sums: Sequence[Any]) -> list[Floats]:
        """Return the values at the coordinates of the canaries of each group, from arrays of numpy."""
        return [sums[group].reshape(-1)[self._within[self.groups == group]] for group in self._used_groups]

    def _read_tensors(self, sums: Sequence[Any]) -> Floats:
        """Return the values at the coordinates of all canaries, by group, from tensors of PyTorch."""
        import torch

        parts = [sums[group].detach().reshape(-1)[self._index(group, sums[group].device)] for group in self._used_groups]
        # One copy to the processor: each copy waits for the device.
        values: Floats = torch.cat([part.to(parts[0].device) for part in parts]).cpu().double().numpy()
        return values

    def _index(self, group: int, device: torch.device) -> torch.Tensor:
        """Return the positions of all canaries in a tensor, on its device."""
        import torch

        if (group, device) not in self._indices:
            self._indices[group, device] = torch.from_numpy(self._within[self.groups == group]).to(device)
        return self._indices[group, device]

    def products(self, before: NDArray[Any], sums: Sequence[ParameterArray]) -> Floats:
        products: Floats = self._signs * (self.snapshot(sums) - before)
        return products

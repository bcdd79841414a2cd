"""Read and change the parameters, or sums of gradients, of a model: arrays of numpy or tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Floats, Ints, Singles
from lidp.errors import AuditFailed

if TYPE_CHECKING:
    import torch

ParameterArray: TypeAlias = "NDArray[Any] | torch.Tensor"


def require_arrays(arrays: Sequence[Any], what: str) -> None:
    """Raise unless all are arrays of floating-point numbers, or tensors; ``what`` names them in the message.

    Raises:
        AuditFailed: whichever canaries are inserted, so that failing reveals nothing about the coins.
    """
    for array in arrays:
        if not isinstance(array, np.ndarray) and not hasattr(array, "numel"):
            raise AuditFailed(f"{what} must be arrays of numpy or tensors of PyTorch, got {type(array).__name__}")
        if isinstance(array, np.ndarray) and array.dtype.kind != "f":
            raise AuditFailed(f"{what} must hold floating-point numbers, got an array of {array.dtype}")


def require_writeable(arrays: Sequence[Any], what: str) -> None:
    """Raise if an array of numpy is read-only; ``what`` names the arrays in the message.

    Raises:
        AuditFailed: whichever canaries are inserted, so that failing reveals nothing about the coins.
    """
    if any(isinstance(array, np.ndarray) and not array.flags.writeable for array in arrays):
        raise AuditFailed(f"{what} contain a read-only array, to which no canary can be added; pass copies")


def count_numbers(array: ParameterArray) -> int:
    """Return how many numbers an array or a tensor has."""
    return array.size if isinstance(array, np.ndarray) else array.numel()


def flatten(arrays: Sequence[ParameterArray]) -> Singles:
    """Return a copy of all numbers of some arrays or tensors, in one array of float32."""
    return np.concatenate([_as_singles(array).ravel() for array in arrays])


def _as_singles(array: ParameterArray) -> Singles:
    if isinstance(array, np.ndarray):
        with np.errstate(over="ignore"):  # runs that diverge
            return array.astype(np.float32)
    singles: Singles = array.detach().cpu().float().numpy()
    return singles


def add_flat(gradient: Singles, arrays: Sequence[ParameterArray]) -> None:
    """Add a flat gradient to arrays or tensors in place; each gets the part of its own shape."""
    start = 0
    for array in arrays:
        size = count_numbers(array)
        _add(array, gradient[start : start + size].reshape(tuple(array.shape)))
        start += size


def _add(array: ParameterArray, part: Singles) -> None:
    if isinstance(array, np.ndarray):
        array += part.astype(array.dtype)
        return
    import torch

    with torch.no_grad():
        array.add_(torch.from_numpy(part).to(device=array.device, dtype=array.dtype))


def add_at(array: ParameterArray, positions: Ints, values: Floats) -> None:
    """Add values at positions of the flattened array or tensor, in place."""
    if isinstance(array, np.ndarray):
        flat = array.reshape(-1)
        np.add.at(flat, positions, values.astype(array.dtype))
        if not np.shares_memory(flat, array):
            array[...] = flat.reshape(array.shape)
        return
    import torch

    with torch.no_grad():
        numbers = torch.from_numpy(values).to(array.dtype).to(array.device)
        flattened = array.view(-1) if array.is_contiguous() else array.reshape(-1)
        flattened.index_add_(0, torch.from_numpy(positions).to(array.device), numbers)
        if not array.is_contiguous():
            array.copy_(flattened.view_as(array))

"""Type aliases of numpy arrays, by the type of their numbers, and views that cannot be written to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Array = TypeVar("Array", bound=NDArray[Any])
NamedArrays = Mapping[str, NDArray[Any]]
"""Arrays by name, such as those of a preparation step."""


def read_only(array: Array) -> Array:
    """Return a view of an array that cannot be written to. Loops are compiled once more for arrays that can."""
    view = array.view()
    view.flags.writeable = False
    return view

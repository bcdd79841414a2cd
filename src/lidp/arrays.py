"""Type aliases of numpy arrays, by the type of their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
NamedArrays = Mapping[str, NDArray[Any]]
"""Arrays by name, such as those of a preparation step."""

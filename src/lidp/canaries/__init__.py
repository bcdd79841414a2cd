"""Canary distributions: what is planted."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class CanaryDistribution(Protocol):
    """Where canaries come from. All canaries of an audit, inserted and held-out, are drawn alike and independently."""

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """``size`` independent canaries."""
        ...

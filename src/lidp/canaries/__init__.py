"""Canary distributions: what is planted."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class CanaryDistribution(Protocol):
    """Where canaries come from. All canaries of an audit, inserted and held-out, are drawn alike and independently.

    A distribution that depends on the preparation step of a target (a decomposition of the data, labels that reference models find
    hard) also has ``prepared(arrays)``, which returns the distribution to draw from.
    """

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """``size`` independent canaries."""
        ...

"""Distributions from which canaries are drawn."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class CanaryDistribution(Protocol):
    """A distribution of canaries. All canaries of an audit, inserted and held-out, are drawn from it independently.

    A distribution that depends on the preparation step of a target (such as labels that pilot models find hard) also has
    ``prepared(arrays)``, which returns the distribution from which to draw.
    """

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """Return ``size`` independent canaries."""
        ...

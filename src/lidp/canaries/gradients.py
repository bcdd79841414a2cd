"""The kinds of gradient canaries."""

from __future__ import annotations

from enum import StrEnum


class GradientCanary(StrEnum):
    """The kind of gradient canaries; all have the length of the clipping norm."""

    RANDOM_GRADIENT = "random-gradient"
    """A gradient in a uniformly random direction, given by a seed."""
    DIRAC_GRADIENT = "dirac-gradient"
    """A gradient along one coordinate, given by a row (coordinate, sign); different canaries have different coordinates."""

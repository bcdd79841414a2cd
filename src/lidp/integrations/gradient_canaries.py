"""Gradient canaries for training loops of other libraries: their kinds, their distributions, and what scores look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lidp.arrays import Floats, Ints, NamedArrays, Singles
from lidp.canaries.coordinates import SpreadCoordinates
from lidp.canaries.gradients import GradientCanary
from lidp.errors import InvalidArgument
from lidp.training.gradients import RandomGradients

GROUP_SIZES = "group_sizes"
"""The array of a preparation step that holds the number of parameters of each group, such as a layer's weights."""


class ScoredOutput(StrEnum):
    """What scores look at."""

    FINAL_MODEL = "final-model"
    """The parameters, or the losses, of the trained model."""
    TRANSCRIPT = "transcript"
    """What every step releases, which the accountant covers."""


@dataclass(frozen=True)
class GradientSeeds:
    """The distribution of gradients in uniformly random directions, each given by a seed.

    The directions of many canaries of a large model would not fit into memory. They are drawn whenever they are needed.
    """

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """Return ``size`` seeds."""
        return rng.integers(0, 2**62, size)


def directions(seeds: Iterable[int], size: int) -> Singles:
    """Return the directions of canaries, one row of length 1 per seed; each has ``size`` numbers."""
    drawn = [RandomGradients(size).draw(np.random.default_rng(int(seed)), 1)[0] for seed in seeds]
    return np.array(drawn, np.float32).reshape(len(drawn), size)


@dataclass(frozen=True)
class CoordinatesOfModel:
    """Gradients along different coordinates, spread over the groups of parameters that a preparation step has counted.

    Its preparation step returns the array ``group_sizes``. A canary is a row (coordinate, sign); see :class:`SpreadCoordinates`.
    """

    def prepared(self, arrays: NamedArrays) -> SpreadCoordinates:
        """Return the distribution for the groups of the prepared arrays."""
        return SpreadCoordinates(tuple(int(size) for size in arrays[GROUP_SIZES]))

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Raise: the number of coordinates is not known yet."""
        raise InvalidArgument("the coordinates of a model come from a preparation step, which has not run")


def interference(scored: ScoredOutput, canary: GradientCanary | None, *, poisson: bool = True) -> str | None:
    """Return why the score of one canary depends on other canaries of its run; None if it does not.

    ``canary`` is None for canaries that are records.
    """
    if scored is not ScoredOutput.TRANSCRIPT or canary is None:
        remedy = "" if canary is not None else " and gradient canaries"
        return f"the final model mixes what all canaries have added; use scores='transcript'{remedy}"
    if canary is GradientCanary.RANDOM_GRADIENT:
        return "random gradients overlap; use canary='dirac-gradient'"
    return None if poisson else "shuffled batches are not what the accountant assumes; use Poisson sampling"

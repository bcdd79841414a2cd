"""Scores that find canaries in trained parameters, relative to pilot models that were trained without any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.training.model import Network

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
_NO_PILOTS: Arrays = {}


class RowScore(ABC):
    """A score of canaries that are rows of an array: of all of them at once, or of one."""

    @abstractmethod
    def many(self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: Arrays = _NO_PILOTS, /) -> Floats:
        """The scores of an array of canaries, a row each."""

    def __call__(
        self, theta: NDArray[np.floating], canary: NDArray[np.floating], prepared: Arrays = _NO_PILOTS, /
    ) -> float:
        return float(self.many(theta, np.asarray(canary)[None], prepared)[0])


class OverlapScore(RowScore):
    """A score of gradients, to which other gradients contribute by what they have in common."""

    @abstractmethod
    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        """The inner products of a canary with others, a row each."""


@dataclass(frozen=True)
class GradientScore(OverlapScore):
    """Minus the inner product of a gradient canary with the parameters' distance from the centre of pilot models.

    Descent moves against a gradient, so an inserted canary makes this large. What all models learn is in the centre and drops out.
    ``centred=False`` is the paper's raw score, in which it does not.
    """

    centred: bool = True

    def many(self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: Arrays = _NO_PILOTS, /) -> Floats:
        moved = theta - prepared["centre"] if self.centred else theta
        # In the precision of the canaries: an array of them is large, and would be copied to be widened.
        found: Floats = -(canaries @ moved.astype(canaries.dtype)).astype(np.float64)
        return found

    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        return np.asarray(others @ canary, np.float64)


@dataclass(frozen=True)
class CoordinateScore(OverlapScore):
    """The same for canaries along one coordinate."""

    centred: bool = True

    def many(self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: Arrays = _NO_PILOTS, /) -> Floats:
        moved = theta - prepared["centre"] if self.centred else np.asarray(theta, np.float64)
        found: Floats = -canaries[:, 1] * moved[canaries[:, 0].astype(np.int64)]
        return found

    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        found: Floats = np.where(others[:, 0] == canary[0], others[:, 1] * canary[1], 0.0)
        return found


@dataclass(frozen=True)
class Contribution:
    """What an inserted gradient is expected to add to the score of another.

    ``moved`` is how far a gradient of length 1 is expected to move the parameters; see :attr:`DPSGD.moved`.
    """

    score: OverlapScore
    moved: float

    def many(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        """The contributions of others, a row each."""
        return self.moved * self.score.overlaps(canary, others)

    def __call__(self, canary: NDArray[np.floating], other: NDArray[np.floating]) -> float:
        return float(self.many(canary, np.asarray(other)[None])[0])


@dataclass(frozen=True)
class LossScore(RowScore):
    """How much smaller the loss on an example is than under pilot models, in units of its spread among them.

    ``centred=False`` is the paper's score: minus the loss.
    """

    network: Network
    centred: bool = True

    def many(self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: Arrays = _NO_PILOTS, /) -> Floats:
        features = self.network.features
        losses = self.network.losses(theta, canaries[:, :features], canaries[:, features].astype(np.int64))
        if not self.centred:
            return -losses
        numbers = canaries[:, features + 1].astype(np.int64)
        found: Floats = (prepared["pool_losses"][numbers] - losses) / prepared["pool_spreads"][numbers]
        return found

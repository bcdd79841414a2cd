"""Scores of canaries from trained parameters, relative to pilot models that were trained without canaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Floats, NamedArrays
from lidp.training.gradients import signed_gradient, signed_products
from lidp.training.model import Network

_NO_PILOTS: NamedArrays = {}


class RowScore(ABC):
    """A score of canaries that are rows of an array. It scores all of them at once, or one."""

    @abstractmethod
    def many(
        self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> Floats:
        """Return the score of each row."""

    def __call__(
        self, theta: NDArray[np.floating], canary: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> float:
        return float(self.many(theta, np.asarray(canary)[None], prepared)[0])


class OverlapScore(RowScore):
    """A score of gradient canaries, to which another inserted gradient contributes by its inner product with the canary."""

    @abstractmethod
    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        """Return the inner product of a canary with each row of ``others``."""


@dataclass(frozen=True)
class GradientScore(OverlapScore):
    """Minus the inner product of a gradient canary with the difference of the parameters from the mean of pilot models.

    Descent moves parameters against a gradient, so an inserted canary increases this score. Subtracting the mean removes what all
    models learn. ``centred=False`` is the paper's raw score, which does not subtract it.
    """

    centred: bool = True

    def many(
        self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> Floats:
        difference = theta - prepared["centre"] if self.centred else theta
        # In the precision of the canaries: converting their large array to float64 would copy it.
        scores: Floats = -(canaries @ difference.astype(canaries.dtype)).astype(np.float64)
        return scores

    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        return np.asarray(others @ canary, np.float64)


@dataclass(frozen=True)
class SignScore(OverlapScore):
    """Like :class:`GradientScore`, for canaries of :class:`RandomSigns` in models of ``dimension`` parameters."""

    dimension: int
    centred: bool = True

    def many(
        self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> Floats:
        return -signed_products(canaries, theta - prepared["centre"] if self.centred else theta)

    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        return signed_products(others, signed_gradient(canary, self.dimension))


@dataclass(frozen=True)
class CoordinateScore(OverlapScore):
    """Like :class:`GradientScore`, for canaries along one coordinate."""

    centred: bool = True

    def many(
        self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> Floats:
        difference = theta - prepared["centre"] if self.centred else np.asarray(theta, np.float64)
        scores: Floats = -canaries[:, 1] * difference[canaries[:, 0].astype(np.int64)]
        return scores

    def overlaps(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        products: Floats = np.where(others[:, 0] == canary[0], others[:, 1] * canary[1], 0.0)
        return products


@dataclass(frozen=True)
class Contribution:
    """Expected contribution of an inserted gradient to the score of another canary.

    ``expected_shift`` is the expected shift of the parameters by a gradient of length 1; see :attr:`DPSGD.expected_shift`.
    """

    score: OverlapScore
    expected_shift: float

    def many(self, canary: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
        """Return the contribution of each row of ``others`` to the score of ``canary``."""
        return self.expected_shift * self.score.overlaps(canary, others)

    def __call__(self, canary: NDArray[np.floating], other: NDArray[np.floating]) -> float:
        return float(self.many(canary, np.asarray(other)[None])[0])


@dataclass(frozen=True)
class LossScore(RowScore):
    """Mean loss of pilot models on an example minus its loss in this model, in units of its spread among the pilot models.

    ``centred=False`` is the paper's score: minus the loss.
    """

    network: Network
    centred: bool = True

    def many(
        self, theta: NDArray[np.floating], canaries: NDArray[np.floating], prepared: NamedArrays = _NO_PILOTS, /
    ) -> Floats:
        features = self.network.features
        losses = self.network.losses(theta, canaries[:, :features], canaries[:, features].astype(np.int64))
        if not self.centred:
            return -losses
        numbers = canaries[:, features + 1].astype(np.int64)
        scores: Floats = (prepared["pool_losses"][numbers] - losses) / prepared["pool_spreads"][numbers]
        return scores

"""Linear models and multi-layer perceptrons as flat vectors of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lidp import checks

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Network:
    """Layers of these widths with rectifiers between them; softmax and cross-entropy at the end.

    ``Network(784, 10)`` is a linear model. Parameters are one vector: for each layer its weights (outputs x inputs), then its
    biases.
    """

    features: int
    classes: int
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        checks.count(features=self.features)
        checks.count(classes=self.classes)
        for width in self.hidden:
            checks.count(hidden=width)

    @property
    def widths(self) -> tuple[int, ...]:
        """Features, hidden layers, classes."""
        return (self.features, *self.hidden, self.classes)

    @property
    def size(self) -> int:
        """How many parameters."""
        return sum((inputs + 1) * outputs for inputs, outputs in self._pairs())

    def initial(self, rng: np.random.Generator) -> Singles:
        """Zeros for a linear model; otherwise weights of variance 2/inputs, which keeps the size of signals through rectifiers."""
        if not self.hidden:
            return np.zeros(self.size, np.float32)
        parts = []
        for inputs, outputs in self._pairs():
            parts += [rng.standard_normal(inputs * outputs) * (2 / inputs) ** 0.5, np.zeros(outputs)]
        return np.concatenate(parts).astype(np.float32)

    def logits(self, theta: NDArray[np.floating], x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Scores of the classes, a row per example, in the precision of the examples."""
        signal: NDArray[np.floating] = np.asarray(x)
        place = 0
        for layer, (inputs, outputs) in enumerate(self._pairs()):
            weights = theta[place : place + inputs * outputs].reshape(outputs, inputs)
            place += inputs * outputs
            signal = signal @ weights.T + theta[place : place + outputs]
            place += outputs
            if layer < len(self.hidden):
                signal = np.maximum(signal, 0)
        return signal

    def losses(self, theta: NDArray[np.floating], x: NDArray[np.floating], y: NDArray[np.integer]) -> NDArray[np.float64]:
        """Cross-entropy of each example."""
        logits = self.logits(theta, np.asarray(x, dtype=np.float64))
        logits -= logits.max(axis=1, keepdims=True)
        found: NDArray[np.float64] = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), y]
        return found

    def accuracy(self, theta: NDArray[np.floating], x: NDArray[np.floating], y: NDArray[np.integer]) -> float:
        """The share of examples whose class is found."""
        with np.errstate(over="ignore", invalid="ignore"):  # scores that overflow are wrong guesses, no error
            return float(np.mean(self.logits(theta, x).argmax(axis=1) == y))

    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.widths[:-1], self.widths[1:], strict=True))

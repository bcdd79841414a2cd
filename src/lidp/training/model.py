"""Linear models and multi-layer perceptrons whose parameters are one flat vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Floats, Ints, Singles
from lidp.canaries.coordinates import locate


@dataclass(frozen=True)
class Network:
    """Linear layers of the given widths with rectifiers between them, followed by softmax and cross-entropy.

    ``Network(784, 10)`` is a linear model. The vector of parameters holds, for each layer, its weights (outputs x inputs) and then
    its biases.
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
        """Widths of the input, of the hidden layers and of the output."""
        return (self.features, *self.hidden, self.classes)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum((inputs + 1) * outputs for inputs, outputs in self._layer_shapes())

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups of parameters: the weights and the biases of each layer."""
        return tuple(f"layer {layer} {part}" for layer in range(1, len(self.widths)) for part in ("weights", "biases"))

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """The number of parameters of each group."""
        return tuple(size for inputs, outputs in self._layer_shapes() for size in (inputs * outputs, outputs))

    def group_of(self, coordinates: Ints) -> Ints:
        """Return for each coordinate of the vector of parameters the number of its group in :attr:`group_names`."""
        return locate(coordinates, self.group_sizes)[0]

    def initial(self, rng: np.random.Generator) -> Singles:
        """Return initial parameters: zeros for a linear model, otherwise weights of variance 2/inputs and zero biases.

        This variance preserves the size of signals through rectifiers.
        """
        if not self.hidden:
            return np.zeros(self.size, np.float32)
        parts = []
        for inputs, outputs in self._layer_shapes():
            parts += [rng.standard_normal(inputs * outputs) * (2 / inputs) ** 0.5, np.zeros(outputs)]
        return np.concatenate(parts).astype(np.float32)

    def logits(self, theta: NDArray[np.floating], x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the logits of the classes, one row per example, in the precision of the examples."""
        signal: NDArray[np.floating] = np.asarray(x)
        start = 0
        for layer, (inputs, outputs) in enumerate(self._layer_shapes()):
            weights = theta[start : start + inputs * outputs].reshape(outputs, inputs)
            start += inputs * outputs
            signal = signal @ weights.T + theta[start : start + outputs]
            start += outputs
            if layer < len(self.hidden):
                signal = np.maximum(signal, 0)
        return signal

    def losses(self, theta: NDArray[np.floating], x: NDArray[np.floating], y: NDArray[np.integer]) -> Floats:
        """Return the cross-entropy of each example."""
        logits = self.logits(theta, np.asarray(x, dtype=np.float64))
        logits -= logits.max(axis=1, keepdims=True)
        losses: Floats = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), y]
        return losses

    def accuracy(self, theta: NDArray[np.floating], x: NDArray[np.floating], y: NDArray[np.integer]) -> float:
        """Return the share of examples that are classified correctly."""
        with np.errstate(over="ignore", invalid="ignore"):  # logits that overflow count as wrong, not as an error
            return float(np.mean(self.logits(theta, x).argmax(axis=1) == y))

    def _layer_shapes(self) -> list[tuple[int, int]]:
        return list(zip(self.widths[:-1], self.widths[1:], strict=True))

"""Gradient boosting for outputs of many parts, as one more column that views look at."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.workers import use_one_core
from lidp.pairs.classifier import OnlineClassifier, Views
from lidp.pairs.columns import Columns

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_FEW = 3
"""Columns up to which views alone see everything."""
_FIRST = 1_000
"""Runs before the first model is fitted; then again whenever they have tripled."""
_MOST = 50_000
"""Past runs that a model is fitted on."""


def default_classifier(outputs: Columns) -> OnlineClassifier:
    """Views; with boosting where outputs have many parts, if scikit-learn is there."""
    if len(outputs.names) > _FEW and find_spec("sklearn") is not None:
        return Boosted()
    return Views()


@dataclass(frozen=True)
class _Fitted:
    """A model with the columns that it was fitted on."""

    model: Any
    names: tuple[str, ...]

    def add_to(self, outputs: Columns) -> Columns:
        """The outputs with one column more."""
        values = outputs.select(self.names)
        with use_one_core():
            chance = np.clip(self.model.predict_proba(_finite(values))[:, 1], 1e-6, 1 - 1e-6)
        logits = np.log(chance / (1 - chance))
        return outputs.with_column(COLUMN, logits)


COLUMN = "boosted prediction"


def _finite(values: Floats) -> Floats:
    """The model knows missing values, but none that are infinite."""
    found: Floats = np.where(np.isinf(values), np.sign(values) * 1e300, values)
    return found


class Boosted(OnlineClassifier):
    """Views over outputs and over the prediction of a model that was fitted on past runs.

    The prediction is not trusted as it is: views cut it into bins and count coins there, on runs that the model was not fitted on.
    """

    def __init__(self) -> None:
        self._views = Views()
        self._seen: list[tuple[Columns, Bools]] = []
        self._runs = 0
        self._next_fit = _FIRST
        self._fitted: _Fitted | None = None

    def predict_and_learn(self, outputs: Columns, coins: Bools) -> Floats:
        """See :class:`OnlineClassifier`."""
        if self._runs >= self._next_fit:
            self._fit()
        logits = self._views.predict_and_learn(outputs if self._fitted is None else self._fitted.add_to(outputs), coins)
        self._runs += len(outputs)
        if sum(len(columns) for columns, _ in self._seen) < _MOST:
            self._seen.append((outputs, coins))
        return logits

    def _fit(self) -> None:
        """Fit on half of the past; let new views learn from all of it, and see the prediction only where it is honest."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        names = tuple(dict.fromkeys(name for columns, _ in self._seen for name in columns.names))
        values = np.concatenate([columns.select(names) for columns, _ in self._seen])
        coins = np.concatenate([flips for _, flips in self._seen])
        identities = np.concatenate([columns.identities for columns, _ in self._seen])
        texts = {identity: text for columns, _ in self._seen for identity, text in (columns.texts or {}).items()}
        known = None if self._seen[0][0].texts is None else texts
        half = len(values) // 2
        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, learning_rate=0.1, random_state=0)
        with use_one_core():  # on so few rows threads cost more than they gain
            model.fit(_finite(values[:half]), coins[:half])
        self._fitted = _Fitted(model, names)
        self._views = Views()
        past = Columns(names, values, identities, known)
        self._views.learn(past.part(0, half), coins[:half])
        self._views.learn(self._fitted.add_to(past.part(half, len(values))), coins[half:])
        self._next_fit = 3 * self._runs

    def forget(self, runs: int) -> None:
        """See :class:`OnlineClassifier`."""
        self._views.forget(runs)
        self._runs -= runs

    def explain(self) -> str:
        """See :class:`OnlineClassifier`."""
        return self._views.explain(self._runs)

"""Gradient boosting for outputs with many columns; its prediction becomes one more column for the views."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from lidp._runtime.workers import use_one_core
from lidp.arrays import Bools, Floats
from lidp.pairs.classifier import OnlineClassifier, Views
from lidp.pairs.columns import Columns

_FEW_COLUMNS = 3
"""Up to this many columns, views alone suffice."""
_FIRST_FIT_RUNS = 1_000
"""Runs before the first fit; the model is fitted again whenever the runs have tripled."""
_MOST_RUNS = 50_000
"""Past runs on which a model is fitted, at most."""


def default_classifier(outputs: Columns) -> OnlineClassifier:
    """Return views, with boosting if outputs have many columns and scikit-learn is installed."""
    if len(outputs.names) > _FEW_COLUMNS and find_spec("sklearn") is not None:
        return Boosted()
    return Views()


@dataclass(frozen=True)
class _Fitted:
    """A model and the columns on which it was fitted."""

    model: Any
    names: tuple[str, ...]

    def add_to(self, outputs: Columns) -> Columns:
        """Return the outputs with the prediction of the model as a further column."""
        values = outputs.select(self.names)
        with use_one_core():
            chance = np.clip(self.model.predict_proba(_finite(values))[:, 1], 1e-6, 1 - 1e-6)
        logits = np.log(chance / (1 - chance))
        return outputs.with_column(COLUMN, logits)


COLUMN = "boosted prediction"


def _finite(values: Floats) -> Floats:
    """Return the values with infinities replaced: the model handles missing values, but not infinite ones."""
    finite: Floats = np.where(np.isinf(values), np.sign(values) * 1e300, values)
    return finite


class Boosted(OnlineClassifier):
    """Views of the outputs and of the prediction of a model that is fitted on past runs.

    The prediction is not used directly: views cut it into bins and count coins there, on runs on which the model was not fitted.
    """

    def __init__(self) -> None:
        self._views = Views()
        self._seen: list[tuple[Columns, Bools]] = []
        self._runs = 0
        self._next_fit = _FIRST_FIT_RUNS
        self._fitted: _Fitted | None = None

    def predict_and_learn(self, outputs: Columns, coins: Bools) -> Floats:
        """See :class:`OnlineClassifier`."""
        if self._runs >= self._next_fit:
            self._fit()
        logits = self._views.predict_and_learn(outputs if self._fitted is None else self._fitted.add_to(outputs), coins)
        self._runs += len(outputs)
        if sum(len(columns) for columns, _ in self._seen) < _MOST_RUNS:
            self._seen.append((outputs, coins))
        return logits

    def _fit(self) -> None:
        """Fit the model on the first half of the past, and let new views see its prediction on the second half only."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        names = tuple(dict.fromkeys(name for columns, _ in self._seen for name in columns.names))
        values = np.concatenate([columns.select(names) for columns, _ in self._seen])
        coins = np.concatenate([flips for _, flips in self._seen])
        identities = np.concatenate([columns.identities for columns, _ in self._seen])
        texts = {identity: text for columns, _ in self._seen for identity, text in (columns.texts or {}).items()}
        known = None if self._seen[0][0].texts is None else texts
        half = len(values) // 2
        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, learning_rate=0.1, random_state=0)
        with use_one_core():  # with so few rows, threads cost more than they save
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

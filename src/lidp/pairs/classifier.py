"""Predict from an output on which of two data sets a run was, and learn from run to run.

The wager is valid for any prediction made from past runs and the current output. The default classifier sorts outputs into bins by
many simple *views*: one column cut at its quantiles, coarsely and finely; two columns at once; the whole output. Every view counts
coins per bin, and all views predict, weighted by their success so far.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from lidp.arrays import Bools, Floats
from lidp.pairs.columns import Columns
from lidp.pairs.views import Cuts, Recurring, choose_views

UNCERTAIN = "no output for certain"
"""How the explanation begins if no difference is significant."""


class Classifier(Protocol):
    """A user's classifier for :func:`lidp.audit_pair`. It sees the coins of a block after it has predicted them.

    Of the block in which the claim is refuted, it sees only the runs up to the refutation, which the result counts.
    """

    def predict(self, outputs: Columns) -> Floats:
        """Return the log-odds that each run was on d1, given its output and past runs; 0 where nothing is known."""
        ...

    def learn(self, outputs: Columns, coins: Bools) -> None:
        """Learn from past runs; a coin of 1 means d1."""
        ...

    def explain(self) -> str:
        """Return in words where the outputs of the two data sets differ most."""
        ...


class OnlineClassifier(ABC):
    """A classifier that learns run by run within a block. It receives the coins before it predicts, so it must be trusted."""

    @abstractmethod
    def predict_and_learn(self, outputs: Columns, coins: Bools) -> Floats:
        """Return log-odds for each coin (1 means d1) from earlier coins only; then learn from all coins."""

    @abstractmethod
    def forget(self, runs: int) -> None:
        """Forget the last ``runs`` runs of the last block, which the result does not count. No prediction follows."""

    @abstractmethod
    def explain(self) -> str:
        """Return in words where the outputs of the two data sets differ most."""


class Views(OnlineClassifier):
    """The default classifier."""

    def __init__(self) -> None:
        self._views: list[Cuts | Recurring] = []
        self._counts = np.zeros((0, 1, 2))
        self._trust = np.zeros(0)
        self._coins = np.zeros(2)
        self._seen: list[tuple[Columns, Bools]] = []
        self._runs = 0
        self._next_look = 0
        self._last: tuple[Columns, Bools, Floats, Floats] | None = None

    def predict_and_learn(self, outputs: Columns, coins: Bools) -> Floats:
        """See :class:`OnlineClassifier`. Bins are chosen from past outputs; nothing is staked on the first block."""
        warm_up = not self._seen
        if self._runs >= self._next_look:
            self._look(outputs)
        self._last = (outputs, coins, self._counts.copy(), self._coins.copy())
        logits = self._count(outputs, coins)
        if warm_up:
            # The outputs of this block chose the bins: a mechanism with memory could reveal an earlier coin in a later output.
            logits[:] = 0.0
        self._runs += len(outputs)
        if sum(len(columns) for columns, _ in self._seen) < _KEPT:
            self._seen.append((outputs, coins))
        return logits

    def forget(self, runs: int) -> None:
        """See :class:`OnlineClassifier`."""
        if not runs or self._last is None:
            return
        outputs, coins, self._counts, self._coins = self._last
        kept = len(outputs) - runs
        self._count(outputs.part(0, kept), coins[:kept])
        self._runs -= runs
        self._last = None

    def learn(self, outputs: Columns, coins: Bools) -> None:
        """Learn from past runs before the first prediction."""
        self._seen.append((outputs, coins))
        self._runs += len(outputs)

    def _look(self, outputs: Columns) -> None:
        """Choose new views, with finer bins the more runs there are, and let them learn from past runs."""
        past = [columns for columns, _ in self._seen] or [outputs]
        names = tuple(dict.fromkeys(name for columns in past for name in columns.names))
        values = np.concatenate([columns.select(names) for columns in past])
        self._views = choose_views(names, values, past)
        width = max(view.bins for view in self._views)
        self._counts = np.zeros((len(self._views), width, 2))
        self._trust = np.full(len(self._views), 1 / len(self._views))
        self._coins = np.zeros(2)
        for columns, coins in self._seen:
            self._count(columns, coins)
        self._next_look = 4 * max(self._runs, 64)

    def _count(self, outputs: Columns, coins: Bools) -> Floats:
        from lidp._compiled import online_classifier

        bins = np.column_stack([view.bins_of(outputs) for view in self._views]).astype(np.int64)
        logits = np.empty(len(outputs))
        self._coins += np.bincount(coins.astype(np.int64), minlength=2)
        online_classifier.predict_online(bins, coins, self._counts, self._trust, logits)
        return logits

    def explain(self, runs: int | None = None) -> str:
        """Return in words the bin whose counts of the two coins differ most, and whether the difference is significant.

        Significance accounts for the number of bins. ``runs`` is the number of all runs, if these views saw only some of them;
        the text says if not all runs are counted.
        """
        best, words = -math.inf, "nothing"
        bins = int((self._counts.sum(axis=2) > 0).sum())
        errors = math.sqrt(2 * math.log(20 * max(bins, 1)))
        on_d0, on_d1 = self._coins
        for v, view in enumerate(self._views):
            rates = (self._counts[v] + 0.5) / (self._coins + 1)
            # the log-ratio minus so many standard errors that by chance no bin would be above 0
            error = np.sqrt((1 / (self._counts[v] + 0.5)).sum(axis=1))
            certain = np.abs(np.log(rates[:, 1] / rates[:, 0])) - errors * error
            index = int(np.argmax(certain))
            if certain[index] > best:
                best = float(certain[index])
                zero, one = self._counts[v, index]
                counted = f"{zero:,.0f} of {on_d0:,.0f} runs on d0, {one:,.0f} of {on_d1:,.0f} on d1"
                words = f"{' '.join(view.describe(index).split())[:160]}: {counted}"
        if self._coins.sum() < (self._runs if runs is None else runs):
            words += f" (counted in {self._coins.sum():,.0f} of the runs)"
        return words if best > 0 else f"{UNCERTAIN}; most of all {words}"


_KEPT = 100_000
"""Past runs from which new views learn, at most."""

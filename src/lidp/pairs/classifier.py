"""Predict from an output on which of two data sets a run was, and learn from run to run.

The wager is valid for any prediction made from past runs and the current output. The default classifier sorts outputs into bins by
many simple *views*: one column cut at its quantiles, coarsely and finely; two columns at once; the whole output. Every view counts
coins per bin, and all views predict, weighted by their success so far.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lidp.arrays import Bools, Floats, Ints
from lidp.pairs.columns import Columns
from lidp.pairs.outputs import TEXTS_PER_BLOCK

_BINS = 64
"""Bins per view, at most; one of them is for missing values."""
_PAIRED = 6
"""The first columns, of which every pair has views."""
_FEW_VALUES = 14
"""A column of at most this many distinct values gets one bin per value in views of two columns."""
_MOST_RECURRING = 512
"""Distinct whole outputs that are counted, at most."""


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


@dataclass(frozen=True)
class _Cuts:
    """A view of one or two columns, cut into intervals that include their lower end; missing values have their own bin."""

    names: tuple[str, ...]
    cuts: tuple[Floats, ...]

    def bins_of(self, columns: Columns) -> Ints:
        values = columns.select(self.names)
        bins = np.zeros(len(values), dtype=np.int64)
        for k, cuts in enumerate(self.cuts):
            column = values[:, k]
            inside = np.searchsorted(cuts, column, side="right")
            bins = bins * (len(cuts) + 2) + np.where(np.isnan(column), len(cuts) + 1, inside)
        return bins

    @property
    def bins(self) -> int:
        return int(np.prod([len(cuts) + 2 for cuts in self.cuts]))

    def describe(self, index: int) -> str:
        words = []
        for name, cuts in reversed(list(zip(self.names, self.cuts, strict=True))):
            index, inside = divmod(index, len(cuts) + 2)
            if inside == len(cuts) + 1:
                words.append(f"no {name}")
            elif inside == 0:
                words.append(f"{name} below {cuts[0]:.4g}" if len(cuts) else f"any {name}")
            elif inside == len(cuts):
                words.append(f"{name} of at least {cuts[-1]:.4g}")
            elif np.nextafter(cuts[inside - 1], np.inf) == cuts[inside]:
                words.append(f"{name} = {cuts[inside - 1]:.4g}")
            else:
                words.append(f"{name} from {cuts[inside - 1]:.4g} to {cuts[inside]:.4g}")
        return " and ".join(reversed(words))


@dataclass
class _Recurring:
    """A view of whole outputs: one bin for each of the most frequent ones."""

    identities: Floats
    texts: tuple[str, ...]

    def bins_of(self, columns: Columns) -> Ints:
        order = np.argsort(self.identities, kind="stable")
        ranked = self.identities[order]
        at = np.minimum(np.searchsorted(ranked, columns.identities), len(ranked) - 1)
        return np.where(ranked[at] == columns.identities, order[at], -1)

    @property
    def bins(self) -> int:
        return len(self.identities)

    def describe(self, index: int) -> str:
        return f"output {self.texts[index]}"


class Views(OnlineClassifier):
    """The default classifier."""

    def __init__(self) -> None:
        self._views: list[_Cuts | _Recurring] = []
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
        self._views = _choose(names, values, past)
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
        return words if best > 0 else f"no output for certain; most of all {words}"


_KEPT = 100_000
"""Past runs from which new views learn, at most."""


def _choose(names: Sequence[str], values: Floats, past: Sequence[Columns]) -> list[_Cuts | _Recurring]:
    runs = len(values)
    sizes = [bins for bins in (4, 8, 16, 32, 62) if bins <= max(4, runs // 24)]
    views: list[_Cuts | _Recurring] = []
    useful = []
    for k, name in enumerate(names):
        column = values[:, k]
        known = column[~np.isnan(column)]
        missing = len(known) < runs
        if len(known) and (missing or known.min() < known.max()):
            useful.append((name, known))
            fine = dict.fromkeys(
                tuple(_cuts(known, bins)) for bins in (sizes if len(names) <= 8 else sizes[:: len(sizes) - 1 or 1])
            )
            views += [_Cuts((name,), (np.array(cuts),)) for cuts in fine]
    for (one, first), (other, second) in itertools.combinations(useful[:_PAIRED], 2):
        views += [_Cuts((one, other), (_few_cuts(first, bins), _few_cuts(second, bins))) for bins in (3, 7)]
    recurring = _commonest(past)
    if recurring is not None:
        views.append(recurring)
    return views or [_Cuts((names[0] if names else "value",), (np.zeros(0),))]


def _few_cuts(known: Floats, bins: int) -> Floats:
    """Return the cuts of a column in a view of two columns: all values if there are few, otherwise quantiles."""
    values = np.unique(known)
    if len(values) <= _FEW_VALUES:
        return values
    return np.unique(np.quantile(known, np.arange(1, bins) / bins, method="lower"))


def _cuts(known: Floats, bins: int) -> Floats:
    """Return where to cut a column: at its quantiles and around frequent values."""
    values, counts = np.unique(known, return_counts=True)
    frequent = values[counts >= max(2, len(known) / (2 * bins))]
    quantiles = (
        np.quantile(known, np.arange(1, bins) / bins, method="lower")
        if np.isfinite(known).all()
        else values[1 :: max(1, len(values) // bins)]
    )
    if len(frequent):
        order = np.argsort(-counts[np.searchsorted(values, frequent)], kind="stable")[: bins // 2]
        frequent = frequent[order]
    cuts: Floats = np.unique(np.concatenate([quantiles, frequent, np.nextafter(frequent, np.inf)]))
    return cuts[: _BINS - 2]


def _commonest(past: Sequence[Columns]) -> _Recurring | None:
    """Return a view of the outputs that have recurred, None if none has."""
    counts: dict[float, int] = {}
    described: dict[float, Columns] = {}
    for columns in past:
        for identity in columns.identities[:TEXTS_PER_BLOCK].tolist():
            counts[identity] = counts.get(identity, 0) + 1
            described.setdefault(identity, columns)
    often = sorted((identity for identity, count in counts.items() if count > 1), key=lambda identity: -counts[identity])
    often = often[:_MOST_RECURRING]
    if not often:
        return None
    return _Recurring(np.array(often), tuple(described[identity].describe(identity) for identity in often))

"""Telling two data sets apart by outputs, learning as it goes.

The wager is valid for any prediction made from past runs and the output at hand. This one looks at outputs through many simple
*views*, each of which sorts them into bins: a column cut at its quantiles, coarsely and finely; two columns at once; the output
as a whole. Every view counts coins by bin, and all of them predict, weighted by how well each has done so far.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lidp.pairs.columns import Columns
from lidp.pairs.outputs import TEXTS_PER_BLOCK

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_BINS = 64
"""At most so many bins in a view (one is for what is missing)."""
_PAIRED = 6
"""Columns of which all pairs are looked at together."""
_FEW_VALUES = 14
"""Values of a column that are each a bin of their own where two columns are looked at."""
_WHOLES = 512
"""Distinct outputs that are counted as a whole."""


class Classifier(Protocol):
    """A classifier of one's own for :func:`lidp.audit_pair`. It is shown the coins of a block after it has predicted them.

    Of the block in which the claim falls it is shown the runs up to there: those that the result counts.
    """

    def predict(self, outputs: Columns) -> Floats:
        """Log-odds that each run was on d1, from its output and from what was learned; 0 where nothing is known."""
        ...

    def learn(self, outputs: Columns, coins: Bools) -> None:
        """Learn from runs that are past; a coin of 1 means d1."""
        ...

    def explain(self) -> str:
        """Where the two data sets differ most, in words."""
        ...


class OnlineClassifier(ABC):
    """A classifier that learns within a block too, run by run. It sees the coins, so it must be one that can be trusted."""

    @abstractmethod
    def predict_and_learn(self, outputs: Columns, coins: Bools) -> Floats:
        """Log-odds for each coin (1 means d1), made without looking at it or at later ones; then learn from all of them."""

    @abstractmethod
    def forget(self, runs: int) -> None:
        """Forget the last runs of the last block, which the result does not count. Nothing is predicted afterwards."""

    @abstractmethod
    def explain(self) -> str:
        """Where the two data sets differ most, in words."""


@dataclass(frozen=True)
class _Cuts:
    """A view of one or two columns, cut into intervals. A value beyond all cuts of ties gets bins of its own: cuts are closed."""

    names: tuple[str, ...]
    cuts: tuple[Floats, ...]

    def places(self, columns: Columns) -> Ints:
        values = columns.select(self.names)
        found = np.zeros(len(values), dtype=np.int64)
        for k, cuts in enumerate(self.cuts):
            column = values[:, k]
            inside = np.searchsorted(cuts, column, side="right")
            found = found * (len(cuts) + 2) + np.where(np.isnan(column), len(cuts) + 1, inside)
        return found

    @property
    def bins(self) -> int:
        return int(np.prod([len(cuts) + 2 for cuts in self.cuts]))

    def describe(self, place: int) -> str:
        words = []
        for name, cuts in reversed(list(zip(self.names, self.cuts, strict=True))):
            place, inside = divmod(place, len(cuts) + 2)
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
    """A view of outputs as a whole: the commonest ones, each a bin."""

    identities: Floats
    texts: tuple[str, ...]

    def places(self, columns: Columns) -> Ints:
        order = np.argsort(self.identities, kind="stable")
        ranked = self.identities[order]
        at = np.minimum(np.searchsorted(ranked, columns.identities), len(ranked) - 1)
        return np.where(ranked[at] == columns.identities, order[at], -1)

    @property
    def bins(self) -> int:
        return len(self.identities)

    def describe(self, place: int) -> str:
        return f"output {self.texts[place]}"


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
        """See :class:`OnlineClassifier`. Bins are chosen from past outputs; on the first block nothing is staked."""
        warm_up = not self._seen
        if self._runs >= self._next_look:
            self._look(outputs)
        self._last = (outputs, coins, self._counts.copy(), self._coins.copy())
        logits = self._count(outputs, coins)
        if warm_up:
            # Its own outputs chose the bins. A mechanism that remembers earlier runs could tell an earlier coin in a later output.
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
        """Learn from past runs, before any prediction."""
        self._seen.append((outputs, coins))
        self._runs += len(outputs)

    def _look(self, outputs: Columns) -> None:
        """Choose views anew, with finer bins the more is known, and let them learn from what is past."""
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

        places = np.column_stack([view.places(outputs) for view in self._views]).astype(np.int64)
        logits = np.empty(len(outputs))
        self._coins += np.bincount(coins.astype(np.int64), minlength=2)
        online_classifier.predict_online(places, coins, self._counts, self._trust, logits)
        return logits

    def explain(self, runs: int | None = None) -> str:
        """The bin whose counts of the two coins differ most; and whether for certain, given how many bins there are.

        If there were more runs than are counted, that is said; ``runs`` is how many there were, if these views saw only some.
        """
        best, words = -math.inf, "nothing"
        bins = int((self._counts.sum(axis=2) > 0).sum())
        errors = math.sqrt(2 * math.log(20 * max(bins, 1)))
        on_d0, on_d1 = self._coins
        for v, view in enumerate(self._views):
            rates = (self._counts[v] + 0.5) / (self._coins + 1)
            # the log-ratio less so many standard errors that none of the bins would be above 0 by chance
            error = np.sqrt((1 / (self._counts[v] + 0.5)).sum(axis=1))
            certain = np.abs(np.log(rates[:, 1] / rates[:, 0])) - errors * error
            place = int(np.argmax(certain))
            if certain[place] > best:
                best = float(certain[place])
                zero, one = self._counts[v, place]
                counted = f"{zero:,.0f} of {on_d0:,.0f} runs on d0, {one:,.0f} of {on_d1:,.0f} on d1"
                words = f"{' '.join(view.describe(place).split())[:160]}: {counted}"
        if self._coins.sum() < (self._runs if runs is None else runs):
            words += f" (counted in {self._coins.sum():,.0f} of the runs)"
        return words if best > 0 else f"no output for certain; most of all {words}"


_KEPT = 100_000
"""Past runs that new views learn from."""


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
    """Cuts for two columns at once: every value, if there are few, else the quantiles of a coarse view."""
    values = np.unique(known)
    if len(values) <= _FEW_VALUES:
        return values
    return np.unique(np.quantile(known, np.arange(1, bins) / bins, method="lower"))


def _cuts(known: Floats, bins: int) -> Floats:
    """Where to cut a column: at its quantiles, and around values that recur."""
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
    often = often[:_WHOLES]
    if not often:
        return None
    return _Recurring(np.array(often), tuple(described[identity].describe(identity) for identity in often))

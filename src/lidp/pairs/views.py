"""Views of outputs: sort outputs into bins by one column, by two columns at once, or by the whole output."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Floats, Ints
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


@dataclass(frozen=True)
class Cuts:
    """A view of one or two columns, cut into intervals that include their lower end; missing values have their own bin."""

    names: tuple[str, ...]
    cuts: tuple[Floats, ...]

    def bins_of(self, columns: Columns) -> Ints:
        """Return the bin of each output."""
        values = columns.select(self.names)
        bins = np.zeros(len(values), dtype=np.int64)
        for k, cuts in enumerate(self.cuts):
            column = values[:, k]
            inside = np.searchsorted(cuts, column, side="right")
            bins = bins * (len(cuts) + 2) + np.where(np.isnan(column), len(cuts) + 1, inside)
        return bins

    @property
    def bins(self) -> int:
        """The number of bins."""
        return int(np.prod([len(cuts) + 2 for cuts in self.cuts]))

    def describe(self, index: int) -> str:
        """Return a bin in words."""
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
class Recurring:
    """A view of whole outputs: one bin for each of the most frequent ones."""

    identities: Floats
    texts: tuple[str, ...]

    def bins_of(self, columns: Columns) -> Ints:
        """Return the bin of each output, -1 if it has none."""
        order = np.argsort(self.identities, kind="stable")
        ranked = self.identities[order]
        at = np.minimum(np.searchsorted(ranked, columns.identities), len(ranked) - 1)
        return np.where(ranked[at] == columns.identities, order[at], -1)

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.identities)

    def describe(self, index: int) -> str:
        """Return a bin in words."""
        return f"output {self.texts[index]}"


def choose_views(names: Sequence[str], values: Floats, past: Sequence[Columns]) -> list[Cuts | Recurring]:
    """Return views of past outputs, with finer bins the more there are; their coins play no part in the choice."""
    runs = len(values)
    sizes = [bins for bins in (4, 8, 16, 32, 62) if bins <= max(4, runs // 24)]
    views: list[Cuts | Recurring] = []
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
            views += [Cuts((name,), (np.array(cuts),)) for cuts in fine]
    for (one, first), (other, second) in itertools.combinations(useful[:_PAIRED], 2):
        views += [Cuts((one, other), (_few_cuts(first, bins), _few_cuts(second, bins))) for bins in (3, 7)]
    recurring = _commonest(past)
    if recurring is not None:
        views.append(recurring)
    return views or [Cuts((names[0] if names else "value",), (np.zeros(0),))]


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


def _commonest(past: Sequence[Columns]) -> Recurring | None:
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
    return Recurring(np.array(often), tuple(described[identity].describe(identity) for identity in often))

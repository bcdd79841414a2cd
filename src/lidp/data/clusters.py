"""Cluster binary records by k-means, in whole numbers: every machine finds the same clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Bytes, Ints
from lidp.errors import InvalidData

Numbers = NDArray[Any]
_MAX_EXACT = 2**24
"""Sums of whole numbers below this are exact in 32 bits, in any order of addition."""
_PARTS = 8
"""A centre that splits a cluster lies at this part of the way from its mean to one of its records."""


def cluster(records: Bytes, clusters: int, *, smallest: int = 1, seed: int = 0, rounds: int = 200) -> Ints:
    """Return a cluster number for each record of zeros and ones, by Lloyd's algorithm from a k-means++ start.

    Every cluster has at least ``smallest`` records: the centre of a smaller one is moved next to that of the largest cluster, to
    split it, and the algorithm goes on. It ends when no record changes its cluster, or after ``rounds``, with the last clusters
    that are large enough. Distances are compared as quotients of whole numbers that are rounded once, so that the result depends
    neither on the machine nor on its number of threads. Clusters are numbered by size, the largest first.

    Raises:
        InvalidData: if no round has ended with clusters that are all large enough.
    """
    clusters, smallest = checks.count(clusters=clusters), checks.count(smallest=smallest)
    rng = np.random.default_rng(seed)
    largest_product = _PARTS * int(records.sum(axis=1, dtype=np.int64).max(initial=0)) * len(records)
    rows: Numbers = records.astype(np.float32 if largest_product < _MAX_EXACT else np.float64)
    labels = _nearest(rows, rows[_first_centres(rows, clusters, rng)], np.ones(clusters))
    accepted = None
    for _ in range(rounds):
        sums, sizes = _sums(rows, labels, clusters), np.bincount(labels, minlength=clusters)
        if sizes.min() >= smallest:
            accepted = labels
        largest = int(sizes.argmax())
        members, total, size = np.flatnonzero(labels == largest), sums[largest].copy(), sizes[largest]
        for small in np.flatnonzero(sizes < smallest):
            record = rows[members[rng.integers(len(members))]]
            sums[small], sizes[small] = (_PARTS - 1) * total + size * record, _PARTS * size
        changed = _nearest(rows, sums, sizes)
        if accepted is labels and np.array_equal(changed, labels):
            break
        labels = changed
    if accepted is None:
        raise InvalidData(
            f"{len(records):,} records have no {clusters:,} clusters of at least {smallest:,} after {rounds} rounds; "
            "use fewer or smaller clusters"
        )
    order = np.argsort(-np.bincount(accepted, minlength=clusters), kind="stable")
    return np.argsort(order)[accepted].astype(np.int64)


def _first_centres(rows: Numbers, clusters: int, rng: np.random.Generator) -> Ints:
    """Return the indices of ``clusters`` records, drawn by k-means++: in proportion to squared distances."""
    sizes = rows.sum(axis=1)
    chosen = [int(rng.integers(len(rows)))]
    distances = np.full(len(rows), np.inf)
    for _ in range(1, clusters):
        last = rows[chosen[-1]]
        distances = np.minimum(distances, sizes + last.sum() - 2 * (rows @ last))
        passed = np.cumsum(distances.astype(np.int64))
        if not passed[-1]:
            raise InvalidData(
                f"the records have only {len(chosen):,} different values; they cannot form {clusters:,} clusters"
            )
        chosen.append(int(np.searchsorted(passed, rng.integers(passed[-1]), side="right")))
    return np.array(chosen)


def _sums(rows: Numbers, labels: Ints, clusters: int) -> Numbers:
    """Return the sum of the records of each cluster."""
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(rows), rows.dtype), labels, np.arange(len(rows) + 1)), shape=(len(rows), clusters))
    sums: Numbers = members.T @ rows
    return sums


def _nearest(rows: Numbers, sums: Numbers, sizes: Numbers) -> Ints:
    """Return the number of the nearest centre ``sums / sizes`` of each record, of the first one if several are as near.

    |x - s/n|² = |x|² - (2 n x·s - s·s) / n². Both whole numbers of the quotient are exact in 64 bits.
    """
    whole, counts = sums.astype(np.float64), np.asarray(sizes, dtype=np.float64)
    products = (rows @ sums.T).astype(np.float64)
    nearest: Ints = np.argmax((2 * counts * products - (whole * whole).sum(axis=1)) / counts**2, axis=1)
    return nearest

"""A catalogue of correct and broken mechanisms with their true ε, on which to test auditors.

>>> entry = find("laplace-half-scale")
>>> entry.truth(1.0, 0.0), entry.correct
(2.0, False)
"""

from __future__ import annotations

from lidp.errors import InvalidArgument
from lidp.mechanisms.catalogue import noisy_sums, releases, responses, selection, sparse_vector_entries
from lidp.mechanisms.catalogue.entry import Entry

CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for module in (noisy_sums, responses, sparse_vector_entries, selection, releases)
    for entry in module.ENTRIES
}
"""All entries by name."""


def find(name: str) -> Entry:
    """Return the entry of this name."""
    try:
        return CATALOGUE[name]
    except KeyError:
        names = ", ".join(CATALOGUE)
        raise InvalidArgument(f"there is no mechanism {name!r} in the catalogue; choose one of {names}") from None


__all__ = ["CATALOGUE", "Entry", "find"]

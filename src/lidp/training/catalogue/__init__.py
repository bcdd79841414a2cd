"""A catalogue of broken training: small DP-SGD loops with exactly one fault each, and the correct one, to test audits on.

>>> entry = find("noise-missing-in-one-layer")
>>> entry.about, entry.correct
('the weights of the last layer get no noise', False)
"""

from __future__ import annotations

from lidp.errors import InvalidArgument
from lidp.training.catalogue.entries import ENTRIES
from lidp.training.catalogue.entry import TrainingEntry

TRAININGS: dict[str, TrainingEntry] = {entry.name: entry for entry in ENTRIES}
"""All entries by name."""


def find(name: str) -> TrainingEntry:
    """Return the entry of this name."""
    try:
        return TRAININGS[name]
    except KeyError:
        names = ", ".join(TRAININGS)
        raise InvalidArgument(f"there is no training {name!r} in the catalogue; choose one of {names}") from None


__all__ = ["TRAININGS", "TrainingEntry", "find"]

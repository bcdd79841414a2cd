"""``Neighbours``: which data sets count as neighbours."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """The relation under which two data sets are neighbours.

    A bound for one relation is not a bound for the other, so every result names its relation.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

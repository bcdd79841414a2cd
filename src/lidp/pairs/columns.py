"""``Columns``: outputs of a mechanism as columns of numbers, for a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lidp.arrays import Floats


@dataclass(frozen=True)
class Columns:
    """Outputs as columns of numbers.

    Attributes:
        names: the name of each column.
        values: one row per output, one column per name; NaN where an output has no such number.
        identities: one number per output; equal outputs have equal numbers.
        texts: for some identities, the output as text; None if the identities are the outputs themselves.
    """

    names: tuple[str, ...]
    values: Floats
    identities: Floats
    texts: Mapping[float, str] | None = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> Columns:
        """Return the outputs from ``start`` to ``stop``."""
        return Columns(self.names, self.values[start:stop], self.identities[start:stop], self.texts)

    def select(self, names: Sequence[str]) -> Floats:
        """Return the columns of these names; missing ones are NaN."""
        if tuple(names) == self.names:
            return self.values
        column_of = {name: k for k, name in enumerate(self.names)}
        selected = np.full((len(self.values), len(names)), np.nan)
        for k, name in enumerate(names):
            if name in column_of:
                selected[:, k] = self.values[:, column_of[name]]
        return selected

    def with_column(self, name: str, column: Floats) -> Columns:
        """Return the same outputs with one more column."""
        return Columns((*self.names, name), np.column_stack([self.values, column]), self.identities, self.texts)

    def describe(self, identity: float) -> str:
        """Return an output as text, given its identity."""
        if self.texts is None:
            return repr(float(identity))
        return self.texts.get(identity, "that recurs")

"""ε̂ against the dimension d: Figure 2 (right) of the paper."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lidp.reproduce.experiment import Finding, Row, Scale
from lidp.reproduce.sweeps import Point, Sweep, select


class GaussianDimension(Sweep):
    """In more dimensions canaries interfere less, and bounds get larger."""

    name = "gaussian-dimension"
    about = "ε̂ against the dimension d"

    def points(self, scale: Scale) -> list[Point]:
        powers = (2, 3, 4, 5, 6) if scale is Scale.PAPER else (2, 4)
        trials, canaries = (1024, 32) if scale is Scale.PAPER else (256, 16)
        return [Point(trials, canaries, 10**power) for power in powers]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        rows = select(table, nominal_epsilon=2.0, method="2nd-order Wilson", candidates="paper")
        rows.sort(key=lambda row: row["dimension"])
        lowest, highest = rows[0], rows[-1]
        drops = [
            (a["epsilon_hat"] - b["epsilon_hat"]) / (a["standard_error"] ** 2 + b["standard_error"] ** 2) ** 0.5
            for a, b in itertools.pairwise(rows)
            if a["standard_error"] or b["standard_error"]
        ]
        return [
            Finding(
                f"2nd-order Wilson, ε = 2: gain in ε̂ from d = {lowest['dimension']:,} to {highest['dimension']:,}",
                highest["epsilon_hat"] - lowest["epsilon_hat"],
                at_least=0.0,
                note="the paper: tighter monotonically",
            ),
            Finding(
                "2nd-order Wilson, ε = 2: largest drop from one d to the next, in standard errors",
                max(drops, default=0.0),
                at_most=3.0,
                note="standard errors over repetitions and tunings",
            ),
        ]

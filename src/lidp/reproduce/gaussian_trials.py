"""ε̂ against the number of trials n, with K = √n canaries: Figure 2 (left) of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from lidp.reproduce.experiment import Finding, Row, Scale
from lidp.reproduce.sweeps import SINGLE, Point, Sweep, look_up


class GaussianTrials(Sweep):
    """The gain in trials of many canaries over one, and of betting over intervals."""

    name = "gaussian-trials"
    about = "ε̂ against the number of trials n, K = √n canaries"
    axis: ClassVar[str] = "trials"

    def points(self, scale: Scale) -> list[Point]:
        powers = (8, 10, 12, 14, 16) if scale is Scale.PAPER else (8, 10)
        return [Point(2**power, math.isqrt(2**power)) for power in powers]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        stated = [
            ("2nd-order Wilson", 1024, 0.67),
            ("2nd-order Wilson", 4096, 0.85),
            (SINGLE, 4096, 0.67),
            (SINGLE, 65536, 0.85),
        ]
        found = []
        for method, trials, paper in stated:
            for candidates in ("paper", "tail"):
                row = look_up(table, nominal_epsilon=2.0, method=method, trials=trials, candidates=candidates)
                if row is not None:
                    statement = f"{method}, n = {trials:,}, ε = 2, {candidates} candidates: ε̂"
                    tolerance = 0.03 if candidates == "paper" else None  # the paper says nothing of other candidates
                    found.append(Finding(statement, row["epsilon_hat"], paper, tolerance, note=_error(row)))
        for method in ("lifted betting", "coin wager"):
            for row in table:
                if (row["nominal_epsilon"], row["method"]) == (2.0, method) and row["trials"] in (1024, 4096, 65536):
                    statement = f"{method}, {row['trials']:,} trials ({row['models']:,} models), ε = 2: ε̂"
                    found.append(Finding(statement, row["epsilon_hat"], note=_error(row)))
        return found


def _error(row: Row) -> str:
    return f"standard error {row['standard_error']:.3f}"

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
                    ours = candidates == "tail"
                    asked = (method, trials) != (SINGLE, 4096) and not ours
                    found.append(
                        Finding(
                            f"{method}, n = {trials:,}, ε = 2, {candidates} candidates: ε̂",
                            row["epsilon_hat"],
                            paper,
                            tolerance=0.03 if asked else None,
                            note=_NOTES.get((method, trials, candidates), ""),
                        )
                    )
        for method in ("lifted betting", "coin wager"):
            for trials in (1024, 4096):
                row = look_up(table, nominal_epsilon=2.0, method=method, trials=trials)
                if row is not None:
                    found.append(
                        Finding(f"{method}, {trials:,} trials ({row['models']:,} models), ε = 2: ε̂", row["epsilon_hat"])
                    )
        return found


_NOTES: dict[tuple[str, int, str], str] = {}

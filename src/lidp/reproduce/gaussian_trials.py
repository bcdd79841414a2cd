"""ε̂ against the number of trials n, with K = √n canaries: Figure 2 (left) of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lidp.reproduce.experiment import Finding, Row, Scale
from lidp.reproduce.sweeps import SINGLE, Point, Sweep, select

_PAPER = (("2nd-order Wilson", 1024, 0.67), ("2nd-order Wilson", 4096, 0.85), (SINGLE, 4096, 0.67), (SINGLE, 65536, 0.85))


class GaussianTrials(Sweep):
    """Many canaries need fewer trials than one, and betting fewer than intervals."""

    name = "gaussian-trials"
    about = "ε̂ against the number of trials n, K = √n canaries"

    def points(self, scale: Scale) -> list[Point]:
        powers = (8, 10, 12, 14, 16) if scale is Scale.PAPER else (8, 10)
        return [Point(2**power, math.isqrt(2**power)) for power in powers]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        findings = []
        for method, trials, paper in _PAPER:
            for candidates in ("paper", "tail"):
                tolerance = 0.03 if candidates == "paper" else None  # the paper has no numbers for other candidates
                for row in select(table, nominal_epsilon=2.0, method=method, trials=trials, candidates=candidates)[:1]:
                    statement = f"{method}, n = {trials:,}, ε = 2, {candidates} candidates: ε̂"
                    findings.append(Finding(statement, row["epsilon_hat"], paper, tolerance, note=_note(row)))
        for method in ("lifted betting", "coin wager"):
            for row in select(table, nominal_epsilon=2.0, method=method):
                if row["trials"] in (1024, 4096, 65536):
                    statement = f"{method}, {row['trials']:,} trials ({row['models']:,} models), ε = 2: ε̂"
                    findings.append(Finding(statement, row["epsilon_hat"], note=_note(row)))
        return findings


def _note(row: Row) -> str:
    return f"standard error {row['standard_error']:.3f}"

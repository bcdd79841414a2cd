"""Dependence of canaries: |μ̂2 - μ̂1²| and |μ̂4 - μ̂2²| against K and d. Figure 3 (middle, right) of the paper.

Two different quantities decay. Against K, with the paper's numbers of trials, it is the *noise* of the estimates, which is
1/(K√n) even for independent canaries; the dependence itself does not vary with K. Against d it is the dependence, 1/d. To see
it the noise must be averaged out with many held-out canaries per trial, which cost O(1) each.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from lidp.designs import LeaveOneOut
from lidp.mechanisms.gaussian import draw_gaussian
from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Finding, Row, Scale
from lidp.reproduce.simulation import Simulation
from lidp.stats.xbern import histogram_moments, tail_histogram

RESOLVED = 3.0
"""A mean is fitted only if it is this many standard errors above 0."""
FEWEST = 3
"""The fewest points to fit a slope to."""
FITTED = {"canaries": ("inserted", "size"), "dimension": ("held out", "mean")}
"""Which arm and which statistic is fitted against which axis."""
SMALL = "dimension, n = 1,024, K = 32"
"""The axis d again, at a size that the paper may have used, to show that noise dominates there."""


class GaussianCorrelation(Simulation):
    """Moments of the event "score above threshold", with threshold 1 for inserted canaries and σ for held-out ones."""

    name = "gaussian-correlation"
    about = "|μ̂2 - μ̂1²| and |μ̂4 - μ̂2²| against K and d, with fitted slopes"

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        paper = scale is Scale.PAPER
        by_canaries = [(1024, 2**power, 2**power, setting.DIMENSION) for power in (range(2, 11) if paper else (2, 4, 6))]
        by_dimension = [
            (16384 if paper else 512, 16, 1024, 10**power) for power in ((2, 3, 4, 5, 6) if paper else (1, 2, 3))
        ]
        small = [(1024, 32, 32, point[-1]) for point in by_dimension]
        points = [("canaries", *point) for point in by_canaries]
        points += [("dimension", *point) for point in by_dimension] + [(SMALL, *point) for point in small]
        names = ("axis", "trials", "canaries", "held_out", "dimension", "repetition")
        return [
            Cell(dict(zip(names, (*point, repetition), strict=True)))
            for repetition in range(setting.REPETITIONS if paper else 3)
            for point in sorted(points, key=lambda point: -point[1] * point[2] ** 2)
        ]

    def run(self, cell: Cell) -> list[Row]:
        settings = cell.settings
        draws = draw_gaussian(
            LeaveOneOut(settings["canaries"], settings["held_out"]),
            trials=settings["trials"],
            dimension=settings["dimension"],
            seed=cell.seed,
            threads=1,
        )
        rows = []
        for nominal in setting.NOMINAL:
            sigma = setting.noise(nominal)
            inserted, held_out = draws.scores(sigma).arms()
            for arm, scores, threshold in (("inserted", inserted, 1.0), ("held out", held_out, sigma)):
                first, second, _, fourth = histogram_moments(tail_histogram(scores, np.array([threshold])), 4)[:, 0]
                rows.append(
                    settings
                    | {"nominal": nominal, "arm": arm, "rate": float(first)}
                    | {"second": float(second - first**2), "fourth": float(fourth - second**2)}
                )
        return rows

    def table(self, rows: Sequence[Row]) -> list[Row]:
        groups = defaultdict(list)
        for row in rows:
            count = row["canaries"] if row["arm"] == "inserted" else row["held_out"]
            groups[(row["axis"], row["arm"], row["nominal"], count, row["dimension"], row["trials"])].append(row)
        table = []
        for (axis, arm, nominal, count, dimension, trials), group in sorted(groups.items()):
            rate = float(np.mean([row["rate"] for row in group]))
            line = {
                "axis": axis,
                "arm": arm,
                "nominal_epsilon": nominal,
                "canaries": count,
                "dimension": dimension,
                "trials": trials,
                "repetitions": len(group),
                "size_if_independent": rate * (1 - rate) * math.sqrt(4 / (math.pi * trials * count * (count - 1))),
            }
            for moment in ("second", "fourth"):
                values = [row[moment] for row in group]
                mean, error = setting.mean_and_error(values)
                line |= {f"{moment}_size": float(np.mean(np.abs(values))), f"{moment}_mean": mean, f"{moment}_error": error}
            table.append(line)
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        stated = [
            ("second", "canaries", -0.93),
            ("fourth", "canaries", -1.05),
            ("second", "dimension", -1.06),
            ("fourth", "dimension", -1.00),
        ]
        words = {"second": "|μ̂2 - μ̂1²|", "fourth": "|μ̂4 - μ̂2²|"}
        findings = []
        for moment, axis, paper in stated:
            symbol = {"canaries": "K", "dimension": "d"}[axis]
            statement = f"slope of {words[moment]} in {symbol}, ε = 2"
            fit = slope(table, axis, moment, 2.0)
            note = self._note(table, axis, moment)
            if fit is None:
                findings.append(Finding.missing(statement, f"fewer than {FEWEST} points above their noise; {note}"))
            else:
                findings.append(Finding(statement, fit, paper, tolerance=0.15, note=note))
        small = [row for row in table if (row["axis"], row["arm"], row["nominal_epsilon"]) == (SMALL, "inserted", 2.0)]
        if len(small) > 1:
            fit = log_log_slope([row["dimension"] for row in small], [row["second_size"] for row in small])
            note = "mean |μ̂2 - μ̂1²| of 1,024 trials with 32 inserted canaries: noise of the estimate hides 1/d at this size"
            findings.append(Finding("slope of |μ̂2 - μ̂1²| in d at n = 1,024, K = 32, ε = 2", fit, -1.06, note=note))
        ratios = [row["second_size"] / row["size_if_independent"] for row in fitted(table, "canaries", "second", 2.0)]
        if ratios:
            findings.append(
                Finding(
                    "|μ̂2 - μ̂1²| over K against what independent canaries would show, geometric mean of the ratio",
                    float(np.exp(np.mean(np.log(ratios)))),
                    note="near 1: the slope in K is that of estimation noise, 1/(K√n), not of dependence",
                )
            )
        return findings

    def _note(self, table: Sequence[Row], axis: str, moment: str) -> str:
        arm, statistic = FITTED[axis]
        used = fitted(table, axis, moment, 2.0)
        if not used:
            return f"{arm} canaries"
        words = "mean over repetitions, then its size" if statistic == "mean" else "mean size over repetitions"
        other = {"canaries": "dimension", "dimension": "canaries"}[axis]
        return (
            f"{arm} canaries, {used[0]['trials']:,} trials, {other} {used[0][other]:,}, {words}; "
            f"fitted at {', '.join(f'{row[axis]:,}' for row in used)}"
        )


def fitted(table: Sequence[Row], axis: str, moment: str, nominal: float) -> list[Row]:
    """Return the rows that a slope is fitted to: the arm and statistic of that axis, where it is resolved from 0."""
    arm, statistic = FITTED[axis]
    rows = [row for row in table if (row["axis"], row["arm"], row["nominal_epsilon"]) == (axis, arm, nominal)]
    if statistic == "mean":
        rows = [row for row in rows if row[f"{moment}_mean"] > RESOLVED * row[f"{moment}_error"]]
    return rows


def slope(table: Sequence[Row], axis: str, moment: str, nominal: float) -> float | None:
    """Return the log-log slope of |μ̂2 - μ̂1²| or |μ̂4 - μ̂2²|; None if too few points are above their noise."""
    rows = fitted(table, axis, moment, nominal)
    if len(rows) < FEWEST:
        return None
    return log_log_slope([row[axis] for row in rows], [row[f"{moment}_{FITTED[axis][1]}"] for row in rows])


def log_log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])

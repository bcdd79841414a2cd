"""Dependence of canaries: |μ̂2 - μ̂1²| and |μ̂4 - μ̂2²| against K and d. Figure 3 (middle, right) of the paper.

Two different quantities decay. Against K, with the paper's numbers of trials, it is the *noise* of the estimates, which is
1/(K√n) even for independent canaries; the dependence itself does not vary with K. Against d it is the dependence, 1/d. To see
it the noise must be averaged out with many held-out canaries per trial, which cost O(1) each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from lidp.designs import LeaveOneOut
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.simulation import Simulation
from lidp.reproduce.tables import Row, mean_and_error, select, sorted_groups
from lidp.stats.xbern import histogram_moments, tail_histogram

RESOLVED = 3.0
"""A mean is fitted only if it is this many standard errors above 0."""
FEWEST = 3
"""The fewest points to fit a slope to."""
FITTED = {"canaries": ("inserted", "size"), "dimension": ("held out", "mean")}
"""Which arm and which statistic is fitted against which axis."""
MOMENTS = {"second": "|μ̂2 - μ̂1²|", "fourth": "|μ̂4 - μ̂2²|"}
SMALL = "dimension, n = 1,024, K = 32"
"""The axis d again, at a size that the paper may have used, to show that noise dominates there."""
_PAPER_SLOPES = {
    ("second", "canaries"): -0.93,
    ("fourth", "canaries"): -1.05,
    ("second", "dimension"): -1.06,
    ("fourth", "dimension"): -1.00,
}


def _cells(scale: Scale) -> list[Row]:
    paper = scale is Scale.PAPER
    trials, dimensions = (16384, (2, 3, 4, 5, 6)) if paper else (512, (1, 2, 3))
    points = [("canaries", 1024, 2**power, 2**power, setting.DIMENSION) for power in (range(2, 11) if paper else (2, 4, 6))]
    points += [("dimension", trials, 16, 1024, 10**power) for power in dimensions]
    points += [(SMALL, 1024, 32, 32, 10**power) for power in dimensions]
    names = ("axis", "trials", "canaries", "held_out", "dimension", "repetition")
    return [
        dict(zip(names, (*point, repetition), strict=True))
        for repetition in range(setting.REPETITIONS if paper else 3)
        for point in sorted(points, key=lambda point: -point[1] * point[2] ** 2)
    ]


def _run(cell: Row) -> list[Row]:
    """Return moments of the event "score above threshold", with threshold 1 for inserted canaries and σ for held-out ones."""
    draws = setting.draw(LeaveOneOut(cell["canaries"], cell["held_out"]), **cell)
    rows = []
    for nominal in setting.NOMINAL:
        sigma = setting.noise(nominal)
        inserted, held_out = draws.scores(sigma).arms()
        for arm, scores, threshold in (("inserted", inserted, 1.0), ("held out", held_out, sigma)):
            first, second, _, fourth = histogram_moments(tail_histogram(scores, np.array([threshold])), 4)[:, 0]
            moments = {"second": float(second - first**2), "fourth": float(fourth - second**2)}
            columns = {"nominal_epsilon": nominal, "arm": arm, "canaries": scores.shape[1], "rate": float(first)}
            rows.append(cell | columns | moments)
    return rows


def _table(rows: Sequence[Row]) -> list[Row]:
    """Return means and mean sizes of both differences, and the mean size that independent canaries would show."""
    columns = ("axis", "arm", "nominal_epsilon", "canaries", "dimension", "trials")
    table = []
    for line, repetitions in sorted_groups(rows, *columns):
        line["repetitions"] = len(repetitions)
        rate, count = float(np.mean([row["rate"] for row in repetitions])), line["canaries"]
        noise = math.sqrt(4 / (math.pi * line["trials"] * count * (count - 1)))
        line["size_if_independent"] = rate * (1 - rate) * noise
        for moment in MOMENTS:
            values = [row[moment] for row in repetitions]
            mean, error = mean_and_error(values)
            line |= {f"{moment}_size": float(np.mean(np.abs(values))), f"{moment}_mean": mean, f"{moment}_error": error}
        table.append(line)
    return table


@experiment(
    "gaussian-correlation",
    "|μ̂2 - μ̂1²| and |μ̂4 - μ̂2²| against K and d, with fitted slopes",
    _table,
    Simulation("gaussian-correlation", _cells, _run),
)
def gaussian_correlation(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare the slopes at ε = 2 with the paper's."""
    for (moment, axis), paper in _PAPER_SLOPES.items():
        statement = f"slope of {MOMENTS[moment]} in {'K' if axis == 'canaries' else 'd'}, ε = 2"
        fit, note = slope(table, axis, moment), _describe_fit(table, axis, moment)
        if fit is None:
            note = f"fewer than {FEWEST} points above their noise; {note}"
            yield Finding(statement, None, note=note, wanted=True)
        else:
            yield Finding(statement, fit, paper, tolerance=0.15, note=note)
    small = select(table, axis=SMALL, arm="inserted", nominal_epsilon=2.0)
    if len(small) > 1:
        fit = log_log_slope([row["dimension"] for row in small], [row["second_size"] for row in small])
        note = "mean |μ̂2 - μ̂1²| of 1,024 trials with 32 inserted canaries: noise of the estimate hides 1/d at this size"
        yield Finding("slope of |μ̂2 - μ̂1²| in d at n = 1,024, K = 32, ε = 2", fit, -1.06, note=note)
    ratios = [row["second_size"] / row["size_if_independent"] for row in fitted(table, "canaries", "second")]
    if ratios:
        statement = "|μ̂2 - μ̂1²| over K against what independent canaries would show, geometric mean of the ratio"
        note = "near 1: the slope in K is that of estimation noise, 1/(K√n), not of dependence"
        yield Finding(statement, float(np.exp(np.mean(np.log(ratios)))), note=note)


def _describe_fit(table: Sequence[Row], axis: str, moment: str) -> str:
    arm, statistic = FITTED[axis]
    used = fitted(table, axis, moment)
    if not used:
        return f"{arm} canaries"
    words = "mean over repetitions, then its size" if statistic == "mean" else "mean size over repetitions"
    other = {"canaries": "dimension", "dimension": "canaries"}[axis]
    points = ", ".join(f"{row[axis]:,}" for row in used)
    return f"{arm} canaries, {used[0]['trials']:,} trials, {other} {used[0][other]:,}, {words}; fitted at {points}"


def fitted(table: Sequence[Row], axis: str, moment: str) -> list[Row]:
    """Return the rows at ε = 2 that a slope is fitted to: the arm and statistic of that axis, where it is resolved from 0."""
    arm, statistic = FITTED[axis]
    rows = select(table, axis=axis, arm=arm, nominal_epsilon=2.0)
    if statistic == "mean":
        rows = [row for row in rows if row[f"{moment}_mean"] > RESOLVED * row[f"{moment}_error"]]
    return rows


def slope(table: Sequence[Row], axis: str, moment: str) -> float | None:
    """Return the log-log slope of a difference of moments at ε = 2; None if too few points are above their noise."""
    rows = fitted(table, axis, moment)
    if len(rows) < FEWEST:
        return None
    return log_log_slope([row[axis] for row in rows], [row[f"{moment}_{FITTED[axis][1]}"] for row in rows])


def log_log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])

"""Widths of binomial intervals at p = 0.1 against n: the first figure of the paper's Appendix E, computed exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import lidp
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.simulation import Simulation
from lidp.reproduce.tables import Row
from lidp.stats.two_rates import TwoRates

P = 0.1
_NOTE = "the paper: all nearly equivalent once n is above about 100, for which 1 stands here"
_NOTES = {"Bernstein": f"{_NOTE}; Bernstein stays wider, √(2 ln 40) = 2.7 against 1.96 standard deviations"}
INTERVALS: dict[str, TwoRates] = {
    "Wilson": lidp.Wilson(1),
    "Clopper-Pearson": lidp.ClopperPearson(),
    "Jeffreys": lidp.Jeffreys(),
    "Bernstein": lidp.Bernstein(1),
}


def _cells(scale: Scale) -> list[Row]:
    steps = range(2, 11) if scale is Scale.PAPER else range(2, 7)
    return [{"trials": round(10 ** (step / 2))} for step in steps]


def _run(cell: Row) -> list[Row]:
    """Return the expected distances of both limits from p, as sums over the binomial distribution."""
    from scipy import stats

    trials = cell["trials"]
    ones = np.arange(trials + 1)
    chance = stats.binom.pmf(ones, trials, P)
    ones = ones[chance > 1e-15]
    chance = chance[chance > 1e-15]
    histogram = np.column_stack([trials - ones, ones])
    rows = []
    for name, interval in INTERVALS.items():
        below = P - float(chance @ interval.lower(histogram, setting.BETA / 2))
        above = float(chance @ interval.upper(histogram, setting.BETA / 2)) - P
        distances = {"below": below, "above": above, "width": below + above}
        rows.append({"interval": name, "trials": trials, "p": P} | distances)
    return rows


@experiment(
    "binomial-intervals",
    "expected widths of 95 % intervals for a binomial proportion of 0.1 against n",
    lambda rows: sorted(rows, key=lambda row: (row["interval"], row["trials"])),
    Simulation("binomial-intervals", _cells, _run),
)
def binomial_intervals(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare the widths with that of Wilson's interval."""
    widths = {(row["interval"], row["trials"]): row["width"] for row in table}
    for trials in (100, 1000, 10_000):
        if ("Wilson", trials) in widths:
            for name in list(INTERVALS)[1:]:
                ratio = widths[name, trials] / widths["Wilson", trials]
                statement = f"width of {name} against Wilson, n = {trials:,}"
                yield Finding(statement, ratio, 1.0, tolerance=0.15, note=_NOTES.get(name, _NOTE))

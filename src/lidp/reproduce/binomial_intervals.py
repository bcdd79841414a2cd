"""Widths of binomial intervals at p = 0.1 against n: the first figure of the paper's Appendix E, computed exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Finding, Row, Scale
from lidp.reproduce.simulation import Simulation
from lidp.stats.bernstein import Bernstein
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.jeffreys import Jeffreys
from lidp.stats.two_rates import TwoRates
from lidp.stats.wilson import Wilson

P = 0.1
_NOTE = "the paper: all nearly equivalent once n is above about 100, for which 1 stands here"
_NOTES = {"Bernstein": f"{_NOTE}; Bernstein stays wider, √(2 ln 40) = 2.7 against 1.96 standard deviations"}
INTERVALS: dict[str, TwoRates] = {
    "Wilson": Wilson(1),
    "Clopper-Pearson": ClopperPearson(),
    "Jeffreys": Jeffreys(),
    "Bernstein": Bernstein(1),
}


class BinomialIntervals(Simulation):
    """Expected distances of both limits from p, as sums over the binomial distribution."""

    name = "binomial-intervals"
    about = "expected widths of 95 % intervals for a binomial proportion of 0.1 against n"

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        steps = range(2, 11) if scale is Scale.PAPER else range(2, 7)
        sizes = [round(10 ** (step / 2)) for step in steps]
        return [Cell({"trials": size}) for size in sizes]

    def run(self, cell: Cell) -> list[Row]:
        from scipy import stats

        trials = cell.settings["trials"]
        ones = np.arange(trials + 1)
        chance = stats.binom.pmf(ones, trials, P)
        ones = ones[chance > 1e-15]
        chance = chance[chance > 1e-15]
        histogram = np.column_stack([trials - ones, ones])
        rows = []
        for name, interval in INTERVALS.items():
            below = P - float(chance @ interval.lower(histogram, setting.BETA / 2))
            above = float(chance @ interval.upper(histogram, setting.BETA / 2)) - P
            rows.append(
                {"interval": name, "trials": trials, "p": P, "below": below, "above": above, "width": below + above}
            )
        return rows

    def table(self, rows: Sequence[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: (row["interval"], row["trials"]))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        widths = {(row["interval"], row["trials"]): row["width"] for row in table}
        findings = []
        for trials in (100, 1000, 10_000):
            if ("Wilson", trials) in widths:
                findings += [
                    Finding(
                        f"width of {name} against Wilson, n = {trials:,}",
                        widths[name, trials] / widths["Wilson", trials],
                        1.0,
                        tolerance=0.15,
                        note=_NOTES.get(name, _NOTE),
                    )
                    for name in INTERVALS
                    if name != "Wilson"
                ]
        return findings

"""ε̂ against the number of canaries K, and its bias and variance: Figures 2 (middle) and 3 (left) of the paper."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Row, Scale, Source
from lidp.reproduce.sweeps import Point, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST = "1st-order Wilson"
_MANY = 32
_TOO_SMALL = "not judged: K/d = .1 of interference against a variance of 4.6 is a hundredth of ε̂, less than the noise"
ORDERS = {"2nd-order Wilson": 2, "4th-order Wilson": 4}


class GaussianCanaries(Sweep):
    """More canaries: narrower intervals, until they drown one another."""

    name = "gaussian-canaries"
    about = "ε̂ against the number of canaries K"
    axis: ClassVar[str] = "canaries"

    def points(self, scale: Scale) -> list[Point]:
        if scale is Scale.PAPER:
            return [Point(1024, 2**power) for power in range(11)]
        return [Point(256, canaries) for canaries in (1, 4, 32)]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        rows = [
            row
            for row in table
            if (row["nominal_epsilon"], row["method"], row["candidates"]) == (2.0, "2nd-order Wilson", "paper")
        ]
        best = max(rows, key=lambda row: row["epsilon_hat"])
        where = f"2nd-order Wilson, n = {best['trials']:,}, ε = 2"
        return [
            Finding(
                f"{where}: the best K",
                best["canaries"],
                at_least=32,
                at_most=256,
                note="the paper: K between 32 and 256 performs well",
            ),
            Finding(f"{where}: ε̂ at the best K", best["epsilon_hat"]),
        ]


class GaussianBiasVariance(GaussianCanaries):
    """The same simulation, split: what the other canaries cost, and what the higher order gains."""

    name = "gaussian-bias-variance"
    about = "ΔBias(K) = ε̂(K, 1) - ε̂(1, 1) and ΔVar(K, ℓ) = ε̂(K, ℓ) - ε̂(K, 1)"

    @property
    def sources(self) -> tuple[Source, ...]:
        return (GaussianCanaries(),)

    def table(self, rows: Sequence[Row]) -> list[Row]:
        found: dict[tuple[float, str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for row in rows:
            if row["step"] == "measure" and row["candidates"] != setting.NO_CANDIDATES:
                place = (row["nominal"], row["candidates"], row["canaries"])
                found[place][row["method"]][row["repetition"]] = row["epsilon"]
        table = []
        for (nominal, candidates, canaries), methods in sorted(found.items()):
            first, alone = methods[FIRST], found[nominal, candidates, 1][FIRST]
            line: Row = {"nominal_epsilon": nominal, "candidates": candidates, "canaries": canaries}
            mean, error = setting.mean_and_error(list(first.values()))
            base, base_error = setting.mean_and_error(list(alone.values()))
            line |= {"bias": mean - base, "bias_error": 0.0 if canaries == 1 else math.hypot(error, base_error)}
            for method, order in ORDERS.items():
                # of the same trials, hence differences repetition by repetition
                gains = [epsilon - first[repetition] for repetition, epsilon in methods[method].items()]
                gain, gain_error = setting.mean_and_error(gains) if gains else ("", "")
                line |= {f"variance_gain_{order}": gain, f"variance_gain_{order}_error": gain_error}
            table.append(line)
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        found = []
        for nominal, words in ((8.0, "the paper: negative, and worse with K"), (2.0, _TOO_SMALL)):
            judged = nominal == 8.0
            rows = [row for row in table if (row["nominal_epsilon"], row["candidates"]) == (nominal, "paper")]
            many = [row for row in rows if row["canaries"] >= _MANY]
            if many:
                most, limit = many[-1], 0.0 if judged else None
                note = f"{words}; standard error {most['bias_error']:.3f}"
                statement = f"ΔBias at K = {most['canaries']:,}, ε = {nominal:g}"
                found.append(Finding(statement, most["bias"], at_most=limit, note=note))
                change = most["bias"] - many[0]["bias"]
                statement = f"ΔBias at K = {most['canaries']:,} minus that at K = {many[0]['canaries']:,}, ε = {nominal:g}"
                found.append(Finding(statement, change, at_most=limit, note=words))
        rows = [row for row in table if row["candidates"] == "paper" and row["canaries"] > 1]
        smallest = min(rows, key=lambda row: row["variance_gain_2"])
        statement = "ΔVar(K, 2), the smallest over K and ε"
        found.append(Finding(statement, smallest["variance_gain_2"], at_least=0.0, note="the paper: positive"))
        two = [row["variance_gain_2"] for row in rows if row["nominal_epsilon"] == 2.0]
        found.append(Finding("ΔVar(K, 2) at the largest K, ε = 2", two[-1], at_least=0.0))
        return found

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.figures import bias_variance_figure

        return bias_variance_figure(table)

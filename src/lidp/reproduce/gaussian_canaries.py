"""ε̂ against the number of canaries K, and its bias and variance: Figures 2 (middle) and 3 (left) of the paper."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Row, Scale, Source
from lidp.reproduce.sweeps import Point, Sweep, select

FIRST = "1st-order Wilson"
_MANY = 32
_TOO_SMALL = "not judged: K/d = .1 of interference against a variance of 4.6 is a hundredth of ε̂, less than the noise"
ORDERS = {"2nd-order Wilson": 2, "4th-order Wilson": 4}


class GaussianCanaries(Sweep):
    """With more canaries intervals get narrower, until the canaries interfere with one another."""

    name = "gaussian-canaries"
    about = "ε̂ against the number of canaries K"

    def points(self, scale: Scale) -> list[Point]:
        if scale is Scale.PAPER:
            return [Point(1024, 2**power) for power in range(11)]
        return [Point(256, canaries) for canaries in (1, 4, 32)]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        rows = select(table, nominal_epsilon=2.0, method="2nd-order Wilson", candidates="paper")
        best = max(rows, key=lambda row: row["epsilon_hat"])
        which = f"2nd-order Wilson, n = {best['trials']:,}, ε = 2"
        note = "the paper: K between 32 and 256 performs well"
        return [
            Finding(f"{which}: the best K", best["canaries"], at_least=32, at_most=256, note=note),
            Finding(f"{which}: ε̂ at the best K", best["epsilon_hat"]),
        ]


class GaussianBiasVariance(GaussianCanaries):
    """The same simulation, split into the cost of other canaries (bias) and the gain of higher orders (variance)."""

    name = "gaussian-bias-variance"
    about = "ΔBias(K) = ε̂(K, 1) - ε̂(1, 1) and ΔVar(K, ℓ) = ε̂(K, ℓ) - ε̂(K, 1)"

    @property
    def sources(self) -> tuple[Source, ...]:
        return (GaussianCanaries(),)

    def table(self, rows: Sequence[Row]) -> list[Row]:
        bounds: dict[tuple[float, str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for row in rows:
            if row["step"] == "measure" and row["candidates"] != setting.NO_CANDIDATES:
                key = (row["nominal"], row["candidates"], row["canaries"])
                bounds[key][row["method"]][row["repetition"]] = row["epsilon"]
        table = []
        for (nominal, candidates, canaries), methods in sorted(bounds.items()):
            first, alone = methods[FIRST], bounds[nominal, candidates, 1][FIRST]
            line: Row = {"nominal_epsilon": nominal, "candidates": candidates, "canaries": canaries}
            mean, error = setting.mean_and_error(list(first.values()))
            base, base_error = setting.mean_and_error(list(alone.values()))
            line |= {"bias": mean - base, "bias_error": 0.0 if canaries == 1 else math.hypot(error, base_error)}
            for method, order in ORDERS.items():
                # Both orders see the same trials, hence differences repetition by repetition.
                gains = [epsilon - first[repetition] for repetition, epsilon in methods[method].items()]
                gain, gain_error = setting.mean_and_error(gains) if gains else ("", "")
                line |= {f"variance_gain_{order}": gain, f"variance_gain_{order}_error": gain_error}
            table.append(line)
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        findings = []
        for nominal, expectation in ((8.0, "the paper: negative, and worse with K"), (2.0, _TOO_SMALL)):
            limit = 0.0 if nominal == 8.0 else None
            rows = select(table, nominal_epsilon=nominal, candidates="paper")
            many = [row for row in rows if row["canaries"] >= _MANY]
            if many:
                least, most = many[0], many[-1]
                note = f"{expectation}; standard error {most['bias_error']:.3f}"
                statement = f"ΔBias at K = {most['canaries']:,}, ε = {nominal:g}"
                findings.append(Finding(statement, most["bias"], at_most=limit, note=note))
                statement = f"ΔBias at K = {most['canaries']:,} minus that at K = {least['canaries']:,}, ε = {nominal:g}"
                findings.append(Finding(statement, most["bias"] - least["bias"], at_most=limit, note=expectation))
        rows = [row for row in select(table, candidates="paper") if row["canaries"] > 1]
        smallest = min(row["variance_gain_2"] for row in rows)
        statement = "ΔVar(K, 2), the smallest over K and ε"
        findings.append(Finding(statement, smallest, at_least=0.0, note="the paper: positive"))
        gains = [row["variance_gain_2"] for row in select(rows, nominal_epsilon=2.0)]
        findings.append(Finding("ΔVar(K, 2) at the largest K, ε = 2", gains[-1], at_least=0.0))
        return findings

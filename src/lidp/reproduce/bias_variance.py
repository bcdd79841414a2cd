"""Split ε̂ against K into the cost of other canaries (bias) and the gain of higher orders (variance): Figure 3, left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lidp.reproduce.experiment import Finding
from lidp.reproduce.setting import CANDIDATES
from lidp.reproduce.tables import Row, group, mean_and_error, select

_FIRST = "1st-order Wilson"
_ORDERS = {"2nd-order Wilson": 2, "4th-order Wilson": 4}
_MANY = 32
_TOO_SMALL = "not judged: K/d = .1 of interference against a variance of 4.6 is a hundredth of ε̂, less than the noise"


def bias_variance_table(rows: Sequence[Row]) -> list[Row]:
    """Return ΔBias and ΔVar at each nominal ε, set of candidates and K, from the rows of the sweep over K."""
    measured = [row for row in rows if row["step"] == "measure" and row["candidates"] in CANDIDATES]
    bounds = {
        key: {row["repetition"]: row["epsilon"] for row in repetitions}
        for key, repetitions in group(measured, "nominal_epsilon", "candidates", "canaries", "method").items()
    }
    table = []
    for nominal, candidates, canaries in sorted(group(measured, "nominal_epsilon", "candidates", "canaries")):
        first = bounds[nominal, candidates, canaries, _FIRST]
        mean, error = mean_and_error(list(first.values()))
        base, base_error = mean_and_error(list(bounds[nominal, candidates, 1, _FIRST].values()))
        line: Row = {"nominal_epsilon": nominal, "candidates": candidates, "canaries": canaries}
        line |= {"bias": mean - base, "bias_error": 0.0 if canaries == 1 else math.hypot(error, base_error)}
        for method, order in _ORDERS.items():
            # Both orders see the same trials, hence differences repetition by repetition.
            higher = bounds.get((nominal, candidates, canaries, method), {})
            gains = [epsilon - first[repetition] for repetition, epsilon in higher.items()]
            gain, gain_error = mean_and_error(gains) if gains else ("", "")
            line |= {f"variance_gain_{order}": gain, f"variance_gain_{order}_error": gain_error}
        table.append(line)
    return table


def bias_variance_findings(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare the signs of bias and variance gain with the paper's."""
    for nominal, expectation in ((8.0, "the paper: negative, and worse with K"), (2.0, _TOO_SMALL)):
        limit = 0.0 if nominal == 8.0 else None
        many = [row for row in select(table, nominal_epsilon=nominal, candidates="paper") if row["canaries"] >= _MANY]
        if many:
            least, most = many[0], many[-1]
            statement = f"ΔBias at K = {most['canaries']:,}"
            note = f"{expectation}; standard error {most['bias_error']:.3f}"
            yield Finding(f"{statement}, ε = {nominal:g}", most["bias"], at_most=limit, note=note)
            statement += f" minus that at K = {least['canaries']:,}, ε = {nominal:g}"
            yield Finding(statement, most["bias"] - least["bias"], at_most=limit, note=expectation)
    rows = [row for row in select(table, candidates="paper") if row["canaries"] > 1]
    smallest = min(row["variance_gain_2"] for row in rows)
    yield Finding("ΔVar(K, 2), the smallest over K and ε", smallest, at_least=0.0, note="the paper: positive")
    gains = [row["variance_gain_2"] for row in select(rows, nominal_epsilon=2.0)]
    yield Finding("ΔVar(K, 2) at the largest K, ε = 2", gains[-1], at_least=0.0)

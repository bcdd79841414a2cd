"""ε̂ against the number of canaries K, and its bias and variance: Figures 2 (middle) and 3 (left) of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lidp.reproduce.experiment import Finding, Row, Scale
from lidp.reproduce.sweeps import SINGLE, Point, Sweep, look_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = {"2nd-order Wilson": 2, "4th-order Wilson": 4}


class GaussianCanaries(Sweep):
    """More canaries: narrower intervals, until they drown one another."""

    name = "gaussian-canaries"
    about = "ε̂ against the number of canaries K, n = 1,024 trials"
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
        return [
            Finding(
                "2nd-order Wilson, n = 1,024, ε = 2: the best K",
                best["canaries"],
                at_least=32,
                at_most=256,
                note="the paper: K between 32 and 256 performs well",
            ),
            Finding("2nd-order Wilson, n = 1,024, ε = 2: ε̂ at the best K", best["epsilon_hat"]),
        ]


class GaussianBiasVariance(GaussianCanaries):
    """The same simulation, split: what the other canaries cost, and what the higher order gains."""

    name = "gaussian-bias-variance"
    about = "ΔBias(K) = ε̂(K, 1) - ε̂(1, 1) and ΔVar(K, ℓ) = ε̂(K, ℓ) - ε̂(K, 1)"

    @property
    def source(self) -> str:
        return GaussianCanaries.name

    def table(self, rows: Sequence[Row]) -> list[Row]:
        every = super().table(rows)
        found = []
        for first in every:
            if first["method"] not in {"1st-order Wilson", SINGLE}:
                continue
            place = {name: first[name] for name in ("nominal_epsilon", "candidates")}
            alone = look_up(every, method=SINGLE, **place)
            assert alone is not None  # noqa: S101  # every sweep has it
            row = {**place, "canaries": first["canaries"], "bias": first["epsilon_hat"] - alone["epsilon_hat"]}
            row["bias_error"] = 0.0 if first is alone else _hypot(first, alone)
            for method, order in ORDERS.items():
                higher = look_up(every, method=method, canaries=first["canaries"], **place)
                row[f"variance_gain_{order}"] = "" if higher is None else higher["epsilon_hat"] - first["epsilon_hat"]
                row[f"variance_gain_{order}_error"] = "" if higher is None else _hypot(higher, first)
            found.append(row)
        return sorted(found, key=lambda row: (row["nominal_epsilon"], row["candidates"], row["canaries"]))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        rows = [row for row in table if (row["nominal_epsilon"], row["candidates"]) == (2.0, "paper")]
        many = rows[-1]
        gains = [row["variance_gain_2"] for row in rows if row["variance_gain_2"] != ""]
        large = [row for row in rows if row["canaries"] >= 32] or rows
        return [
            Finding(f"ΔBias at K = {many['canaries']:,}, ε = 2", many["bias"], at_most=0.0, note="the paper: negative"),
            Finding(
                f"ΔBias at K = {many['canaries']:,} against K = {large[0]['canaries']:,}, ε = 2",
                many["bias"] - large[0]["bias"],
                at_most=0.0,
                note="the paper: gets worse with K",
            ),
            Finding("ΔVar(K, 2), the smallest over K, ε = 2", min(gains), at_least=0.0, note="the paper: positive"),
            Finding("ΔVar(K, 2), the largest over K, ε = 2", max(gains), at_least=0.0),
        ]

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.figures import bias_variance_figure

        return bias_variance_figure(table)


def _hypot(a: Row, b: Row) -> float:
    return float((a["standard_error"] ** 2 + b["standard_error"] ** 2) ** 0.5)

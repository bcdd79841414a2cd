"""Several audits side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.report import drawings
from lidp.report.figure_data import BoundPath
from lidp.report.page import gauge_of, render, write_page
from lidp.report.wording import guarantee, headline, too_early, unit
from lidp.result import AuditResult, Verdict

if TYPE_CHECKING:
    from rich.table import Table

_HEADERS = ("audit", "target", "verdict", "claimed ε", "ε ≥", "δ", "neighbours", "method", "guarantee", "trials", "models")


@dataclass(frozen=True)
class Comparison:
    """Results with a name each, in the order in which they were given."""

    audits: tuple[tuple[str, AuditResult], ...]

    @classmethod
    def of(cls, audits: Sequence[tuple[str, AuditResult]]) -> Comparison:
        """A comparison; audits of one name get a number.

        Raises:
            InvalidArgument: if there are fewer than two audits.
        """
        if len(audits) < 2:
            raise InvalidArgument(f"a comparison takes at least two audits, got {len(audits)}")
        names = [name for name, _ in audits]
        told = [name if names.count(name) == 1 else f"{name} ({order})" for order, name in enumerate(names, start=1)]
        return cls(tuple(zip(told, (result for _, result in audits), strict=True)))

    @property
    def failure_probability(self) -> float:
        """With what probability, at most, one or more of the bounds are wrong: the sum, for each has its own.

        Credible bounds have none, and are not in it.
        """
        sure = (result.bound for _, result in self.audits if result.bound.guarantee is not Guarantee.CREDIBLE)
        return min(1.0, sum(bound.failure_probability for bound in sure))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to keep in mind when reading the audits side by side."""
        results = [result for _, result in self.audits]
        found = [
            "Each audit has a failure probability of its own. As far as their guarantees reach, the probability that one or more "
            f"of the {len(results)} bounds are wrong is at most {self.failure_probability:.3g}. "
            "Showing only the audit that looks best is not valid."
        ]
        if any(result.bound.guarantee is Guarantee.CREDIBLE for result in results):
            found.append("Credible bounds have no failure probability and are not counted in this.")
        if any(too_early(result) for result in results):
            found.append("Some audits have no verdict yet: their bounds are provisional, and prove nothing.")
        for values, what in (
            (
                {result.claim.neighbours for result in results},
                "neighbours: a bound for one relation says nothing about the other",
            ),
            ({result.claim.delta for result in results}, "δ: a bound at one δ is not a bound at a smaller claim's"),
            ({result.bound.guarantee for result in results}, "guarantees: the bounds are not worth the same"),
        ):
            if len(values) > 1:
                found.append(f"The audits differ in {what}.")
        seeds = {(result.target, result.seed, result.claim) for result in results}
        if len({(result.target, result.claim) for result in results}) < len(seeds):
            found.append("Some audits differ in their seed only: running again until a claim is refuted is not valid.")
        return tuple(found)

    def rows(self) -> list[tuple[str, ...]]:
        """A row of text for each audit, as in the table."""
        return [
            (
                name,
                result.target,
                str(result.verdict),
                f"{result.claim.epsilon:g}",
                f"{result.bound.epsilon:.4g}",
                f"{result.claim.delta:g}",
                str(result.claim.neighbours),
                result.bound.method,
                str(result.bound.guarantee),
                f"{result.bound.trials:,} of {result.planned_trials:,}",
                f"{result.models:,}",
            )
            for name, result in self.audits
        ]

    def table(self) -> Table:
        """The audits as a rich table: an audit is a column, so that several fit into a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title="audits side by side", title_justify="left")
        rows = self.rows()
        table.add_column(_HEADERS[0])
        for row in rows:
            table.add_column(Text(row[0]), overflow="fold")
        for place, header in enumerate(_HEADERS[1:], start=1):
            # Text, not markup: a target may be named [red].
            table.add_row(header, *(Text(row[place]) for row in rows))
        return table

    def page(self) -> str:
        """The audits as one HTML page, with the guarantees of the report."""
        units = {unit(result) for _, result in self.audits}
        paths = [(name, BoundPath.of(result)) for name, result in self.audits]
        return render(
            "compare.html.j2",
            headers=_HEADERS,
            rows=self.rows(),
            remarks=self.remarks,
            figure=drawings.paths_figure("paths", paths, " and ".join(sorted(units))),
            names=[name for name, _ in self.audits],
            audits=[
                {
                    "name": name,
                    "result": result,
                    "refuted": result.verdict is Verdict.REFUTED,
                    "gauge": gauge_of(result, f"gauge-{order}"),
                    "headline": headline(result),
                    "guarantee": guarantee(result),
                }
                for order, (name, result) in enumerate(self.audits)
            ],
        )

    def write(self, path: str | Path) -> Path:
        """Write the page; an existing file is replaced."""
        return write_page(self.page(), path)

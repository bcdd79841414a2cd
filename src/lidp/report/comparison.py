"""Several audits side by side."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from lidp._runtime.terminal_text import printable
from lidp.epsilon_bound import Guarantee
from lidp.errors import InvalidArgument
from lidp.report import drawings
from lidp.report.figure_data import BoundPath
from lidp.report.page import gauge_of, render, write_page
from lidp.report.wording import bound_words, guarantee, headline, unit, verdict
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_most, exact
from lidp.stats.storable import to_plain

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = {
    "audit": "name", "target": "name", "verdict": "word", "claimed ε": "number", "ε ≥": "number", "δ": "number",
    "neighbours": "word", "method": "word", "guarantee": "word", "trials": "number", "models": "number",
}  # fmt: skip
"""Columns of the table, and what is in them: names may be broken into lines, words and numbers not."""
_HEADERS = tuple(_COLUMNS)


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
        """With what probability, at most, one or more of the :attr:`covered` bounds are wrong: the sum, for each has its own."""
        # As decimal numbers: 0.05 three times is 0.15, and no more.
        return min(1.0, float(sum(Decimal(repr(result.bound.failure_probability)) for result in self.covered)))

    @property
    def covered(self) -> tuple[AuditResult, ...]:
        """The results whose bounds have a failure probability: credible and provisional ones have none."""
        return tuple(
            result
            for _, result in self.audits
            if result.bound.guarantee is not Guarantee.CREDIBLE and not result.provisional
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to keep in mind when reading the audits side by side."""
        results = [result for _, result in self.audits]
        found = [f"{self._together()} Showing only the audit that looks best is not valid."]
        if any(result.bound.guarantee is Guarantee.CREDIBLE for result in results):
            found.append("Credible bounds have no failure probability and are not counted in this.")
        if any(result.provisional for result in results):
            found.append("Some audits have no verdict yet: their bounds are provisional, and prove nothing.")
        for values, what in (
            (
                {result.claim.neighbours for result in results},
                "neighbours: a bound for one relation says nothing about the other",
            ),
            ({result.claim.delta for result in results}, "δ: a bound at one δ says nothing about a claim at a larger δ"),
            ({result.bound.guarantee for result in results}, "guarantees: the bounds are not worth the same"),
        ):
            if len(values) > 1:
                found.append(f"The audits differ in {what}.")
        return (*found, *self._of_the_same())

    def _together(self) -> str:
        """What the failure probabilities of the audits add up to."""
        count, most = len(self.covered), at_most(self.failure_probability, 3)
        if not count:
            return "None of the bounds has a failure probability."
        if count == 1:
            return f"As far as its guarantee reaches, the one bound that has a failure probability is wrong with at most {most}."
        everyone = count == len(self.audits)
        return (
            f"{'Each audit has' if everyone else f'{count} of the audits have'} a failure probability of "
            f"{'its' if everyone else 'their'} own. As far as their guarantees reach, the probability that one or more of "
            f"{'the' if everyone else 'these'} {count} bounds are wrong is at most {most}."
        )

    def _of_the_same(self) -> list[str]:
        """What is not valid, where a target and its claim were audited more than once."""
        again, ways = False, set()
        for one, other in combinations((result for _, result in self.audits), 2):
            if (one.target, one.claim) != (other.target, other.claim):
                continue
            first, second = _how(one), _how(other)
            different = {name for name in first if first[name] != second[name]}
            again |= different == {"seed"}
            ways |= different - {"seed", "target"}
        found = []
        if again:
            found.append("Some audits differ in their seed only: running again until a claim is refuted is not valid.")
        if ways:
            told = ", ".join(name for name in _how(self.audits[0][1]) if name in ways)
            found.append(
                f"Some audits are of the same target and claim, and differ in {told}: "
                "choosing the best of them afterwards is not valid."
            )
        return found

    def rows(self) -> list[tuple[str, ...]]:
        """A row of text for each audit, as in the table."""
        return [
            (
                name,
                result.target,
                verdict(result),
                exact(result.claim.epsilon),
                bound_words(result),
                exact(result.claim.delta),
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
            table.add_column(Text(printable(row[0])), overflow="fold")
        for place, header in enumerate(_HEADERS[1:], start=1):
            # Text, not markup: a target may be named [red].
            table.add_row(header, *(Text(printable(row[place])) for row in rows))
        return table

    def page(self) -> str:
        """The audits as one HTML page, with the guarantees of the report."""
        units = {unit(result) for _, result in self.audits}
        paths = [(name, BoundPath.of(result)) for name, result in self.audits]
        return render(
            "compare.html.j2",
            columns=_COLUMNS,
            rows=self.rows(),
            remarks=self.remarks,
            figure=drawings.paths_figure("paths", paths, " and ".join(sorted(units))),
            keys=[(name, path.has_path) for name, path in paths],
            one_claim=len({path.claim for _, path in paths}) == 1,
            audits=[
                {
                    "name": name,
                    "result": result,
                    "refuted": result.verdict is Verdict.REFUTED,
                    "verdict": verdict(result),
                    "bound_words": bound_words(result),
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


def _how(result: AuditResult) -> dict[str, Hashable]:
    """How a target was audited, by what may be chosen; "target" is its code, as far as that is known."""
    asked = result.configuration
    return {
        "design": result.design,
        "method": repr(to_plain(result.method)),
        "planned trials": result.planned_trials,
        "failure probability": result.bound.failure_probability,
        "when they stop": asked.get("stop_when"),
        "target": asked.get("fingerprint"),
        "seed": result.seed,
    }

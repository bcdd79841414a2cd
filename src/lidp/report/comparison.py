"""Several audits side by side."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from lidp._runtime.terminal_text import printable
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument
from lidp.report import curve_wording, drawings
from lidp.report.curve_figure_data import NoiseGauge
from lidp.report.figure_data import BoundPath, claimed_epsilon
from lidp.report.page import gauge_of, render, write_page
from lidp.report.wording import bound_words, guarantee, headline, unit, verdict
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, at_most, exact
from lidp.stats.storable import to_plain

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = {
    "audit": "name", "target": "name", "verdict": "word", "claimed ε": "number", "ε ≥": "number", "δ": "number",
    "neighbours": "word", "method": "word", "guarantee": "word", "trials": "number", "models": "number",
}  # fmt: skip
"""Columns of the table and the kind of their cells: names may break into lines, words and numbers may not."""
_CURVE_COLUMNS = {
    "audit": "name", "claimed curve": "name", "tested": "word", "curve": "word", "point": "word", "ε ≥ at δ alone": "number",
    "noise, claimed = 1": "word",
}  # fmt: skip
"""Columns of the table of audits that tested a privacy curve."""


@dataclass(frozen=True)
class Comparison:
    """Named results, in the order in which they were given."""

    audits: tuple[tuple[str, AuditResult], ...]

    @classmethod
    def of(cls, audits: Sequence[tuple[str, AuditResult]]) -> Comparison:
        """Return a comparison; audits that share a name get a number.

        Raises:
            InvalidArgument: if there are fewer than two audits.
        """
        if len(audits) < 2:
            raise InvalidArgument(f"a comparison takes at least two audits, got {len(audits)}")
        names = [name for name, _ in audits]
        unique = [name if names.count(name) == 1 else f"{name} ({order})" for order, name in enumerate(names, start=1)]
        return cls(tuple(zip(unique, (result for _, result in audits), strict=True)))

    @property
    def failure_probability(self) -> float:
        """An upper bound on the probability that at least one bound of the :attr:`covered` results is wrong: the sum of theirs."""
        # Summed as decimal numbers, so that three times 0.05 is exactly 0.15.
        return min(1.0, float(sum(Decimal(repr(bound.failure_probability)) for bound in self._covered_bounds)))

    @property
    def _covered_bounds(self) -> list[EpsilonBound]:
        """The bounds of the covered results; an audit of a curve has two: on the noise, and on ε at its δ alone."""
        return [bound for result in self.covered for bound in (result.bound, result.bound.point) if bound is not None]

    @property
    def _has_curves(self) -> bool:
        return any(result.bound.curve is not None for _, result in self.audits)

    @property
    def covered(self) -> tuple[AuditResult, ...]:
        """The results whose bounds have a failure probability: credible and provisional bounds have none."""
        return tuple(
            result
            for _, result in self.audits
            if result.bound.guarantee is not Guarantee.CREDIBLE and not result.provisional
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings for readers who compare the audits."""
        results = [result for _, result in self.audits]
        remarks = [f"{self._joint_failure()} Reporting only the audit that looks best is not valid."]
        if any(result.bound.guarantee is Guarantee.CREDIBLE for result in results):
            remarks.append("Credible bounds have no failure probability and are not included in this.")
        if any(result.provisional for result in results):
            remarks.append("Some audits have no verdict yet: their bounds are provisional and prove nothing.")
        for values, what in (
            (
                {result.claim.neighbours for result in results},
                "neighbours: a bound for one relation says nothing about the other",
            ),
            ({result.claim.delta for result in results}, "δ: a bound at one δ says nothing about a claim at a larger δ"),
            ({result.bound.guarantee for result in results}, "guarantees: their bounds are not equally reliable"),
        ):
            if len(values) > 1:
                remarks.append(f"The audits differ in {what}.")
        if self._has_curves:
            remarks.append(
                "Some audits test a whole privacy curve. Their ε is what the accountant computes for the effective noise; the "
                "bound on ε at δ alone stands beside it. Refuting a curve does not refute its point."
            )
        return (*remarks, *self._repetitions())

    def _joint_failure(self) -> str:
        """Return the joint failure probability of the audits in words."""
        count, most = len(self._covered_bounds), at_most(self.failure_probability, 3)
        if not count:
            return "None of the bounds has a failure probability."
        if count == 1:
            return (
                "One bound has a failure probability: as far as its guarantee holds, it is wrong with probability at most "
                f"{most}."
            )
        audits = len(self.covered)
        some = "1 of the audits has" if audits == 1 else f"{audits} of the audits have"
        covered = "Each audit has" if audits == len(self.audits) else some
        per_bound = ", or two if it tests a curve" if self._has_curves else ""
        return (
            f"{covered} a failure probability{per_bound}. As far as the guarantees hold, the probability that at least one of "
            f"these {count} bounds is wrong is at most {most}."
        )

    def _repetitions(self) -> list[str]:
        """Return warnings about several audits of the same target and claim."""
        only_seed, settings = False, set()
        for one, other in combinations((result for _, result in self.audits), 2):
            if (one.target, one.claim.point) != (other.target, other.claim.point):
                continue
            first, second = _settings(one), _settings(other)
            different = {name for name in first if first[name] != second[name]}
            only_seed |= different == {"seed"}
            settings |= different - {"seed", "target"}
        remarks = []
        if only_seed:
            remarks.append(
                "Some audits differ only in their seed: repeating an audit until its claim is refuted is not valid."
            )
        if settings:
            names = ", ".join(name for name in _settings(self.audits[0][1]) if name in settings)
            remarks.append(
                f"Some audits test the same target and claim but differ in {names}: "
                "choosing the best of them afterwards is not valid."
            )
        return remarks

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row of text per audit, as in the table."""
        return [
            (
                name,
                result.target,
                verdict(result),
                claimed_epsilon(result),
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

    def curve_rows(self) -> list[tuple[str, ...]]:
        """Return one row of text per audit that tested a privacy curve: what was tested, both verdicts, and both bounds."""
        return [(name, *_curve_cells(result)) for name, result in self.audits if result.bound.curve is not None]

    def table(self) -> Table:
        """Return the audits as a rich table: one column per audit, so that several fit into a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title="audits side by side", title_justify="left")
        rows = self.rows()
        first, *others = _COLUMNS
        table.add_column(first)
        for row in rows:
            table.add_column(Text(printable(row[0])), overflow="fold")
        about_curves = {row[0]: row for row in self.curve_rows()}
        lines = [(header, [row[index] for row in rows]) for index, header in enumerate(others, start=1)]
        for index, header in enumerate(_CURVE_COLUMNS) if about_curves else ():
            if index:
                lines.append((header, [about_curves[row[0]][index] if row[0] in about_curves else "–" for row in rows]))
        for header, cells in lines:
            # Text, not markup: a target may be named [red].
            table.add_row(header, *(Text(printable(cell)) for cell in cells))
        return table

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import card, paragraph, table

        parts = [table(self.rows(), header=tuple(_COLUMNS))]
        if self._has_curves:
            parts.append(table(self.curve_rows(), header=tuple(_CURVE_COLUMNS)))
        refuted = any(result.verdict is Verdict.REFUTED for _, result in self.audits)
        return card("audits side by side", *parts, *map(paragraph, self.remarks), alarming=refuted)

    def page(self, *, links: Mapping[str, str] | None = None) -> str:
        """Return the audits as one HTML page, with the guarantees and ``links`` of :func:`lidp.report.page.render_report`."""
        units = {unit(result) for _, result in self.audits}
        paths = [(name, BoundPath.of(result)) for name, result in self.audits]
        return render(
            "compare.html.j2",
            links=links,
            columns=_COLUMNS,
            rows=self.rows(),
            curve_columns=_CURVE_COLUMNS,
            curve_rows=self.curve_rows(),
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
                    "claimed_epsilon": claimed_epsilon(result),
                    "gauge": gauge_of(result, f"gauge-{order}"),
                    "on_the_noise": curve_wording.on_the_noise(result),
                    "sentences": [
                        headline(result),
                        curve_wording.on_the_point(result),
                        guarantee(result),
                        curve_wording.on_failure_probabilities(result),
                    ],
                }
                for order, (name, result) in enumerate(self.audits)
            ],
        )

    def write(self, path: str | Path) -> Path:
        """Write the page; an existing file is replaced."""
        return write_page(self.page(), path)


def _curve_cells(result: AuditResult) -> tuple[str, ...]:
    """Return the cells of an audit of a curve, without its name."""
    bound, noise = result.bound, NoiseGauge.of(result)
    return (
        str(bound.curve),
        str(bound.hypothesis),
        str(result.verdicts["curve"]),
        str(result.verdicts["point"]),
        at_least(bound.epsilon_point, above=result.claim.epsilon),
        "–" if noise is None else noise.noise_words,
    )


def _settings(result: AuditResult) -> dict[str, Hashable]:
    """Return the settings that a user may choose; "target" is the fingerprint of its code, if known."""
    configuration = result.configuration
    return {
        "claimed curve": result.claim.curve,
        "design": result.design,
        "method": repr(to_plain(result.method)),
        "planned trials": result.planned_trials,
        "failure probability": result.bound.failure_probability,
        "stopping rule": configuration.get("stop_when"),
        "target": configuration.get("fingerprint"),
        "seed": result.seed,
    }

"""The assertions of a test session as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from lidp.errors import InvalidArgument
from lidp.report.page import render, write_page
from lidp.result import Verdict
from lidp.rounding import at_most, counted

ERROR = "error"
"""The verdict of an assertion that raised an error: nothing was shown."""
_COLUMNS = {
    "test": "name", "call": "number", "mechanism": "name", "claim": "name", "verdict": "word", "bound": "name", "runs": "number",
    "β": "number",
}  # fmt: skip
"""Columns of the table and the kind of their cells: names may break into lines, words and numbers may not."""


@dataclass(frozen=True)
class AssertionRow:
    """One assertion, as plain data that a worker process can send.

    Attributes:
        test: the name of the test.
        call: which of the test's calls it was, from 1, counted over all attempts at the test.
        mechanism: the name of the mechanism.
        claim: the claim in words.
        verdict: the verdict, or "error".
        bound: the bound in words; empty if there is none.
        runs: the runs that it used, those that chose the data sets included.
        planned: the runs that it could have used.
        failure_probability: its share of the session's; 0 if it repeats an earlier refutation, without a new chance.
        seed: the seed of its audit.
        explanation: what leaks, and how the refutation is checked; or the error.
        repeats: whether it repeats the refutation of an earlier attempt at the test.
    """

    test: str
    call: int
    mechanism: str
    claim: str
    verdict: str
    bound: str
    runs: int
    planned: int
    failure_probability: float
    seed: int
    explanation: str
    repeats: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the row that :meth:`to_dict` described."""
        return cls(**{field.name: plain[field.name] for field in fields(cls)})

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict == str(Verdict.REFUTED)


@dataclass(frozen=True)
class SessionReport:
    """The assertions of a session, in the order of their tests.

    Attributes:
        rows: the assertions.
        failure_probability: the probability that the session fails although all claims are true, at most.
        budget: the name of the session's number of runs.
        seed: the seed of the session.
    """

    rows: tuple[AssertionRow, ...]
    failure_probability: float
    budget: str
    seed: int

    @classmethod
    def of(cls, rows: Iterable[AssertionRow], *, failure_probability: float, budget: str, seed: int) -> SessionReport:
        """Return the report of a session, whose rows may come in any order."""
        ordered = sorted(rows, key=lambda row: (row.test, row.call, row.repeats))
        return cls(tuple(ordered), failure_probability, budget, seed)

    @property
    def assertions(self) -> int:
        """The number of assertions, without repetitions of earlier refutations."""
        return sum(not row.repeats for row in self.rows)

    @property
    def refuted(self) -> int:
        """The number of refuted assertions, without repetitions."""
        return sum(row.refuted and not row.repeats for row in self.rows)

    @property
    def used(self) -> float:
        """The sum of the failure probabilities of all assertions."""
        return math.fsum(row.failure_probability for row in self.rows)

    def summary(self) -> str:
        """Return the assertions, their runs and the false-alarm budget that they used, as one line."""
        repeated = sum(row.repeats for row in self.rows)
        parts = [
            counted(self.assertions, "assertions"),
            f"{self.refuted:,} refuted",
            *([f"{counted(repeated, 'reruns')} of a refuted one"] if repeated else []),
            counted(sum(row.runs for row in self.rows), "runs"),
            f"budget {self.budget}",
            f"false-alarm probability {at_most(self.used)} of {self.failure_probability:g} used",
            f"--dp-seed={self.seed}",
        ]
        return ", ".join(parts)

    def page(self) -> str:
        """Return the assertions as one HTML page, with the guarantees of :func:`lidp.report.page.render_report`."""
        return render(
            "assertions.html.j2",
            links=None,
            report=self,
            columns=_COLUMNS,
            table_rows=[_cells(row) for row in self.rows],
            used=at_most(self.used),
            runs=sum(row.runs for row in self.rows),
            explained=[row for row in self.rows if row.explanation],
        )

    def write(self, path: str | Path) -> Path:
        """Write the page, and its folder if there is none; an existing file is replaced.

        Raises:
            InvalidArgument: if it cannot be written.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"{path}: the folder of the report cannot be made: {error.strerror}") from None
        return write_page(self.page(), path)


def _cells(row: AssertionRow) -> tuple[str, ...]:
    return (
        row.test,
        f"{row.call}, rerun" if row.repeats else f"{row.call}",
        row.mechanism,
        row.claim,
        row.verdict,
        row.bound or "–",
        f"{row.runs:,} of {row.planned:,}" if row.runs else "–",
        at_most(row.failure_probability) if row.failure_probability else "–",
    )

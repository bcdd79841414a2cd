"""``Outcome``: how a finished audit ended, as its store keeps it, so that lists of audits need not read their trials."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from lidp.result import AuditResult, Verdict

OUTCOME = "outcome"
"""Name of the fact in a store that holds the outcome."""


@dataclass(frozen=True)
class Outcome:
    """The end of an audit. It is a note for lists: :func:`lidp.result_of` computes the verdict from the trials.

    Attributes:
        verdict: the verdict.
        epsilon: the lower bound on ε.
        rows: trials (runs, for two data sets) that the bound uses.
        planned: the budget.
    """

    verdict: Verdict
    epsilon: float
    rows: int
    planned: int

    @classmethod
    def of(cls, result: AuditResult) -> Outcome:
        """Return the outcome of a result."""
        return cls(result.verdict, result.bound.epsilon, result.bound.trials, result.planned_trials)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self) | {"verdict": str(self.verdict)}

    @classmethod
    def from_plain(cls, plain: Any) -> Outcome | None:
        """Return the outcome that :meth:`to_dict` described; None for anything else."""
        if not isinstance(plain, dict) or set(plain) != {"verdict", "epsilon", "rows", "planned"}:
            return None
        verdict, epsilon, rows, planned = (plain[name] for name in ("verdict", "epsilon", "rows", "planned"))
        if verdict not in list(Verdict) or type(rows) is not int or type(planned) is not int:
            return None
        if not isinstance(epsilon, (int, float)) or not math.isfinite(epsilon):
            return None
        return cls(Verdict(verdict), float(epsilon), rows, planned)

"""``Progress``: how far an audit is, for progress displays."""

from __future__ import annotations

from dataclasses import dataclass

from lidp.rounding import claimed, fixed


@dataclass(frozen=True)
class Progress:
    """How far an audit is.

    Attributes:
        done: finished trials (runs, for two data sets).
        planned: the budget.
        epsilon: the bound so far; None for methods that give none before the end.
        claim: the claimed ε.
        seconds: elapsed seconds.
        failed: trials in which a run failed.
        unit: what is counted, in the plural.
    """

    done: int
    planned: int
    epsilon: float | None
    claim: float
    seconds: float
    failed: int
    unit: str = "trials"

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import progress_bar

        return progress_bar(self.done, self.planned, str(self))

    def __str__(self) -> str:
        rate = self.done / self.seconds if self.seconds > 0 else 0.0
        left = (self.planned - self.done) / rate if rate else 0.0
        speed = f"{rate:,.1f}" if rate < 1000 else f"{rate:,.0f}"
        bound = (
            "" if self.epsilon is None else f", ε ≥ {fixed(self.epsilon, 2)} (claim {claimed(self.claim, self.epsilon)})"
        )
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,}/{self.planned:,} {self.unit}, {speed}/s, at most {left:,.0f} s left{bound}{failed}"

"""``Progress``: how far an audit is, for progress displays."""

from __future__ import annotations

from dataclasses import dataclass

from lidp.rounding import claimed, duration, fixed

_CHEAP_SECONDS = 3.0
"""Models that take less are cheap, and most of the time of a first one is not training."""


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
        rate: how many finish per second, without the first ones, which take longer; None until there are enough for an estimate.
        may_stop: whether the audit ends before its budget if the claim is refuted.
        cost: what the budget costs, by the models that were trained before the first trial; shown until there is a rate.
        warnings: what is suspicious about the mechanism or its scores.
    """

    done: int
    planned: int
    epsilon: float | None
    claim: float
    seconds: float
    failed: int
    unit: str = "trials"
    rate: float | None = None
    may_stop: bool = True
    cost: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def seconds_left(self) -> float | None:
        """How long the rest of the budget takes at this rate; None if there is no estimate."""
        return seconds_left(self.done, self.planned, self.rate)

    def _repr_html_(self) -> str:
        from lidp._runtime.html_text import paragraph, progress_bar

        return progress_bar(self.done, self.planned, str(self)) + "".join(
            paragraph(f"warning: {one}") for one in self.warnings
        )

    def __str__(self) -> str:
        left = self.seconds_left
        speed = ""
        if self.rate and left:
            speed = f", {per_second(self.rate)}/s, {'at most' if self.may_stop else 'about'} {duration(left)} left"
        elif self.cost and self.done < self.planned:
            speed = f", {self.cost}"
        bound = (
            "" if self.epsilon is None else f", ε ≥ {fixed(self.epsilon, 2)} (claim {claimed(self.claim, self.epsilon)})"
        )
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,}/{self.planned:,} {self.unit}{speed}{bound}{failed}"


def describe_cost(models: int, seconds: float | None, workers: int) -> str:
    """Return the cost of models that take so many seconds each; empty if that is not known, or so little that nobody asks."""
    if seconds is None or seconds < _CHEAP_SECONDS:
        return ""
    at_once = f" with {workers:,} workers" if workers > 1 else ""
    return f"{models:,} models of {duration(seconds)}{at_once}: about {duration(models * seconds / workers)}"


def seconds_left(done: int, planned: int, rate: float | None) -> float | None:
    """Return how long the rest of a budget takes at a rate; None if there is no estimate of the rate."""
    return None if not rate else max(planned - done, 0) / rate


def per_second(rate: float) -> str:
    """Return a rate in words."""
    return f"{rate:,.3g}" if rate < 1000 else f"{rate:,.0f}"

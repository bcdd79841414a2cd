"""What every method is: an immutable object that turns scores into an ``EpsilonBound``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol

from lidp import checks
from lidp.claim import Direction
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores

ALIKE = "held-out canaries are drawn and scored like the inserted ones"
"""What every bound on leave-one-out and replace-one scores rests on: else the two arms differ by more than who was in."""


class Method(ABC):
    """A way to bound ε from scores. Subclasses are frozen dataclasses; their fields are the method's parameters."""

    name: ClassVar[str]
    guarantee: ClassVar[Guarantee]
    anytime: ClassVar[bool] = False
    """whether the bound holds after every trial at once, so that an audit may stop when it likes"""
    direction: Direction

    def check(self, scores: Scores) -> None:
        """Raise ``MethodNotApplicable`` with the reason if the method says nothing about these scores.

        Methods add reasons of their own to this one, which holds for all: trials that were stopped because of what they showed,
        or looked at before all were run, are no sample of a fixed size.
        """
        if scores.stopped_early and not self.anytime:
            raise MethodNotApplicable(
                f"{self.name} is not anytime-valid, and these {scores.trials:,} trials are fewer than planned: they were stopped "
                "when the claim was refuted, or the audit is not finished. It would be wrong too often; finish the audit with "
                "stop_when='never' (--stop-when never), or use an anytime-valid method such as coin-wager or lifted-betting"
            )

    @abstractmethod
    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        """The bound, with the guarantee of the method."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as plain data, for the result."""
        plain: dict[str, Any] = {}
        for item in fields(self):  # type: ignore[arg-type]  # every concrete method is a dataclass
            value = getattr(self, item.name)
            if value is not None and value is not False and item.name != "direction":  # a switch that is off says nothing
                plain[item.name] = value if isinstance(value, (bool, int, float)) else str(value)
        return plain

    def report(
        self,
        scores: Scores,
        epsilon: float,
        *,
        delta: float,
        failure_probability: float,
        trials: int | None = None,
        thresholds: Mapping[str, float] | None = None,
        rates: Mapping[str, float] | None = None,
        path: tuple[tuple[int, float], ...] = (),
        assumptions: tuple[str, ...] = (),
    ) -> EpsilonBound:
        """Fill in all that the method and the scores already say about the bound.

        ``trials`` is for runs that saw more trials than the ``scores`` at hand.
        """
        Method.check(self, scores)  # whatever the method itself has checked: no bound is made without it
        return EpsilonBound(
            epsilon=max(0.0, float(epsilon)),
            delta=delta,
            failure_probability=failure_probability,
            method=self.name,
            guarantee=self.guarantee,
            neighbours=scores.neighbours,
            direction=self.direction,
            trials=trials or scores.trials,
            canaries=scores.canaries,
            models=(trials or scores.trials) * scores.design.models_per_trial,
            parameters=self.parameters,
            thresholds={k: float(v) for k, v in (thresholds or {}).items()},
            rates={k: float(v) for k, v in (rates or {}).items()},
            path=path,
            assumptions=(*assumptions, *(() if scores.has_coins else (ALIKE,))),
        )


class Run(Protocol):
    """An anytime-valid method at work on trials as they come."""

    @property
    def epsilon(self) -> float:
        """The bound so far."""

    def update(self, scores: Scores) -> float:
        """Take further trials, in their order; returns the bound so far."""

    def bound(self) -> EpsilonBound:
        """The bound on all trials so far, with its path."""


class AnytimeMethod(Method):
    """A method whose bound holds after every trial."""

    anytime: ClassVar[bool] = True

    @abstractmethod
    def begin(self, *, delta: float, failure_probability: float) -> Run:
        """A run that takes trials as they come."""

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        run = self.begin(delta=delta, failure_probability=failure_probability)
        run.update(scores)
        return run.bound()


def check_direction(method: Method) -> None:
    """Accept a direction by its name; to be called from ``__post_init__``."""
    try:
        object.__setattr__(method, "direction", Direction(method.direction))
    except ValueError:
        known = ", ".join(Direction)
        raise InvalidArgument(f"direction must be one of {known}, got {method.direction!r}") from None


def check_probabilities(delta: float, failure_probability: float) -> tuple[float, float]:
    """The two numbers every bound needs, validated."""
    delta, failure_probability = checks.delta(delta=delta), checks.probability(failure_probability=failure_probability)
    if failure_probability < 1e-100:
        raise InvalidArgument(f"failure_probability must be at least 1e-100, got {failure_probability}")
    return delta, failure_probability

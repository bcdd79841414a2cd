"""``Method``: the base of all methods, immutable objects that turn scores into an ``EpsilonBound``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol

from lidp import checks
from lidp.claim import Direction
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.citations import Work
from lidp.stats.storable import Storable

ALIKE = "held-out canaries are drawn and scored like the inserted ones"
"""Assumption of every bound on leave-one-out and replace-one scores: else the arms differ by more than who was inserted."""


class Method(Storable, ABC):
    """A way to bound ε from scores.

    Subclasses are frozen dataclasses; their fields are the method's parameters, which stores keep (see
    :mod:`lidp.stats.storable`). The class attributes say all that reports and citations need to know of a method.
    """

    name: ClassVar[str]
    """what results and the command line call it"""
    guarantee: ClassVar[Guarantee]
    summary: ClassVar[str] = ""
    """one sentence for reports: how the method arrives at its bound; by default the first line of the docstring"""
    works: ClassVar[tuple[Work, ...]] = ()
    """what to cite for it"""
    anytime: ClassVar[bool] = False
    """whether the bound holds after every trial at once, so that an audit may stop at any trial"""
    needs_curve: ClassVar[bool] = False
    """whether the method tests a claimed privacy curve, its parameter ``curve``, which must be given"""
    counts: ClassVar[tuple[str, ...]] = ()
    """names of rates that are counts, which reports show as whole numbers"""
    direction: Direction = Direction.FORWARD

    @property
    def assumes_independent_canaries(self) -> bool:
        """Whether a refutation may also mean that the canaries of one run are not independent of one another."""
        return False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "summary" not in cls.__dict__ and cls.__doc__:
            cls.summary = cls.__doc__.strip().partition("\n")[0]

    def check(self, design: Design, *, sequential: bool = False) -> None:
        """Raise ``MethodNotApplicable`` with the reason if the guarantee does not cover trials of this design.

        ``sequential`` says that scores use coins of lower-index canaries of their trial. Whether the trials at hand were stopped
        early is no question of the design: see :func:`check_scores`, which no method can override.
        """

    @abstractmethod
    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        """Return the bound, with the guarantee of the method."""

    def describe_rates(self, bound: EpsilonBound) -> Mapping[str, str]:
        """Return what each of ``bound.rates`` means, by name, for the table of the report."""
        return {}

    def describe_thresholds(self, bound: EpsilonBound) -> Mapping[str, str]:
        """Return what each of ``bound.thresholds`` means, by name, for the table of the report."""
        return dict.fromkeys(bound.thresholds, "scores are split here")

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data for the result, without those that are None or switched off."""
        plain: dict[str, Any] = {}
        for item in fields(self):  # type: ignore[arg-type]  # every concrete method is a dataclass
            value = getattr(self, item.name)
            if value is not None and value is not False and item.name != "direction":
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
        **of_curve: Any,
    ) -> EpsilonBound:
        """Return the bound with everything that the method and the scores say about it; refuse scores outside its guarantee.

        ``trials`` is for runs that saw more trials than the given ``scores``; ``of_curve`` are the fields of the bound that
        methods for whole privacy curves fill.
        """
        check_scores(self, scores)  # whatever the method itself has checked: no bound is made without it
        delta, failure_probability = check_probabilities(delta, failure_probability)
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
            **of_curve,
        )


class Run(Protocol):
    """An anytime-valid method that is given trials as they finish."""

    @property
    def epsilon(self) -> float:
        """Return the bound so far."""

    def update(self, scores: Scores) -> float:
        """Take further trials, in the order of their indices, and return the bound so far."""

    def bound(self) -> EpsilonBound:
        """Return the bound on all trials so far, with its path."""


class AnytimeMethod(Method):
    """A method whose bound holds after every trial."""

    anytime: ClassVar[bool] = True

    @abstractmethod
    def begin(self, *, delta: float, failure_probability: float) -> Run:
        """Return a run that takes trials as they finish."""

    def bound(self, scores: Scores, *, delta: float, failure_probability: float) -> EpsilonBound:
        run = self.begin(delta=delta, failure_probability=failure_probability)
        run.update(scores)
        return run.bound()


def refuse_stopped_early(method: Method, scores: Scores) -> None:
    """Raise ``MethodNotApplicable`` if a method of fixed size is to bound trials that were stopped early.

    Trials that ended because of what they showed, or that are looked at before all were run, are no sample of a fixed size.
    """
    if scores.stopped_early and not method.anytime:
        raise MethodNotApplicable(
            f"{method.name} is not anytime-valid, and these {scores.trials:,} trials are fewer than planned: they were stopped "
            "when the claim was refuted, or the audit is not finished. It would be wrong too often; finish the audit with "
            "stop_when='never' (--stop-when never), or use an anytime-valid method such as coin-wager or lifted-betting"
        )


def check_scores(method: Method, scores: Scores) -> None:
    """Raise ``MethodNotApplicable`` with the reason if the method's guarantee does not cover these scores."""
    refuse_stopped_early(method, scores)
    method.check(scores.design, sequential=scores.sequential)


def check_direction(method: Method) -> None:
    """Accept a direction by its name; to be called from ``__post_init__``."""
    object.__setattr__(method, "direction", checks.member(Direction, direction=method.direction))


def check_probabilities(delta: float, failure_probability: float) -> tuple[float, float]:
    """Return δ and the failure probability, validated."""
    delta, failure_probability = checks.delta(delta=delta), checks.probability(failure_probability=failure_probability)
    if failure_probability < 1e-100:
        raise InvalidArgument(f"failure_probability must be at least 1e-100, got {failure_probability}")
    return delta, failure_probability

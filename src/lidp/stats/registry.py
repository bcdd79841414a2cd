"""The methods of lidp by name, and :func:`bound`, which applies a method to scores.

A new method of lidp is a file with its class, and a line in ``METHODS``. A method of a user's own needs neither line nor
registration: give the object wherever a method is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from lidp.claim import Claim
from lidp.curves.curve import LARGEST_EPSILON
from lidp.designs import Design
from lidp.epsilon_bound import EpsilonBound, Hypothesis
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.coin_wager import CoinWager
from lidp.stats.curve_wager import CurveWager
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.stats.gaussian_dp import GaussianDP
from lidp.stats.jeffreys import Jeffreys
from lidp.stats.joint_beta import JointBeta
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method, check_probabilities, check_scores
from lidp.stats.one_run import OneRun, RankGuesses
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.planned_guesses import PlannedGuesses
from lidp.stats.signed_ranks import SignedRanks
from lidp.stats.storable import declare_lidps_own
from lidp.stats.thresholds import CentralGrid, FixedThreshold, SplitThreshold, TailQuantiles, UnionThreshold
from lidp.stats.wilson import Wilson

METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {
        method.name: method
        for method in (
            LiftedBetting,
            CoinWager,
            CurveWager,
            CurveWagerWithGuesses,
            Wilson,
            Bernstein,
            ClopperPearson,
            Jeffreys,
            OneRun,
            OneRunFDP,
            SignedRanks,
            GaussianDP,
            JointBeta,
        )
    }
)

declare_lidps_own(METHODS.values())
declare_lidps_own((FixedThreshold, SplitThreshold, UnionThreshold, RankGuesses, PlannedGuesses, TailQuantiles, CentralGrid))


def method_named(name: str) -> type[Method]:
    """Return the class of the method with this name."""
    try:
        return METHODS[name]
    except KeyError:
        raise InvalidArgument(f"unknown method {name!r}; the methods are {', '.join(METHODS)}") from None


def check_name(method: Method) -> None:
    """Raise ``InvalidArgument`` if a method that is not lidp's goes by the name of one of lidp's.

    Its bounds would be taken for those of lidp's method. That includes subclasses which inherit the name.
    """
    if METHODS.get(method.name, type(method)) is not type(method):
        cls = type(method)
        raise InvalidArgument(
            f"the class {cls.__module__}:{cls.__qualname__} has the name {method.name!r} of one of lidp's methods; "
            "give it a name of its own, as in name: ClassVar[str] = 'mine'"
        )


def default_method(design: Design, claim: Claim | None = None) -> Method:
    """Return the strongest method that is valid for any number of trials, by the design and the claim.

    It is a wager for coins and lifted betting for arms, against the claimed curve if there is one. Against a point, it tests ε
    up to at least twice the claimed one.
    """
    if claim is not None and claim.curve is not None:
        return CurveWager(claim.curve) if design.has_coins else LiftedBetting(curve=claim.curve)
    return point_method(design, claim)


def point_method(design: Design, claim: Claim | None = None, *, like: Method | None = None) -> Method:
    """Return the default method for a point (ε, δ); ``like`` is the method for the curve beside which it is used."""
    kind = CoinWager if design.has_coins else LiftedBetting
    settings: dict[str, Any] = {} if like is None else {"direction": like.direction}
    if design.has_coins and like is not None:
        settings["log_odds"] = getattr(like, "log_odds", False)
    if claim is not None and 2 * claim.epsilon > kind.largest:
        settings["largest"] = min(2 * claim.epsilon, LARGEST_EPSILON)
    return kind(**settings)


def make_method(kind: type[Method], claim: Claim | None = None, **settings: Any) -> Method:
    """Return a method of a class, with the claimed curve if it takes one.

    Raises:
        MethodNotApplicable: if it needs one and there is none.
    """
    takes_curve = any(item.name == "curve" for item in fields(kind))  # type: ignore[arg-type]  # methods are dataclasses
    if not takes_curve or "curve" in settings or not (kind.needs_curve or (claim is not None and claim.curve is not None)):
        return kind(**settings)
    if claim is None or claim.curve is None:
        raise MethodNotApplicable(
            f"{kind.name} tests a whole privacy curve, and none is claimed; claim one, as in Claim.gaussian(mu=0.5) or "
            "--gaussian-mu 0.5"
        )
    return kind(curve=claim.curve, **settings)  # type: ignore[call-arg]  # methods that need a curve have a field for it


def canary_by_canary(method: Method) -> Method:
    """Return the method for the hypothesis that canaries of one run are independent, so that each counts as a trial of its own.

    Raises:
        MethodNotApplicable: if it has no such hypothesis.
    """
    if method.assumes_independent_canaries:
        return method
    if isinstance(method, CurveWager):
        return replace(method, canary_by_canary=True)
    raise MethodNotApplicable(
        f"independent canaries are a hypothesis for {CurveWager.name}, which tests a privacy curve with coin-flip canaries, "
        f"and the method is {method.name}; claim a curve under add-remove neighbours, with coin flips and the default method"
    )


_ONLY_INDEPENDENT = "{name} assumes that the canaries of one run are independent of one another; name it if they are"


def applicable(scores: Scores, claim: Claim | None = None) -> dict[str, Method | str]:
    """Return for each method's name the method with default parameters, or the reason why it does not apply."""
    methods: dict[str, Method | str] = {}
    for name, kind in METHODS.items():
        try:
            method = make_method(kind, claim)
            check_scores(method, scores)
        except MethodNotApplicable as reason:
            methods[name] = str(reason)
        else:
            interfere = method.assumes_independent_canaries and scores.canaries > 1
            methods[name] = _ONLY_INDEPENDENT.format(name=name) if interfere else method
    return methods


def bound(
    scores: Scores,
    method: Method | str | None = None,
    *,
    claim: Claim | None = None,
    delta: float | None = None,
    failure_probability: float = 0.05,
) -> EpsilonBound:
    """Return a lower bound on ε from scores; if a privacy curve is claimed, that of the curve, with the point beside it.

    Args:
        scores: the scores of the trials.
        method: a method such as ``CoinWager()`` or ``Wilson(order=2)``, one of your own, or the name of one of lidp's. By default
            a wager for coin-flip scores and lifted betting for the others, against the claimed curve if there is one. Choose
            before looking at results: the best of several methods, picked afterwards, is not a valid bound.
        claim: what is claimed; see :meth:`EpsilonBound.verdicts`. Its neighbours must be those of the scores.
        delta: the δ at which ε is bounded; not needed with a claim.
        failure_probability: β, the probability with which the bound may exceed the true ε.

    Raises:
        MethodNotApplicable: if the method's guarantee does not extend to these scores.
    """
    if not isinstance(scores, Scores):
        raise InvalidArgument(f"scores must be a lidp.Scores, got {type(scores).__name__}; build one from your arrays")
    if claim is None and delta is None:
        raise InvalidArgument("give delta, at which ε is to be bounded, or a claim")
    if claim is not None:
        if delta is not None and delta != claim.delta:
            raise InvalidArgument(f"the claim has delta {claim.delta:g}, so delta must not be {delta:g}; leave it out")
        if claim.neighbours is not scores.neighbours:
            raise InvalidArgument(
                f"the scores are for {scores.neighbours} neighbours, the claim for {claim.neighbours}; "
                "a bound for one relation says nothing about the other"
            )
        delta = claim.delta
    if method is None:
        method = default_method(scores.design, claim)
    elif isinstance(method, str):
        method = make_method(method_named(method), claim)
    elif not isinstance(method, Method):
        raise InvalidArgument(f"method must be a method object or a name, got {method!r}; try CoinWager()")
    check_name(method)
    check_scores(method, scores)
    delta, failure_probability = check_probabilities(delta or 0.0, failure_probability)
    return bound_with_point(method, scores, delta=delta, failure_probability=failure_probability, claim=claim)


def bound_with_point(
    method: Method, scores: Scores, *, delta: float, failure_probability: float, claim: Claim | None = None
) -> EpsilonBound:
    """Return the bound of a method; if it is about a curve, with the bound on ε at the point beside it."""
    return with_point(
        method.bound(scores, delta=delta, failure_probability=failure_probability), method, scores, claim=claim
    )


def with_point(bound: EpsilonBound, method: Method, scores: Scores, *, claim: Claim | None = None) -> EpsilonBound:
    """Return a bound that is about a curve with the bound on ε at the point beside it, from the same scores."""
    if bound.hypothesis is Hypothesis.POINT:
        return bound
    point = point_method(scores.design, claim, like=method)
    check_scores(point, scores)
    return replace(bound, point=point.bound(scores, delta=bound.delta, failure_probability=bound.failure_probability))

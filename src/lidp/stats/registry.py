"""All methods by name, and the one verb over them: :func:`bound`."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from lidp.epsilon_bound import EpsilonBound
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.coin_wager import CoinWager
from lidp.stats.gaussian_dp import GaussianDP
from lidp.stats.jeffreys import Jeffreys
from lidp.stats.joint_beta import JointBeta
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method
from lidp.stats.one_run import OneRun, RankGuesses
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.thresholds import CentralGrid, FixedThreshold, SplitThreshold, TailQuantiles, UnionThreshold
from lidp.stats.wilson import Wilson

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        LiftedBetting,
        CoinWager,
        Wilson,
        Bernstein,
        ClopperPearson,
        Jeffreys,
        OneRun,
        OneRunFDP,
        GaussianDP,
        JointBeta,
    )
}


def method_named(name: str) -> type[Method]:
    """The method class of that name."""
    try:
        return METHODS[name]
    except KeyError:
        raise InvalidArgument(f"unknown method {name!r}; the methods are {', '.join(METHODS)}") from None


def default_method(scores: Scores, epsilon: float = 0.0) -> Method:
    """The strongest method that is valid for any number of trials: coin wager or lifted betting, by the design.

    It looks well beyond ``epsilon``, the one that is claimed.
    """
    kind = CoinWager if scores.has_coins else LiftedBetting
    return kind() if 2 * epsilon <= kind.largest else kind(largest=2 * epsilon)


def applicable(scores: Scores) -> dict[str, Method | str]:
    """For each method's name, the method with default parameters, or the reason why it does not apply."""
    found: dict[str, Method | str] = {}
    for name, kind in METHODS.items():
        method = kind()
        try:
            Method.check(method, scores)
            method.check(scores)
        except MethodNotApplicable as reason:
            found[name] = str(reason)
        else:
            found[name] = method
    return found


def bound(
    scores: Scores, method: Method | str | None = None, *, delta: float, failure_probability: float = 0.05
) -> EpsilonBound:
    """A lower bound on ε from scores.

    Args:
        scores: what the trials handed on.
        method: a method such as ``CoinWager()`` or ``Wilson(order=2)``, or a method's name. By default coin wager for
            coin-flip scores and lifted betting for the others. Choose before looking at results: the best of several
            methods, picked afterwards, is not a valid bound.
        delta: the δ at which ε is bounded.
        failure_probability: β, the probability with which the bound may exceed the true ε.

    Raises:
        MethodNotApplicable: if the method's guarantee does not extend to these scores.
    """
    if not isinstance(scores, Scores):
        raise InvalidArgument(f"scores must be a lidp.Scores, got {type(scores).__name__}; build one from your arrays")
    if method is None:
        method = default_method(scores)
    elif isinstance(method, str):
        method = method_named(method)()
    elif not isinstance(method, Method):
        raise InvalidArgument(f"method must be a method object or a name, got {method!r}; try CoinWager()")
    Method.check(method, scores)
    return method.bound(scores, delta=delta, failure_probability=failure_probability)


_PARTS = {
    kind.__name__: kind
    for kind in (FixedThreshold, SplitThreshold, UnionThreshold, RankGuesses, TailQuantiles, CentralGrid, *METHODS.values())
}


def to_plain(thing: Any) -> Any:
    """A method or threshold strategy as plain data that :func:`from_plain` turns back into an equal one."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **{item.name: to_plain(getattr(thing, item.name)) for item in fields(thing)}}
    return list(thing) if isinstance(thing, tuple) else str(thing) if isinstance(thing, StrEnum) else thing


def from_plain(plain: Any) -> Any:
    """The inverse of :func:`to_plain`. Knows methods and their parts only, so reading someone else's data runs nothing."""
    if isinstance(plain, dict):
        kind = _PARTS.get(str(plain.get("kind")))
        if kind is None:
            raise InvalidArgument(f"unknown method {plain.get('kind')!r}; was it written by a newer version of lidp?")
        return kind(**{name: from_plain(value) for name, value in plain.items() if name != "kind"})
    return tuple(plain) if isinstance(plain, list) else plain

"""The methods of lidp by name, and :func:`bound`, which applies a method to scores.

A new method of lidp is a file with its class, and a line in ``METHODS``. A method of a user's own needs neither line nor
registration: give the object wherever a method is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lidp.designs import Design
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
from lidp.stats.method import Method, check_scores
from lidp.stats.one_run import OneRun, RankGuesses
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.storable import declare_lidps_own
from lidp.stats.thresholds import CentralGrid, FixedThreshold, SplitThreshold, TailQuantiles, UnionThreshold
from lidp.stats.wilson import Wilson

METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {
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
)

declare_lidps_own(METHODS.values())
declare_lidps_own((FixedThreshold, SplitThreshold, UnionThreshold, RankGuesses, TailQuantiles, CentralGrid))


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


def default_method(design: Design, epsilon: float = 0.0) -> Method:
    """Return the strongest method that is valid for any number of trials: coin wager or lifted betting, by the design.

    It tests ε up to at least twice ``epsilon``, the claimed one.
    """
    kind = CoinWager if design.has_coins else LiftedBetting
    return kind() if 2 * epsilon <= kind.largest else kind(largest=2 * epsilon)


def applicable(scores: Scores) -> dict[str, Method | str]:
    """Return for each method's name the method with default parameters, or the reason why it does not apply."""
    methods: dict[str, Method | str] = {}
    for name, kind in METHODS.items():
        method = kind()
        try:
            check_scores(method, scores)
        except MethodNotApplicable as reason:
            methods[name] = str(reason)
        else:
            methods[name] = method
    return methods


def bound(
    scores: Scores, method: Method | str | None = None, *, delta: float, failure_probability: float = 0.05
) -> EpsilonBound:
    """Return a lower bound on ε from scores.

    Args:
        scores: the scores of the trials.
        method: a method such as ``CoinWager()`` or ``Wilson(order=2)``, one of your own, or the name of one of lidp's. By default
            coin wager for coin-flip scores and lifted betting for the others. Choose before looking at results: the best of
            several methods, picked afterwards, is not a valid bound.
        delta: the δ at which ε is bounded.
        failure_probability: β, the probability with which the bound may exceed the true ε.

    Raises:
        MethodNotApplicable: if the method's guarantee does not extend to these scores.
    """
    if not isinstance(scores, Scores):
        raise InvalidArgument(f"scores must be a lidp.Scores, got {type(scores).__name__}; build one from your arrays")
    if method is None:
        method = default_method(scores.design)
    elif isinstance(method, str):
        method = method_named(method)()
    elif not isinstance(method, Method):
        raise InvalidArgument(f"method must be a method object or a name, got {method!r}; try CoinWager()")
    check_name(method)
    check_scores(method, scores)
    return method.bound(scores, delta=delta, failure_probability=failure_probability)

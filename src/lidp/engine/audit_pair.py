"""``audit_pair``: audit a mechanism as a black box, by two neighbouring data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.engine.audit import open_store
from lidp.engine.loop import AuditLoop
from lidp.engine.plan import AuditPlan
from lidp.engine.procedure import PairProcedure
from lidp.engine.watchers import WatchOption
from lidp.errors import InvalidArgument
from lidp.pairs.classifier import Classifier
from lidp.pairs.search import PairSearch
from lidp.result import AuditResult
from lidp.target import PairTarget
from lidp.target_spec import TargetSpec
from lidp.target_spec.fingerprint import fingerprint_of
from lidp.trials.executors import Executor, choose_executor


def audit_pair(
    mechanism: Any,
    d0: Any = None,
    d1: Any = None,
    *,
    claim: Claim,
    runs: int = 50_000,
    features: Callable[[Any], Any] | None = None,
    classifier: Classifier | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    search_share: float = 0.2,
    failure_probability: float = 0.05,
    seed: int = 0,
    workers: int = 1,
    store: str | Path | None = None,
    stop_when: str = "refuted",
    time_limit: float | None = None,
    retry: bool = False,
    executor: Executor | None = None,
    bits: bool = False,
    watch: WatchOption = "auto",
    target_spec: TargetSpec | None = None,
) -> AuditResult:
    """Audit a mechanism as a black box: flip a coin, run it on d0 or d1, wager on which it was.

    Args:
        mechanism: a :class:`PairTarget`, or a callable as it describes, with two data sets that are neighbours under the claim.
        d0: the data set that the mechanism runs on if the coin is 0; leave it out with a target or ``pairs``.
        d1: the data set that it runs on if the coin is 1.
        claim: what is claimed.
        runs: the budget, both data sets together.
        features: ``features(output)``, numbers to look at besides the usual ones.
        classifier: what predicts the coins; see :class:`Classifier`. By default one that learns from run to run.
        pairs: neighbouring data sets to choose from, instead of d0 and d1.
        search_share: the share of the runs that the choice among ``pairs`` may use; the bound is from the others and therefore
            needs no correction.
        failure_probability: β, the largest probability with which a true claim may be refuted.
        seed: the same seed gives the same result, for any number of workers, interrupted or not.
        workers: processes that run the mechanism; 1 runs it in this process.
        store: an SQLite file to keep runs in; if it exists, the audit is resumed.
        stop_when: "refuted" or "never".
        time_limit: seconds that a block of runs may take; blocks have at most 65,536 runs.
        retry: as in :func:`lidp.audit`, for blocks of runs.
        executor: what runs the blocks, instead of ``workers``, ``time_limit`` and ``retry``.
        bits: whether to use the bit patterns of floats too.
        watch: a function that is called with a :class:`Progress` from time to time; its method ``finish(result)`` is called at the
            end, if it has one. By default a progress line in notebooks and on terminals; None for none.
        target_spec: how the target is loaded, for ``lidp resume`` and for the command in the report.

    Guarantee: finite-sample and anytime-valid: if the claim holds for these data sets, it is refuted with probability at most
    ``failure_probability``, whatever the classifier. Nothing is bet on runs that raise. Assumes that each run is independent of
    earlier runs, except through what their outputs already revealed; for ``many``, that its rows are independent runs. A user's
    classifier sees the outputs of a whole block when it predicts, so it needs fully independent runs. The same holds if worker
    processes may die: then all runs of their block are lost.
    """
    target = _check_arguments(mechanism, d0, d1, features, claim, classifier)
    runs = checks.count(runs=runs)
    options: dict[str, Any] = {"bits": True} if bits else {}
    if classifier is not None:
        options["classifier"] = f"{type(classifier).__module__}.{type(classifier).__qualname__}"
    search = None
    if pairs is not None:
        budget = min(runs - 1, max(1, int(checks.probability(search_share=search_share) * runs)))
        search = PairSearch.among(target, pairs, budget, bits=bits)
        runs -= budget
        options["pairs"] = fingerprint_of([(one.d0, one.d1) for one in search.candidates])
    plan = AuditPlan.for_pair(
        target=target,
        claim=claim,
        runs=runs,
        failure_probability=checks.probability(failure_probability=failure_probability),
        seed=seed,
        stop_when=stop_when,
        target_spec=target_spec,
        options=options,
    )
    procedure = PairProcedure(search, classifier)
    executor = choose_executor(workers, time_limit, retry, executor)
    if store is None:
        return AuditLoop(plan, watch=watch, procedure=procedure).run(executor)
    with open_store(store, plan) as opened:
        return AuditLoop(plan, opened, watch=watch, procedure=procedure).run(executor)


def _check_arguments(
    mechanism: Any, d0: Any, d1: Any, features: Any, claim: Claim, classifier: Classifier | None
) -> PairTarget:
    """Return the target, if the arguments fit together."""
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=1), got {claim!r}")
    if classifier is not None and not all(hasattr(classifier, name) for name in ("predict", "learn", "explain")):
        raise InvalidArgument(f"a classifier has predict(outputs), learn(outputs, coins) and explain(), got {classifier!r}")
    if not isinstance(mechanism, PairTarget):
        return PairTarget(mechanism, d0, d1, features)
    if d0 is not None or d1 is not None or features is not None:
        raise InvalidArgument("a PairTarget has its own d0, d1 and features; do not give them again")
    return mechanism

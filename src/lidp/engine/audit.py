"""``lidp.audit``, ``resume`` and ``result_of``: start, resume and read audits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from lidp._runtime.versions import versions
from lidp.claim import Claim
from lidp.designs import DEFAULT_CANARIES, CoinFlip, Design, design_from_json
from lidp.designs.trial_record import TrialRecord
from lidp.engine.budget import check_stored_budget, extend, keep_budget, stored_configuration
from lidp.engine.loop import AuditLoop, read_trials
from lidp.engine.plan import AuditPlan
from lidp.engine.watchers import WatchOption
from lidp.errors import ClassNotImported, InvalidArgument, LidpError, StoreError
from lidp.result import CHOSEN_CANARIES, AuditResult
from lidp.stats.method import Method
from lidp.stats.storable import Storable
from lidp.store import Store
from lidp.store.marks import user_mark
from lidp.target import PairTarget, Target
from lidp.target_spec import TargetSpec
from lidp.target_spec.fingerprint import fingerprint
from lidp.trials.executors import Executor, choose_executor


def audit(
    mechanism: Any,
    *,
    claim: Claim,
    canaries: Any = None,
    score: Any = None,
    dataset: Any = (),
    prepare: Any = None,
    design: Design | None = None,
    trials: int = 256,
    method: Method | str | None = None,
    independent_canaries: bool = False,
    failure_probability: float = 0.05,
    seed: int = 0,
    workers: int = 1,
    store: str | Path | None = None,
    stop_when: str | None = None,
    time_limit: float | None = None,
    retry: bool = False,
    executor: Executor | None = None,
    watch: WatchOption = "auto",
    target_spec: TargetSpec | None = None,
) -> AuditResult:
    """Audit a mechanism: insert canaries, run it, score them, bound ε, and compare the bound with the claim.

    Args:
        mechanism: a :class:`Target`, or a callable ``mechanism(dataset, rng) -> output``. A target includes canaries, score,
            data set and preparation; for a callable, give them here.
        claim: the claim to test, with its neighbour relation.
        canaries: the distribution of canaries: ``draw(rng, size)`` returns ``size`` independent, identically distributed ones.
        score: ``score(output, canary) -> float``, higher when the canary looks inserted; with a preparation,
            ``score(output, canary, arrays)``.
        dataset: the data set into which canaries are inserted; empty if left out.
        prepare: ``prepare(dataset, rng)``, run once before the first trial; see :class:`Target`.
        design: which canaries are inserted. Its neighbours must be the claim's. If left out, coin flips, with as many canaries as
            the target suggests (``Target.canary_count``, which trainings have), else 64.
        trials: the budget: the largest number of trials.
        method: a method or its name; the betting method of the design if left out.
        independent_canaries: whether to test the claimed curve together with the assumption that canaries of one run do not
            affect one another's scores, as in DP-SGD with gradient canaries that do not overlap. One run may then be enough.
            A mechanism that has the curve but not this independence may be refuted.
        failure_probability: β, the largest probability with which a true claim may be refuted.
        seed: the same seed gives the same result, for any number of workers, interrupted or not.
        workers: the number of processes that run trials; 1 runs them in this process.
        store: an SQLite file that keeps trials; if it exists, the audit is resumed. With an anytime-valid method, it may be
            resumed with more ``trials`` than before, or with ``stop_when="never"``: see :func:`lidp.engine.budget.extend`.
        stop_when: "refuted" (anytime-valid methods only, and their default) or "never".
        time_limit: seconds that a trial may take; trials then run in separate processes.
        retry: whether a trial whose worker process died is run once more, with the same coins and streams. Dying is an outcome:
            the bound stays valid only if the mechanism draws all its randomness from ``rng``, so that a retry is the same run.
        executor: what runs the trials, instead of ``workers``, ``time_limit`` and ``retry``.
        watch: a function that is called with a :class:`Progress` from time to time; its method ``finish(result)`` is called at the
            end, if it has one. By default a progress line in notebooks and on terminals; None for none.
        target_spec: how the target is loaded, for ``lidp resume`` and for the command in the report.

    Guarantee: that of the method. Bets are placed in the order of trial numbers, not of completion, and failed runs are kept as
    outputs on which nothing is bet, so a mechanism that fails or slows down when a canary is inserted does not break it.
    """
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=2, delta=1e-5), got {claim!r}")
    target = _target(mechanism, canaries, score, dataset, prepare)
    if design is None:
        target, design = _choose_design(target, claim, store)
    plan = AuditPlan.make(
        target=target,
        claim=claim,
        design=design,
        trials=trials,
        method=method,
        independent_canaries=independent_canaries,
        failure_probability=failure_probability,
        seed=seed,
        stop_when=stop_when,
        target_spec=target_spec,
    )
    executor = choose_executor(workers, time_limit, retry, executor)
    if store is None:
        return AuditLoop(plan, watch=watch).run(executor)
    with open_store(store, plan) as opened:
        return AuditLoop(plan, opened, watch=watch).run(executor)


def resume(
    store: str | Path,
    load: Callable[[TargetSpec, Claim], Target | PairTarget],
    *,
    trials: int | None = None,
    stop_when: str | None = None,
    workers: int = 1,
    time_limit: float | None = None,
    retry: bool = False,
    executor: Executor | None = None,
    watch: WatchOption = None,
    methods: Iterable[type[Storable]] = (),
) -> AuditResult:
    """Resume the audit in a store, with any executor. ``load(target_spec, claim)`` returns its target.

    More ``trials`` than planned extend the audit, and ``stop_when="never"`` lets it go on after a refutation: see
    :func:`lidp.engine.budget.extend`.

    ``load`` may run code that the store names: resume a store from somebody else only if you trust it.
    ``methods``: see :func:`result_of`.
    """
    with Store.open(store) as opened:
        planned = read_plan(opened, methods)
        plan = extend(planned, trials=trials, stop_when=stop_when)
        if plan.target_spec is None:
            raise StoreError(f"{store} was not made by a lidp command; call lidp.audit again with the same arguments")
        needed = sorted({"classifier", "pairs"} & set(plan.options))
        if needed:
            raise StoreError(f"{store} was made with {needed[0]}=; call lidp.audit_pair again with the same arguments")
        target = load(plan.target_spec, plan.claim)
        if fingerprint(target) != plan.fingerprint:
            raise StoreError(
                f"{target.name} is not what it was when {store} was made, or lidp was another version; "
                "put it back to go on, or begin a new audit"
            )
        if plan != planned:
            keep_budget(opened, plan)
        plan = replace(plan, target=target)
        return AuditLoop(plan, opened, watch=watch).run(choose_executor(workers, time_limit, retry, executor))


def plan_of(store: str | Path, *, methods: Iterable[type[Storable]] = ()) -> AuditPlan:
    """Return the plan of the audit in a store; no code of the target is loaded. ``methods``: see :func:`result_of`."""
    with Store.read(store) as opened:
        return read_plan(opened, methods)


def trials_of(store: str | Path, *, methods: Iterable[type[Storable]] = ()) -> tuple[AuditPlan, list[TrialRecord]]:
    """Return the plan of the audit in a store, and its finished trials, which are checked but not bet on.

    ``methods``: see :func:`result_of`.
    """
    with Store.read(store) as opened:
        plan = read_plan(opened, methods)
        return plan, [record for records in read_trials(plan, opened) for record in records]


def result_of(store: str | Path, *, methods: Iterable[type[Storable]] = ()) -> AuditResult:
    """Return the result so far of the audit in a store; no mechanism is run and no code of the target is loaded.

    If the store names a method of a user's own, its class must be imported already, or be among ``methods``; this function
    imports no module that a store names.
    """
    with Store.read(store) as opened:
        plan = read_plan(opened, methods)
        loop = AuditLoop(plan, opened)
        loop.recall()
        return loop.result()


def _choose_design(target: Target, claim: Claim, store: str | Path | None) -> tuple[Target, Design]:
    """Return the design of an audit that was given none, and the target with the reason among its facts.

    An audit that is resumed keeps what was chosen when its store was made.
    """
    count = target.canary_count
    if count is None:
        return target, CoinFlip(DEFAULT_CANARIES, claim.neighbours)
    number, reason = count.number, str(count)
    if store is not None and Path(store).exists():
        with Store.read(store) as opened:
            number, reason = _chosen_before(opened) or (number, reason)
    return replace(target, facts={**target.facts, CHOSEN_CANARIES: reason}), CoinFlip(number, claim.neighbours)


def _chosen_before(store: Store) -> tuple[int, str] | None:
    """Return the number of canaries that was chosen when the store was made, and why; None if none was chosen."""
    kept = _stored_configuration(store)
    facts = kept.get("facts")
    if not isinstance(facts, dict) or CHOSEN_CANARIES not in facts:
        return None
    try:
        return design_from_json(kept["design"]).canaries, str(facts[CHOSEN_CANARIES])
    except (LidpError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise StoreError(f"{store.path} is damaged: its design cannot be read ({reason})") from None


def _target(mechanism: Any, canaries: Any, score: Any, dataset: Any, prepare: Any) -> Target:
    if isinstance(mechanism, Target):
        if canaries is not None or score is not None or prepare is not None or len(dataset):
            raise InvalidArgument("a Target has its own canaries, score, dataset and prepare; do not give them again")
        return mechanism
    if canaries is None or score is None:
        raise InvalidArgument("an audit needs canaries= and score=, or a Target that bundles them with the mechanism")
    return Target(mechanism, canaries, score, dataset, prepare)


def read_plan(store: Store, methods: Iterable[type[Storable]] = ()) -> AuditPlan:
    """Return the plan of a stored audit; its target is not loaded."""
    try:
        plan = AuditPlan.of(stored_configuration(store), methods=methods)
        check_stored_budget(plan, store)
        return plan
    except ClassNotImported as error:
        raise ClassNotImported(f"{store.path}: {error}") from None
    except StoreError:
        raise
    except (LidpError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = error if isinstance(error, LidpError) else f"{type(error).__name__}: {error}"
        raise StoreError(f"{store.path} is damaged: its configuration cannot be read ({reason})") from None


def _stored_configuration(store: Store) -> dict[str, Any]:
    try:
        return stored_configuration(store)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{store.path} is damaged: its budgets cannot be read ({type(error).__name__}: {error})") from None


def open_store(path: str | Path, plan: AuditPlan) -> Store:
    """Open the store of a plan, or create it if there is none; refuse the store of another audit."""
    path = Path(path).resolve()
    if not path.exists():
        return _create(path, plan)
    opened = Store.open(path)
    with ExitStack() as closing:
        closing.callback(opened.close)
        stored, given = _stored_configuration(opened), plan.configuration
        names = [*given, *(name for name in stored if name not in given)]
        different = [name for name in names if name != "target_spec" and stored.get(name) != given.get(name)]
        empty = not opened.finished(most=1) and opened.preparation() is None
        if different and not empty and set(different) <= {"trials", "stop_when"}:
            extend(read_plan(opened, [type(plan.method)]), trials=plan.trials, stop_when=plan.stop_when)
            keep_budget(opened, plan)
            different = []
        if not different:
            closing.pop_all()
            return opened
        if empty:  # an audit that failed before its first trial: nothing is lost. The lock still keeps other writers out.
            path.unlink()
    if empty:
        return _create(path, plan)
    if different == ["fingerprint"]:
        raise StoreError(
            f"{plan.name} is not what it was when {path} was made, or lidp was another version; "
            "put it back to go on, or use another store for a new audit"
        )
    changes = "; ".join(
        f"{name} was {stored.get(name)!r}, is {given.get(name)!r}" for name in different if name != "fingerprint"
    )
    raise StoreError(f"{path} belongs to another audit: {changes}. Resume with the same settings, or use another store")


def _create(path: Path, plan: AuditPlan) -> Store:
    return Store.create(path, plan.configuration, versions(), user_mark(plan.configuration))

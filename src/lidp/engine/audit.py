"""The verb: plan → trials → store → statistics → result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import kept_global_generators
from lidp._runtime.interrupts import Interrupted, Interrupts
from lidp._runtime.user_code import must_propagate, user_code
from lidp._runtime.versions import versions
from lidp._runtime.workers import use_one_core
from lidp.claim import Claim
from lidp.designs import CoinFlip, Design
from lidp.engine.plan import AuditPlan, could_refute
from lidp.errors import AuditFailed, InvalidArgument, LidpError, StoreError
from lidp.fingerprints import fingerprint
from lidp.result import AuditInterrupted, AuditResult, TrialNote, Verdict
from lidp.rounding import exact, fixed
from lidp.scores import Scores
from lidp.stats.method import AnytimeMethod, Method
from lidp.store import Store
from lidp.store.marks import own_mark
from lidp.store.recorder import WRITE_SECONDS, Recorder
from lidp.streams import Purpose, draw_coins, stream
from lidp.target import Target, plain_preparation
from lidp.target_spec import TargetSpec
from lidp.trials.executors import Executor, choose_executor
from lidp.trials.probe import refuse_shared_randomness
from lidp.trials.rehearsal import try_canaries
from lidp.trials.trial import TrialRecord, TrialSetup


@dataclass(frozen=True)
class Progress:
    """How far an audit is: for whoever watches."""

    done: int
    planned: int
    epsilon: float | None
    claim: float
    seconds: float
    failed: int

    def __str__(self) -> str:
        rate = self.done / self.seconds if self.seconds > 0 else 0.0
        left = (self.planned - self.done) / rate if rate else 0.0
        bound = "" if self.epsilon is None else f", ε ≥ {fixed(self.epsilon, 2)} (claim {exact(self.claim)})"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.done:,}/{self.planned:,} trials, {rate:,.1f}/s, at most {left:,.0f} s left{bound}{failed}"


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
    failure_probability: float = 0.05,
    seed: int = 0,
    workers: int = 1,
    store: str | Path | None = None,
    stop_when: str | None = None,
    time_limit: float | None = None,
    retry: bool = False,
    executor: Executor | None = None,
    watch: Callable[[Progress], None] | None = None,
    target_spec: TargetSpec | None = None,
) -> AuditResult:
    """Audit a mechanism: plant canaries, run it, score, bound ε, compare with the claim.

    Args:
        mechanism: a :class:`Target`, or a callable ``mechanism(dataset, rng) -> output``. A target has its own canaries, score,
            data set and preparation; with a callable they are given here.
        claim: what is claimed, for which neighbours.
        canaries: where canaries come from: ``draw(rng, size)`` gives so many, independent and alike.
        score: ``score(output, canary) -> float``, higher when the canary looks inserted; with a preparation,
            ``score(output, canary, arrays)``.
        dataset: what the canaries are planted in; empty if left out.
        prepare: ``prepare(dataset, rng)``, run once before the first trial; see :class:`Target`.
        design: who is inserted; 64 canaries by coin flips if left out. Its neighbours must be the claim's.
        trials: the budget: trials at most.
        method: a method or its name; the betting method of the design if left out.
        failure_probability: β, how often a true claim may be refuted: the bound exceeds the true ε with at most this probability.
        seed: same seed, same result, for any number of workers, interrupted or not.
        workers: processes to run trials in; 1 runs them in this process.
        store: an SQLite file to keep trials in; if it exists, the audit goes on where it stopped.
        stop_when: "refuted" (anytime-valid methods only, and their default) or "never".
        time_limit: seconds a trial may take; it runs in a process of its own then.
        retry: whether a trial whose worker process died is run once more, with the same coins and streams. Dying is an outcome:
            only for a mechanism that draws all its randomness from ``rng`` is a second try the same run, and the bound valid.
        executor: who runs the trials, instead of ``workers``, ``time_limit`` and ``retry``.
        watch: called with a :class:`Progress` now and then.
        target_spec: how the target is loaded, for ``lidp resume`` and for the command in the report.

    Guarantee: that of the method. Trials are bet on in the order of their numbers, not of their completion, and runs that
    fail are kept as outputs that nobody bets on, so neither failing nor slowing down when a canary is in helps.
    """
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=2, delta=1e-5), got {claim!r}")
    plan = AuditPlan.make(
        target=_target(mechanism, canaries, score, dataset, prepare),
        claim=claim,
        design=design or CoinFlip(64, claim.neighbours),
        trials=trials,
        method=method,
        failure_probability=failure_probability,
        seed=seed,
        stop_when=stop_when,
        target_spec=target_spec,
    )
    executor = executor or choose_executor(workers, time_limit, retry)
    if store is None:
        return _Audit(plan, None, watch).run(executor)
    with _open(store, plan) as opened:
        return _Audit(plan, opened, watch).run(executor)


def resume(
    store: str | Path,
    load: Callable[[TargetSpec, Claim], Target],
    *,
    workers: int = 1,
    time_limit: float | None = None,
    retry: bool = False,
    executor: Executor | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> AuditResult:
    """Resume the audit in a store. ``load(target_spec, claim)`` loads its target; who ran trials before does not matter.

    ``load`` runs what the store names: only load what you trust, if somebody else made the store.
    """
    with Store.open(store) as opened:
        plan = _plan_of(opened)
        if plan.target_spec is None:
            raise StoreError(f"{store} was not made by a lidp command; call lidp.audit again with the same arguments")
        target = load(plan.target_spec, plan.claim)
        if fingerprint(target) != plan.fingerprint:
            raise StoreError(
                f"{target.name} is not what it was when {store} was made; put it back to go on, or begin a new audit"
            )
        plan = replace(plan, target=target)
        return _Audit(plan, opened, watch).run(executor or choose_executor(workers, time_limit, retry))


def plan_of(store: str | Path) -> AuditPlan:
    """Return the plan of the audit in a store; no code of the target is loaded."""
    with Store.read(store) as opened:
        return _plan_of(opened)


def result_of(store: str | Path) -> AuditResult:
    """The result of an audit so far, from its store alone: no mechanism is run, no code of the target is loaded."""
    with Store.read(store) as opened:
        plan = _plan_of(opened)
        running = _Audit(plan, opened, None)
        running.recall()
        return running.result()


def _target(mechanism: Any, canaries: Any, score: Any, dataset: Any, prepare: Any) -> Target:
    if isinstance(mechanism, Target):
        if canaries is not None or score is not None or prepare is not None or len(dataset):
            raise InvalidArgument("a Target has its own canaries, score, dataset and prepare; leave those out")
        return mechanism
    if canaries is None or score is None:
        raise InvalidArgument("an audit needs canaries= and score=, or a Target that bundles them with the mechanism")
    return Target(mechanism, canaries, score, dataset, prepare)


def _plan_of(store: Store) -> AuditPlan:
    """Return the plan of a stored audit; its target is not loaded."""
    configuration = store.configuration
    try:
        return AuditPlan.of(configuration)
    except (LidpError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = error if isinstance(error, LidpError) else f"{type(error).__name__}: {error}"
        raise StoreError(f"{store.path} is damaged: its configuration cannot be read ({reason})") from None


def _open(path: str | Path, plan: AuditPlan) -> Store:
    path = Path(path).resolve()
    if not path.exists():
        return _create(path, plan)
    opened = Store.open(path)
    try:
        stored, asked = opened.configuration, plan.configuration
        different = [name for name in asked if name != "target_spec" and stored.get(name) != asked[name]]
        if not different:
            return opened
        empty = not opened.finished()
    except BaseException:
        opened.close()
        raise
    opened.close()
    if empty:  # an audit that failed before its first trial: there is nothing to lose
        path.unlink()
        return _create(path, plan)
    if different == ["fingerprint"]:
        raise StoreError(
            f"{plan.name} is not what it was when {path} was made; put it back to go on, or use another store for a new audit"
        )
    changes = "; ".join(
        f"{name} was {stored.get(name)!r}, is {asked[name]!r}" for name in different if name != "fingerprint"
    )
    raise StoreError(f"{path} belongs to another audit: {changes}. Resume with the same settings, or use another store")


def _create(path: Path, plan: AuditPlan) -> Store:
    return Store.create(path, plan.configuration, versions(), own_mark(plan.configuration))


class _Audit:
    """An audit under way: records by number, and the run of the method over their finished prefix."""

    def __init__(self, plan: AuditPlan, store: Store | None, watch: Callable[[Progress], None] | None) -> None:
        self.plan = plan
        self.store = store
        self.begun_with = versions() if store is None else store.versions
        self.watch = watch
        self.started = time.monotonic()
        self.records: dict[int, TrialRecord] = {}
        self.failed_trials = 0
        self.recorder: Recorder | None = None
        self.flushed = self.started
        self.prefix = 0
        self.stopped_at: int | None = None
        self.seen_at_once: Scores | None = None
        self.preparation: tuple[Mapping[str, NDArray[Any]], int] | None = None
        self.live = (
            plan.method.begin(delta=plan.claim.delta, failure_probability=plan.failure_probability)
            if isinstance(plan.method, AnytimeMethod)
            else None
        )

    def run(self, executor: Executor) -> AuditResult:
        """Run what is missing, and say what came of it."""
        with Interrupts() as interrupts, kept_global_generators():
            try:
                with interrupts.held():
                    self.recall()
                resumed = bool(self.records) or self.preparation is not None
                missing = [index for index in range(self.plan.trials) if index not in self.records]
                if missing and self.stopped_at is None:
                    self._run(executor, self._prepare(executor, interrupts), missing, interrupts, resumed=resumed)
                return self.result()
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, Exception) and not interrupts.seen:
                    raise
            self.watch = None
            so_far = None
            try:
                with interrupts.held():
                    self._flush()
                so_far = self.result()
            except (AuditFailed, KeyboardInterrupt):
                pass  # nothing to say yet, or all has failed so far, or no patience to wait for it
            raise AuditInterrupted(so_far)

    def recall(self) -> None:
        """Take up what the store has."""
        if self.store is None:
            return
        records = self.store.trials()
        for record in records:
            _check_record(record, self.plan, self.store)
        self.preparation = self.store.preparation()
        self._take(records)

    def _prepare(self, executor: Executor, interrupts: Interrupts) -> TrialSetup:
        target = self.plan.target
        assert target is not None  # noqa: S101  # only plans read from a store have none, and those are not run
        if target.prepare is not None and self.preparation is None:
            try:
                work = partial(target.prepare, target.dataset, stream(self.plan.seed, trial=0, purpose=Purpose.PREPARATION))
                with use_one_core(), user_code():  # one core as in trials: sums are rounded alike whoever runs them
                    found = executor.prepare(work) if hasattr(executor, "prepare") else work()
                if interrupts.seen:
                    raise Interrupted  # it may have been taken for a failure of a pilot model
                prepared = plain_preparation(found)
                arrays = {name: np.asarray(array) for name, array in prepared.arrays.items()}
            except BaseException as error:
                if must_propagate(error):
                    raise
                raise AuditFailed(f"the preparation of {target.name} failed: {type(error).__name__}: {error}") from error
            with interrupts.held():
                self.preparation = (arrays, prepared.models)
                if self.store is not None:
                    self.store.keep_preparation(arrays, prepared.models)
        prepared_arrays = None if target.prepare is None or self.preparation is None else self.preparation[0]
        return TrialSetup(target, self.plan.design, self.plan.seed, prepared_arrays)

    def _run(
        self, executor: Executor, setup: TrialSetup, missing: Sequence[int], interrupts: Interrupts, *, resumed: bool
    ) -> None:
        try_canaries(setup)
        whole = [index for index, record in sorted(self.records.items()) if not record.failures]
        refuse_shared_randomness(executor, setup, whole if resumed else None)
        self._tell()
        # Executors that hand over nothing while they wait keep the driver from writing: a timer does it then.
        self.recorder = Recorder(self.store, timer=not getattr(executor, "yields_while_waiting", False))
        results = executor.run(setup, missing)
        try:
            for records in results:
                if interrupts.seen:
                    raise Interrupted  # it came while these ran and may be why they failed: they are run again
                with interrupts.held():
                    self.recorder.add(records)
                    if time.monotonic() - self.flushed > WRITE_SECONDS:
                        self._flush()
                if self.stopped_at is not None:
                    break
        finally:
            with ExitStack() as stack:  # workers are dismissed even if the last trials cannot be written
                stack.callback(getattr(results, "close", lambda: None))
                with interrupts.held():
                    self.recorder.close()
        with interrupts.held():
            self._flush()

    def _flush(self) -> None:
        """Keep what is finished, bet on the finished prefix, report progress."""
        if self.recorder is not None:
            self._take(self.recorder.write())
        self.flushed = time.monotonic()
        self._tell()

    def _take(self, records: Sequence[TrialRecord]) -> None:
        """Take up finished trials that are kept."""
        if records:
            self.records.update({record.index: record for record in records})
            self.failed_trials += sum(bool(record.failures) for record in records)
            self._advance()

    def _advance(self) -> None:
        """Bet on trials in the order of their numbers, as far as they are finished without a gap."""
        start = self.prefix
        while self.prefix in self.records and self.prefix < self.plan.trials:
            self.prefix += 1
        if self.live is None or self.prefix == start or self.stopped_at is not None:
            return
        scores = self._scores(start, self.prefix)
        self.seen_at_once = None if start else scores
        self.live.update(scores)
        if self.plan.stop_when == "refuted" and self.live.epsilon > self.plan.claim.epsilon:
            # The result is that of the first trial at which the claim fell, however many more have finished by now.
            path = self.live.bound().path
            self.stopped_at = next(seen for seen, epsilon in path if epsilon > self.plan.claim.epsilon)

    def _scores(self, start: int, stop: int) -> Scores:
        return scores_of([self.records[index] for index in range(start, stop)], self.plan.design, self.plan.sequential)

    def _complain_if_blind(self, used: int) -> None:
        """A score that works for no canary at all is the auditor's mistake, and its silence would look like privacy."""
        seen, reason = 0, ""
        for index in range(used):
            record = self.records[index]
            for name, array in record.arrays.items():
                if name == "coins" or name in record.failures or record.lost:
                    continue
                unscored = int(record.metadata.get(f"{name}_unscored", 0))
                seen += len(array) - unscored
                reason = reason or str(record.metadata.get(f"{name}_unscored_because", ""))
            if seen:
                return
        raise AuditFailed(f"no canary could be scored, the first because: {reason.strip().splitlines()[-1]}")

    def _tell(self) -> None:
        if self.watch is not None:
            self.watch(
                Progress(
                    done=len(self.records),
                    planned=self.plan.trials,
                    epsilon=None if self.live is None else self.live.epsilon,
                    claim=self.plan.claim.epsilon,
                    seconds=time.monotonic() - self.started,
                    failed=self.failed_trials,
                )
            )

    def result(self) -> AuditResult:
        """The result on the finished prefix."""
        used = self.stopped_at or self.prefix
        if not used:
            raise AuditFailed("no trial is finished, so there is nothing to say")
        plan = self.plan
        whole = self.seen_at_once  # of a finished store, which need not be put together again
        scores = whole if whole is not None and whole.trials == used else self._scores(0, used)
        if self.stopped_at is not None:
            scores = scores.stopped()
        if all(self.records[index].lost for index in range(used)):
            reason = next(iter(self.records[0].failures.values())).strip().splitlines()[-1]
            raise AuditFailed(f"all {used:,} trials failed, the first with: {reason}")
        self._complain_if_blind(used)
        if self.live is not None and self.stopped_at is None:
            found = self.live.bound()  # on these very trials: all at once gives the same
        else:
            found = plan.method.bound(scores, delta=plan.claim.delta, failure_probability=plan.failure_probability)
        if found.refutes(plan.claim):
            verdict = Verdict.REFUTED
        else:
            verdict = Verdict.NOT_REFUTED if could_refute(plan, scores) else Verdict.UNDECIDED
        if not plan.method.anytime and used < plan.trials:
            verdict = Verdict.UNDECIDED  # stopped before its time, when it may look good by chance
        return AuditResult(
            verdict=verdict,
            bound=found,
            claim=plan.claim,
            target=plan.name,
            facts=plan.facts,
            design=plan.design,
            method=plan.method,
            seed=plan.seed,
            planned_trials=plan.trials,
            preparation_models=self.preparation[1] if self.preparation else 0,
            scores=scores.stopped() if used < plan.trials else scores,
            notes=tuple(
                TrialNote(r.index, r.seconds, r.attempts, r.failures, r.metadata)
                for r in (self.records[index] for index in range(used))
            ),
            versions=self.begun_with,
            computed_with=versions(),
            seconds=time.monotonic() - self.started,
            configuration=plan.configuration,
        )


def scores_of(records: Sequence[TrialRecord], design: Design, sequential: bool = False) -> Scores:
    """The scores of some trials, failed runs marked."""
    if isinstance(design, CoinFlip):
        return Scores.of_block(
            scores=np.array([record.arrays["scores"] for record in records]),
            coins=np.array([record.arrays["coins"] for record in records]),
            failed=np.array(["scores" in record.failures for record in records]),
            neighbours=design.neighbours,
            sequential=sequential,
        )
    arms = ("inserted", "held_out")
    return Scores(
        inserted=np.array([record.arrays["inserted"] for record in records]),
        held_out=np.array([record.arrays["held_out"] for record in records]),
        failed=np.array([[arm in record.failures for arm in arms] for record in records]),
        neighbours=design.neighbours,
    )


def _check_record(record: TrialRecord, plan: AuditPlan, store: Store) -> None:
    """Refuse a stored trial that the plan cannot have made: of another shape, or with coins that its seed does not give."""
    design = plan.design
    if isinstance(design, CoinFlip):
        sizes = {"scores": design.canaries, "coins": design.canaries}
    else:
        sizes = {"inserted": design.canaries, "held_out": design.held_out}
    if not 0 <= record.index < plan.trials or {name: len(array) for name, array in record.arrays.items()} != sizes:
        raise StoreError(
            f"{store.path} is damaged: its trial {record.index} does not belong to {design}, {plan.trials} trials"
        )
    if not record.is_sound():
        raise StoreError(f"{store.path} is damaged: the notes of its trial {record.index} cannot be read")
    if isinstance(design, CoinFlip):
        coins = draw_coins(plan.seed, trial=record.index, size=design.canaries)
        if record.arrays["coins"].tobytes() != coins.astype(np.float64).tobytes():
            raise StoreError(
                f"{store.path} is damaged: the coins of trial {record.index} are not those of seed {plan.seed}"
            )

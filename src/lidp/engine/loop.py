"""The loop of every audit: give trials to an executor, and finished ones to the store and the ledger, until the audit ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import preserve_global_generators
from lidp._runtime.interrupts import Interrupted, Interrupts
from lidp._runtime.user_code import must_propagate, user_code
from lidp._runtime.versions import versions
from lidp._runtime.workers import use_one_core
from lidp.arrays import Floats
from lidp.designs.trial_record import TrialRecord
from lidp.engine.first_trials import FirstTrials
from lidp.engine.judge import judge
from lidp.engine.ledger import Ledger
from lidp.engine.outcome import OUTCOME, Outcome
from lidp.engine.pace import Pace
from lidp.engine.plan import AuditPlan
from lidp.engine.procedure import Procedure, default_procedure
from lidp.engine.progress import Progress, describe_cost
from lidp.engine.uninformative_scores import FEWEST_TRIALS, warn_of_uninformative_scores
from lidp.engine.watchers import WatchOption, choose_watch, reporting_the_end
from lidp.errors import AuditFailed, InvalidArgument, MethodNotApplicable, StoreError
from lidp.pairs.classifier import UNCERTAIN
from lidp.pairs.leaks import LeakFinding
from lidp.result import AuditInterrupted, AuditResult, Verdict
from lidp.scores import Scores
from lidp.store import Store
from lidp.store.recorder import WRITE_SECONDS, Recorder
from lidp.target import plain_preparation
from lidp.trials.executors import Executor
from lidp.trials.probe import refuse_shared_randomness
from lidp.trials.repeated_noise import warn_of_repeated_noise

WARNINGS = "warnings"
"""Name of the fact in a store that lists the warnings about the mechanism."""
LEAK = "leak_search"
"""Name of the fact in a store that holds what the search for the leak found."""


class AuditLoop:
    """One audit: its plan, its ledger, and its store if there is one."""

    def __init__(
        self,
        plan: AuditPlan,
        store: Store | None = None,
        *,
        watch: WatchOption = None,
        procedure: Procedure | None = None,
    ) -> None:
        self.plan = plan
        self.store = store
        self.watch = choose_watch(watch)
        self.procedure = procedure or default_procedure(plan.design)
        self.versions = versions() if store is None else store.versions
        self.started = time.monotonic()
        self.flushed = self.started
        self.recorder: Recorder | None = None
        self.preparation: tuple[Mapping[str, NDArray[Any]], int] | None = None
        self.leak: LeakFinding | None = None
        self.first_trials = FirstTrials()
        self.pace = Pace()
        self.model_seconds: float | None = None
        self.workers = 1
        self.warnings: list[str] = []
        self._looked_at_scores = False
        self._about_scores = ""
        self.ledger = Ledger(plan, self.procedure.scorer(plan, {}), self._keep_predictions)

    def run(self, executor: Executor) -> AuditResult:
        """Run the trials that are missing, tell the watch how it ended, and return the result.

        Raises:
            AuditInterrupted: on Ctrl-C and similar signals, with the result so far.
        """
        with reporting_the_end(self.watch) as report:
            result = self._run(executor)
            report(result)
        return result

    def _run(self, executor: Executor) -> AuditResult:
        with Interrupts() as interrupts, preserve_global_generators():
            try:
                with interrupts.deferred():
                    self.recall()
                if len(self.ledger.missing()) and not self.ledger.stopped:
                    self._run_missing(executor, interrupts)
                result = self.result()
                if result.verdict is Verdict.REFUTED and self._find_leak(executor, interrupts, result.bound.trials):
                    result = self.result()
                with interrupts.deferred():
                    self._keep_explanation(result)
                return result
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, Exception) and not interrupts.seen:
                    raise
            self.watch = None
            so_far = None
            try:
                with interrupts.deferred():
                    self._flush()
                so_far = self.result()
            except (AuditFailed, MethodNotApplicable, KeyboardInterrupt):
                pass  # there is no result yet, or all trials failed so far, or the user interrupted again
            raise AuditInterrupted(so_far)

    def recall(self) -> None:
        """Read all trials of the store, and bet on them."""
        if self.store is None:
            return
        self.preparation = self.store.preparation()
        scorer = self.procedure.scorer(self.plan, self.store.predictions())
        self.ledger = Ledger(self.plan, scorer, self._keep_predictions)
        for records in read_trials(self.plan, self.store):
            self.ledger.add(records)
            self.first_trials.recall(records)

    def _run_missing(self, executor: Executor, interrupts: Interrupts) -> None:
        resumed = self.preparation is not None or self.ledger.finished_rows > 0
        self.workers = int(getattr(executor, "workers", 1) or 1)
        self._prepare(executor, interrupts)
        setup = self.procedure.setup(self.plan, None if self.preparation is None else self.preparation[0])
        self.procedure.rehearse(self.plan, setup, executor)
        refuse_shared_randomness(executor, setup, self.ledger.whole_trials() if resumed else None)
        if not resumed:
            self._warn(warn_of_repeated_noise(executor, setup))
        self._report_progress()
        # An executor that yields nothing while it waits keeps this loop from writing: a timer thread writes then.
        self.recorder = Recorder(self.store, timer=not executor.yields_while_waiting)
        results = executor.run(setup, self.ledger.missing())
        try:
            for records in results:
                if interrupts.seen:
                    raise Interrupted  # the interrupt may be why these trials failed: they are run again
                with interrupts.deferred():
                    self.recorder.add(records)
                    self._note_pace(records)
                    if self._must_flush(records):
                        self._flush()
                if self.ledger.stopped:
                    break
                self.first_trials.look_at(records)
        finally:
            with ExitStack() as stack:  # stop the workers even if the last trials cannot be written
                stack.callback(getattr(results, "close", lambda: None))
                with interrupts.deferred():
                    self.recorder.close()
        with interrupts.deferred():
            self._flush()

    def _prepare(self, executor: Executor, interrupts: Interrupts) -> None:
        work = self.procedure.preparation(self.plan)
        if work is None or self.preparation is not None:
            return
        try:
            with use_one_core(), user_code():  # one core, as in trials, so that sums are rounded equally everywhere
                outcome = executor.prepare(work)
            if interrupts.seen:
                raise Interrupted  # the interrupt may look like a failure of a pilot model
            prepared = plain_preparation(outcome)
            arrays = {name: np.asarray(array) for name, array in prepared.arrays.items()}
        except BaseException as error:
            if must_propagate(error) or isinstance(error, InvalidArgument):
                raise
            raise AuditFailed(f"the preparation of {self.plan.name} failed: {type(error).__name__}: {error}") from error
        self.model_seconds = prepared.model_seconds
        with interrupts.deferred():
            self.preparation = (arrays, prepared.models)
            if self.store is not None:
                self.store.keep_preparation(arrays, prepared.models)

    def _find_leak(self, executor: Executor, interrupts: Interrupts, rows: int) -> bool:
        """Search for the part of the output that leaks, unless that is done; return whether it was."""
        known = self.leak or self._stored_leak()
        search = self.procedure.leak_search(self.plan, rows, known)
        if search is None:
            return False
        setup = self.procedure.setup(self.plan, None if self.preparation is None else self.preparation[0])
        leak = search(setup, executor)
        if interrupts.seen:
            raise Interrupted  # the interrupt may be why nothing was found
        with interrupts.deferred():
            self.leak = leak
            if self.store is not None:
                self.store.keep_fact(LEAK, leak.to_dict())
        return True

    def _stored_leak(self) -> LeakFinding | None:
        return None if self.store is None else LeakFinding.from_plain(self.store.fact(LEAK))

    def _must_flush(self, records: Sequence[TrialRecord]) -> bool:
        # Blocks of runs are large, and the next one may be unnecessary: bet on each at once.
        at_once = bool(records) and self.ledger.scorer.learns
        return at_once or time.monotonic() - self.flushed > WRITE_SECONDS

    def _flush(self) -> None:
        """Write finished trials to the store, bet on them, and report progress."""
        if self.recorder is not None:
            first, start = not self.ledger.bet_trials, time.monotonic()
            self.ledger.add(self.recorder.write())
            if first and self.ledger.bet_trials:
                self.pace.pause(time.monotonic() - start)  # the code of bets is compiled
            self._look_at_scores()
        self.flushed = time.monotonic()
        self._report_progress()

    def _look_at_scores(self) -> None:
        """See once, after the first trials, whether their scores tell anything."""
        if self._looked_at_scores or self.ledger.bet_trials < FEWEST_TRIALS or not self.plan.design.has_canaries:
            return
        self._looked_at_scores = True
        scores = self.ledger.last_scores(self.plan.rows)
        self._about_scores = "" if scores is None else warn_of_uninformative_scores(scores)

    def _warn(self, warning: str) -> None:
        """Keep a warning about the mechanism, also in the store. Progress and results show it."""
        if warning:
            self.warnings.append(warning)
            if self.store is not None:
                self.store.keep_fact(WARNINGS, self.warnings)

    def _all_warnings(self, scores: Scores) -> tuple[str, ...]:
        kept = self.warnings if self.store is None else self.store.fact(WARNINGS)
        about_scores = warn_of_uninformative_scores(scores) if self.plan.design.has_canaries else ""
        # A stranger's store may hold any JSON there.
        texts = [text for text in kept if isinstance(text, str)] if isinstance(kept, list) else []
        return (*texts, about_scores) if about_scores else tuple(texts)

    def _keep_predictions(self, predictions: dict[int, Floats]) -> None:
        if predictions and self.store is not None and self.store.writable:
            self.store.keep_predictions(predictions)

    def _note_pace(self, records: Sequence[TrialRecord]) -> None:
        rows = self.plan.design.rows
        finished = sum(rows(record.index + 1) - rows(record.index) for record in records)
        self.pace.arrived(time.monotonic(), finished, [record.seconds for record in records])

    def _report_progress(self) -> None:
        if self.watch is not None:
            self.watch(
                Progress(
                    done=self.ledger.finished_rows,
                    planned=self.plan.rows,
                    epsilon=self.ledger.epsilon,
                    claim=self.plan.claim.epsilon,
                    seconds=time.monotonic() - self.started,
                    failed=self.ledger.failed_trials,
                    unit=self.plan.design.unit,
                    rate=self.pace.per_second(),
                    may_stop=self.plan.stop_when == "refuted",
                    cost=describe_cost(
                        self.plan.rows * self.plan.design.models_per_trial, self.model_seconds, self.workers
                    ),
                    warnings=(*self.warnings, *filter(None, [self._about_scores])),
                )
            )

    def _keep_explanation(self, result: AuditResult) -> None:
        if self.store is None:
            return
        if result.leak:
            self.store.keep_fact("leak", result.leak)
        outcome = None if result.unfinished else Outcome.of(result).to_dict()
        if self.store.fact(OUTCOME) != outcome:
            self.store.keep_fact(OUTCOME, outcome)

    def result(self) -> AuditResult:
        """Return the result on the trials that have been bet on."""
        plan, ledger = self.plan, self.ledger
        scores = ledger.scores()
        bound = ledger.bound(scores)
        provisional = not plan.method.anytime and scores.trials < plan.rows
        refuted = bound.refutes(plan.claim)
        could_refute = refuted or provisional or self.procedure.could_refute(plan, scores)
        return AuditResult(
            verdict=judge(bound, plan.claim, provisional=provisional, could_refute=could_refute),
            bound=bound,
            claim=plan.claim,
            target=plan.name,
            facts=plan.facts,
            design=plan.design,
            method=plan.method,
            seed=plan.seed,
            planned_trials=plan.rows,
            preparation_models=self.preparation[1] if self.preparation else 0,
            scores=scores,
            notes=ledger.notes(scores.trials),
            transcripts=tuple(ledger.transcripts),
            versions=self.versions,
            computed_with=versions(),
            seconds=time.monotonic() - self.started,
            configuration=plan.configuration,
            leak=self._describe_leak(scores, refuted),
            warnings=self._all_warnings(scores),
        )

    def _describe_leak(self, scores: Scores, refuted: bool) -> str:
        """Return where the data sets differ: what the search found, if the claim is refuted, otherwise what the scorer says."""
        finding = self.leak or self._stored_leak()
        if refuted and finding is not None:
            return finding.text
        words = self.ledger.scorer.explain(scores)
        if refuted and words.startswith(UNCERTAIN):
            return "not found in the runs of the audit; resume the audit to search in further runs"
        return words or ("" if self.store is None else str(self.store.fact("leak") or ""))


def read_trials(plan: AuditPlan, store: Store) -> Iterator[list[TrialRecord]]:
    """Yield the finished trials of a store, some at a time, by number.

    Raises:
        StoreError: if one of them is damaged, or not of this plan.
    """
    for records in store.iterate():
        for record in records:
            check_record(record, plan, store)
        yield records


def check_record(record: TrialRecord, plan: AuditPlan, store: Store) -> None:
    """Refuse a stored trial that is not of this plan: of another shape, or with coins of another seed."""
    try:
        if not 0 <= record.index < plan.trials:
            raise ValueError(f"its trial {record.index} does not belong to {plan.design}, {plan.trials} trials")
        plan.design.check_record(record, plan.seed)
        if not record.is_sound():
            raise ValueError(f"the notes of its trial {record.index} cannot be read")
    except ValueError as error:
        raise StoreError(f"{store.path} is damaged: {error}") from None

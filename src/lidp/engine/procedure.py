"""``Procedure``: the steps that differ between the two kinds of audit, with canaries and with a pair of data sets."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.workers import use_one_core
from lidp.arrays import Bools
from lidp.claim import Claim
from lidp.designs import Design, PairRuns
from lidp.engine.plan import AuditPlan
from lidp.engine.scorer import CanaryScorer, Scorer, StoredPredictions
from lidp.errors import AuditFailed, InvalidArgument, LidpError, MethodNotApplicable
from lidp.pairs.boosting import default_classifier
from lidp.pairs.classifier import Classifier
from lidp.pairs.leaks import LeakFinding, find_leak, looks_after
from lidp.pairs.runner import Block
from lidp.pairs.scorer import PairScorer
from lidp.pairs.search import PairSearch
from lidp.pairs.setup import PairSetup
from lidp.scores import Scores
from lidp.stats.method import Method
from lidp.streams import Purpose, stream
from lidp.target import Target
from lidp.trials.executor import Executor
from lidp.trials.rehearsal import try_canaries
from lidp.trials.setup import Setup
from lidp.trials.trial import TrialSetup

Prepared = Mapping[str, NDArray[Any]]
LeakSearch = Callable[[Any, Executor], LeakFinding]
"""A search for the leak, given the setup of the audit and what runs its trials."""
_FEW_TRIALS = 1024


class Procedure(ABC):
    """One kind of audit: how its trials are prepared, set up, rehearsed and scored, and when its budget is too small."""

    @abstractmethod
    def preparation(self, plan: AuditPlan) -> Callable[[], Any] | None:
        """Return the step to run once before the first trial, None if there is none."""

    @abstractmethod
    def setup(self, plan: AuditPlan, prepared: Prepared | None) -> Setup:
        """Return the setup that all trials share."""

    @abstractmethod
    def rehearse(self, plan: AuditPlan, setup: Any, executor: Executor) -> None:
        """Check the parts of the auditor before the first trial, so that their errors are not taken for outcomes."""

    @abstractmethod
    def scorer(self, plan: AuditPlan, predictions: StoredPredictions) -> Scorer:
        """Return a new scorer; ``predictions`` are the stored predictions by trial."""

    @abstractmethod
    def could_refute(self, plan: AuditPlan, scores: Scores) -> bool:
        """Return whether the leakiest mechanism would have been refuted with equally many trials and failures."""

    def leak_search(self, plan: AuditPlan, rows: int, known: LeakFinding | None) -> LeakSearch | None:
        """Return a search for the part of the output that leaks, in further runs; None if there is nothing to search.

        The claim was refuted after ``rows`` rows; ``known`` is what an earlier search found.
        """
        return None


class CanaryProcedure(Procedure):
    """Insert canaries, run the mechanism, score the canaries."""

    def preparation(self, plan: AuditPlan) -> Callable[[], Any] | None:
        """See :class:`Procedure`."""
        target = _canary_target(plan)
        if target.prepare is None:
            return None
        return partial(target.prepare, target.dataset, stream(plan.seed, trial=0, purpose=Purpose.PREPARATION))

    def setup(self, plan: AuditPlan, prepared: Prepared | None) -> TrialSetup:
        """See :class:`Procedure`."""
        target = _canary_target(plan)
        return TrialSetup(target, plan.design, plan.seed, None if target.prepare is None else prepared)

    def rehearse(self, plan: AuditPlan, setup: Any, executor: Executor) -> None:  # runs no mechanism
        """See :class:`Procedure`."""
        try_canaries(setup)

    def scorer(self, plan: AuditPlan, predictions: StoredPredictions) -> Scorer:
        """See :class:`Procedure`."""
        return CanaryScorer(plan.design, sequential=plan.sequential)

    def could_refute(self, plan: AuditPlan, scores: Scores) -> bool:
        """See :class:`Procedure`."""
        return _could_refute(plan, scores)


class PairProcedure(Procedure):
    """Flip a coin, run the mechanism on one of two data sets, predict the coin from the output.

    ``search`` chooses the data sets before the first run, if there are several pairs; ``classifier`` predicts the coins, None for
    the default.
    """

    def __init__(self, search: PairSearch | None = None, classifier: Classifier | None = None) -> None:
        self.search = search
        self.classifier = classifier

    def preparation(self, plan: AuditPlan) -> Callable[[], Any] | None:
        """See :class:`Procedure`."""
        return None if self.search is None else partial(self.search.prepare, plan.claim, plan.seed)

    def setup(self, plan: AuditPlan, prepared: Prepared | None) -> PairSetup:
        """See :class:`Procedure`."""
        target: Any = plan.target
        if self.search is not None and prepared is not None:
            target = self.search.chosen(prepared)
        return PairSetup(
            target,
            plan.design,
            plan.seed,
            bits=bool(plan.options.get("bits")),
            has_preparation=self.search is not None,
        )

    def rehearse(self, plan: AuditPlan, setup: Any, executor: Executor) -> None:
        """See :class:`Procedure`. This runs the mechanism, so it happens where the executor runs trials."""
        if not executor.separate_processes:
            setup.runner.check(plan.claim)
            return
        try:
            problem = executor.run_work(partial(_check_pair, setup, plan.claim), executor.time_limit)
        except AuditFailed:  # the mechanism killed its process or hung: the trials record that
            return
        if problem is not None:
            raise problem

    def scorer(self, plan: AuditPlan, predictions: StoredPredictions) -> Scorer:
        """See :class:`Procedure`."""
        by_user = plan.options.get("classifier") is not None
        make = None if by_user else default_classifier
        return PairScorer(
            plan.design, plan.name, predictions, classifier=_copy_classifier(self.classifier), make_classifier=make
        )

    def could_refute(self, plan: AuditPlan, scores: Scores) -> bool:
        """See :class:`Procedure`. A right guess multiplies the wealth by at most 1 + e^-ε.

        Nothing is staked on failed runs, nor on the first block, from which the default classifier chooses its bins.
        """
        if plan.claim.curve is not None:
            return _could_refute(plan, scores)
        first_block = plan.design.rows(1)
        staked = int((~scores.failed[first_block:]).sum())
        return bool(staked * np.log1p(np.exp(-plan.claim.epsilon)) > np.log(1 / plan.failure_probability))

    def leak_search(self, plan: AuditPlan, rows: int, known: LeakFinding | None) -> LeakSearch | None:
        """See :class:`Procedure`. A user's classifier explains itself; a search that found nothing may go on with more runs."""
        if plan.options.get("classifier") is not None:
            return None
        if known is not None and (known.found or known.runs >= looks_after(rows)[-1]):
            return None
        return partial(_search_leak, used=rows)


_PROCEDURES: dict[type[Design], type[Procedure]] = {PairRuns: PairProcedure}


def _could_refute(plan: AuditPlan, scores: Scores) -> bool:
    return could_refute(
        plan.method,
        plan.claim,
        plan.design,
        scores,
        failure_probability=plan.failure_probability,
        sequential=plan.sequential,
    )


def could_refute(
    method: Method, claim: Claim, design: Design, scores: Scores, *, failure_probability: float, sequential: bool = False
) -> bool:
    """Return whether the method refutes the claim for a mechanism that reveals every coin, with these runs failed."""
    options: dict[str, Any] = {"failure_probability": failure_probability, "sequential": sequential}
    fewer = max(_FEW_TRIALS, scores.trials // 4)
    many = method.anytime and scores.trials > fewer
    if many and could_refute(method, claim, design, scores[:fewer], **options):
        return True  # a refuted claim stays refuted
    perfect = Scores.of_block(**design.perfect_arrays(scores.trials), sequential=sequential, failed=scores.failed)
    try:
        best = method.bound(perfect, delta=claim.delta, failure_probability=failure_probability)
    except MethodNotApplicable:  # too few trials to split, for example
        return False
    return best.refutes(claim)


def default_procedure(design: Design) -> Procedure:
    """Return the procedure of a design."""
    return _PROCEDURES.get(type(design), CanaryProcedure)()


def _canary_target(plan: AuditPlan) -> Target:
    target = plan.target
    assert isinstance(target, Target)  # noqa: S101  # plans without a target, read from a store, are never run
    return target


def _check_pair(setup: PairSetup, claim: Claim) -> LidpError | None:
    """Try the mechanism on both data sets; return what is wrong, None if nothing is."""
    try:
        setup.runner.check(claim)
    except LidpError as error:
        return error
    return None


def _search_leak(setup: PairSetup, executor: Executor, *, used: int) -> LeakFinding:
    """Search for the leak where the executor runs trials: this runs the mechanism."""

    def run(number: int, coins: Bools) -> Block:
        if not executor.separate_processes:
            with use_one_core():
                return _run_block(setup, number, coins)
        block: Block = executor.run_work(partial(_run_block, setup, number, coins), executor.time_limit)
        return block

    return find_leak(run, setup.seed, used)


def _run_block(setup: PairSetup, number: int, coins: Bools) -> Block:
    return setup.runner.run(number, coins)


def _copy_classifier(classifier: Classifier | None) -> Classifier | None:
    """Return a copy of a user's classifier, which an audit may teach.

    An object that has learned the coins of one audit would predict them in the next one of the same seed, and refute a true claim.
    """
    try:
        return copy.deepcopy(classifier)
    except Exception as error:  # whatever the object raises
        raise InvalidArgument(
            f"the classifier cannot be copied ({type(error).__name__}: {error}); every audit teaches a copy of it, so define "
            "__deepcopy__ to return one that has learned nothing from audits"
        ) from error

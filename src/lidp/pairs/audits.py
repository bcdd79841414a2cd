"""The verb: coin → run → prediction → wager, until the claim falls or the budget ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.global_generators import kept_global_generators
from lidp._runtime.interrupts import Interrupted, Interrupts
from lidp._runtime.versions import versions
from lidp.claim import Claim
from lidp.designs import CoinFlip
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.boosting import default_classifier
from lidp.pairs.classifier import Classifier, OnlineClassifier
from lidp.pairs.running import FIRST_BLOCK, Block, PairRunner, block_sizes, never_varies
from lidp.result import AuditInterrupted, AuditResult, Verdict
from lidp.rounding import at_least, exact, fixed
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.streams import check_seed
from lidp.target_spec import TargetSpec


@dataclass(frozen=True)
class PairProgress:
    """How far an audit is: for whoever watches."""

    done: int
    planned: int
    epsilon: float
    claim: float
    seconds: float

    def __str__(self) -> str:
        rate = self.done / self.seconds if self.seconds > 0 else 0.0
        return (
            f"{self.done:,}/{self.planned:,} runs, {rate:,.0f}/s, ε ≥ {fixed(self.epsilon, 2)} (claim {exact(self.claim)})"
        )


@dataclass(frozen=True)
class PairResult(AuditResult):
    """The outcome of an audit of two data sets; its trials are runs, its scores the predictions that were wagered on.

    Guarantee: that of :class:`AuditResult`, for the two data sets at hand: a refuted claim is false, for any data.
    """

    leak: str = ""
    """where outputs differ most between the data sets, in words"""
    search_runs: int = 0
    """runs spent on choosing the data sets, which the bound does not count"""

    def __str__(self) -> str:
        above = "more than" if self.verdict is Verdict.REFUTED else "against"
        lines = [
            f"{self.verdict}: {self.target} claims {self.claim}",
            f"  bound      ε ≥ {at_least(self.bound.epsilon, above=self.claim.epsilon)}, {above} the "
            f"{exact(self.claim.epsilon)} claimed ({self.bound.certainty})",
            f"  guarantee  {self.bound.guarantee}: {self.bound.guarantee.meaning}",
            f"  evidence   {self.bound.trials:,} of {self.planned_trials:,} runs"
            + (f", {self.search_runs:,} more to choose the data sets" if self.search_runs else ""),
            f"  {'leak      ' if self.verdict is Verdict.REFUTED else 'difference'} {self.leak}",
        ]
        if self.failed_runs:
            lines.append(f"  trouble    {self.failed_runs:,} runs raised (kept, not bet on)")
        lines.extend(f"  assumes    {text}" for text in self._run_assumptions())
        if self.verdict is Verdict.UNDECIDED:
            lines.append("  note       no mechanism could have been refuted with so few runs")
        return "\n".join([*lines, f"  seed       {self.seed}, {self.seconds:.1f} s"])

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"leak": self.leak, "search_runs": self.search_runs}


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
    stop_when: str = "refuted",
    bits: bool = False,
    watch: Callable[[PairProgress], None] | None = None,
    target_spec: TargetSpec | None = None,
) -> PairResult:
    """Audit a mechanism as a black box: flip a coin, run it on d0 or d1, wager on which it was.

    Args:
        mechanism: a :class:`PairTarget`, or a callable as it describes, with two data sets that are neighbours under the claim.
        d0: the data set that the mechanism runs on if the coin is 0; left out with a target or ``pairs``.
        d1: the one that it runs on if the coin is 1.
        claim: what is claimed.
        runs: the budget, both data sets together.
        features: numbers to look at beside the usual ones: ``features(output)``.
        classifier: what predicts; see :class:`Classifier`. One that learns online is used if left out.
        pairs: neighbouring data sets to choose from, instead of d0 and d1.
        search_share: the share of the runs that goes into the choice among ``pairs``; the bound is from the others and therefore
            needs no correction.
        failure_probability: β, how often a true claim may be refuted.
        seed: same seed, same result.
        stop_when: "refuted" or "never".
        bits: look at the bit patterns of floats too.
        watch: called with a :class:`PairProgress` now and then.
        target_spec: how the target is loaded, for the command in the report.

    Guarantee: finite-sample and anytime-valid: if the claim holds for these data sets, it is refuted with probability at most
    ``failure_probability``, whatever the classifier. A run that raises is an output that nobody bets on. Assumes that runs are
    independent of one another but for what outputs already told; for ``many``, that its rows are independent runs. A classifier of
    one's own sees the outputs of a whole block when it predicts, so with it runs are assumed to be independent altogether.
    """
    target = _checked(mechanism, d0, d1, features, claim, classifier, stop_when)
    failure_probability = checks.probability(failure_probability=failure_probability)
    runs, seed = checks.count(runs=runs), check_seed(seed)
    start = time.monotonic()
    with Interrupts() as interrupts, kept_global_generators():
        searched = 0
        if pairs is not None:
            from lidp.pairs.search import choose_pair

            budget = max(1, int(checks.probability(search_share=search_share) * runs))
            target, searched = choose_pair(target, pairs, claim, budget, seed, bits=bits)
        runner = PairRunner(target, seed, bits=bits)
        runner.check(claim)
        method = CoinWager(log_odds=True, largest=max(10.0, 2 * claim.epsilon))
        ledger = _Ledger(method, claim, failure_probability, classifier, stops=stop_when == "refuted")

        def result() -> PairResult:
            found = ledger.result(target, planned=runs - searched, searched=searched, seed=seed, start=start)
            return replace(found, configuration=_configuration(found, runs, stop_when, target_spec))

        try:
            for number, size in enumerate(block_sizes(runs - searched)):
                ledger.wager_on(runner, number, size, interrupts)
                if watch is not None:
                    seconds = time.monotonic() - start
                    watch(PairProgress(ledger.runs, runs - searched, ledger.wager.epsilon, claim.epsilon, seconds))
                if ledger.fell is not None:
                    break
        except KeyboardInterrupt:
            raise AuditInterrupted(result() if ledger.runs else None) from None
        return result()


def _configuration(result: PairResult, runs: int, stop_when: str, spec: TargetSpec | None) -> dict[str, Any]:
    """What was asked for, named as in the store of an audit with canaries."""
    return {
        "pair": True,
        "target": result.target,
        "claim": {**asdict(result.claim), "neighbours": str(result.claim.neighbours)},
        "trials": runs,
        "failure_probability": result.bound.failure_probability,
        "seed": result.seed,
        "stop_when": stop_when,
        "target_spec": None if spec is None else spec.to_dict(),
    }


def _checked(
    mechanism: Any, d0: Any, d1: Any, features: Any, claim: Claim, classifier: Classifier | None, stop_when: str
) -> PairTarget:
    """The target, if the arguments fit together."""
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=1), got {claim!r}")
    if stop_when not in ("refuted", "never"):
        raise InvalidArgument(f"stop_when must be refuted or never, got {stop_when!r}")
    if classifier is not None and not all(hasattr(classifier, name) for name in ("predict", "learn", "explain")):
        raise InvalidArgument(f"a classifier has predict(outputs), learn(outputs, coins) and explain(), got {classifier!r}")
    if not isinstance(mechanism, PairTarget):
        return PairTarget(mechanism, d0, d1, features)
    if d0 is not None or d1 is not None or features is not None:
        raise InvalidArgument("a PairTarget has d0, d1 and features of its own; do not give them again")
    return mechanism


class _Ledger:
    """Predictions and coins so far. One that ``stops`` ends at the run at which the claim fell, where its block did not."""

    def __init__(
        self, method: CoinWager, claim: Claim, failure_probability: float, classifier: Classifier | None, *, stops: bool
    ) -> None:
        self.method = method
        self.stops = stops
        self.claim = claim
        self.failure_probability = failure_probability
        self.wager = method.begin(delta=claim.delta, failure_probability=failure_probability)
        self.classifier: Classifier | OnlineClassifier | None = classifier
        self.runs = 0
        self.fell: int | None = None
        self._learned = 0
        self._first_failure = ""
        self._blocks: list[Scores] = []
        self._kinds: set[Hashable] = set()

    def wager_on(self, runner: PairRunner, number: int, size: int, interrupts: Interrupts) -> None:
        """Run a block, predict, wager. A block in which an interrupt came is not wagered on: it may be why runs failed."""
        block = runner.run(number, size)
        if interrupts.seen:
            raise Interrupted
        with interrupts.held():
            self._wager_on(block, size)

    def _wager_on(self, block: Block, size: int) -> None:
        self._first_failure = self._first_failure or block.first_failure
        if len(self._kinds) < 2:
            self._kinds |= set(block.outputs.wholes)
        logits: NDArray[np.float64] = np.full(size, np.nan)
        if len(block.outputs):
            self.classifier = self.classifier or default_classifier(block.outputs)
            coins = block.coins[~block.failed]
            if isinstance(self.classifier, OnlineClassifier):
                found = self.classifier.predict_and_learn(block.outputs, coins)
                self._learned += len(coins)
            else:
                found = np.array(self.classifier.predict(block.outputs), dtype=np.float64)
            if found.shape != coins.shape or not np.isfinite(found).all():
                raise AuditFailed(
                    f"the classifier must give {len(coins):,} finite log-odds, one for each run, got shape {found.shape}"
                )
            logits[~block.failed] = found
        scores = Scores.of_block(
            scores=logits[:, None], coins=block.coins[:, None], failed=block.failed, neighbours=self.claim.neighbours
        )
        self.wager.update(scores)
        self._blocks.append(scores)
        self.runs += size
        if self.stops and self.wager.epsilon > self.claim.epsilon:
            self.fell = next(seen for seen, epsilon in self.wager.bound().path if epsilon > self.claim.epsilon)
        if len(block.outputs) and self.classifier is not None and not isinstance(self.classifier, OnlineClassifier):
            counted = size if self.fell is None else size - (self.runs - self.fell)
            kept = int((~block.failed[:counted]).sum())
            self.classifier.learn(block.outputs.part(0, kept), coins[:kept])

    def result(self, target: PairTarget, *, planned: int, searched: int, seed: int, start: float) -> PairResult:
        """The result so far."""
        scores = Scores.join(self._blocks)
        if scores.failed.all() or self.classifier is None:
            raise AuditFailed(f"all {self.runs:,} runs of {target.name} raised, the first with: {self._first_failure}")
        if len(self._kinds) == 1 and self.runs >= FIRST_BLOCK:
            raise never_varies(target, self.runs)
        claim, beta = self.claim, self.failure_probability
        if self.fell is None:
            found = self.wager.bound()
        else:
            # The result is that of the run at which the claim fell, although its block was run to its end.
            scores = scores[: self.fell].stopped()
            found = self.method.bound(scores, delta=claim.delta, failure_probability=beta)
        verdict = Verdict.NOT_REFUTED if _could_refute(scores, claim, beta) else Verdict.UNDECIDED
        return PairResult(
            verdict=Verdict.REFUTED if found.refutes(claim) else verdict,
            bound=found,
            claim=claim,
            target=target.name,
            design=CoinFlip(1, claim.neighbours),
            method=self.method,
            seed=seed,
            planned_trials=planned,
            preparation_models=0,
            scores=scores.stopped() if scores.trials < planned else scores,
            notes=(),
            versions=versions(),
            computed_with=versions(),
            seconds=time.monotonic() - start,
            leak=self._explained(self.classifier, int((~scores.failed).sum())),
            search_runs=searched,
        )

    def _explained(self, classifier: Classifier | OnlineClassifier, counted: int) -> str:
        """Where the data sets differ, by the runs that the result counts: its numbers must fit together."""
        if isinstance(classifier, OnlineClassifier):
            classifier.forget(self._learned - counted)
            self._learned = counted
        return classifier.explain()


def _could_refute(scores: Scores, claim: Claim, failure_probability: float) -> bool:
    """Whether guessing right every time would have been enough: a right guess multiplies the wealth by at most 1 + e^-ε.

    Nothing is staked on the first block, from which the default classifier learns where to look, nor on runs that failed.
    """
    staked = int((~scores.failed[FIRST_BLOCK:]).sum())
    return bool(staked * np.log1p(np.exp(-claim.epsilon)) > np.log(1 / failure_probability))

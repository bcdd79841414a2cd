"""The verb: coin → run → prediction → wager, until the claim falls or the budget ends."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Claim
from lidp.designs import CoinFlip
from lidp.errors import AuditFailed, InvalidArgument
from lidp.pair_target import PairTarget
from lidp.pairs.boosting import default_classifier
from lidp.pairs.classifier import Classifier
from lidp.pairs.running import PairRunner, block_sizes
from lidp.result import AuditResult, Verdict
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager, CoinWagerRun
from lidp.streams import check_seed


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
        return f"{self.done:,}/{self.planned:,} runs, {rate:,.0f}/s, ε ≥ {self.epsilon:.2f} (claim {self.claim:g})"


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
        beta = self.bound.failure_probability
        lines = [
            f"{self.verdict}: {self.target} claims {self.claim}",
            f"  bound      ε ≥ {self.bound.epsilon:.4g}, {above} the {self.claim.epsilon:g} claimed (failure probability {beta:g})",
            f"  guarantee  {self.bound.guarantee}: {self.bound.guarantee.meaning}",
            f"  evidence   {self.bound.trials:,} of {self.planned_trials:,} runs"
            + (f", {self.search_runs:,} more to choose the data sets" if self.search_runs else ""),
            f"  leak       {self.leak}",
        ]
        if self.failed_runs:
            lines.append(f"  trouble    {self.failed_runs:,} runs raised (kept, not bet on)")
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
) -> PairResult:
    """Audit a mechanism as a black box: flip a coin, run it on d0 or d1, wager on which it was.

    Args:
        mechanism: a :class:`PairTarget`, or a callable as it describes, with two data sets that are neighbours under the claim.
        claim: what is claimed.
        runs: the budget, both data sets together.
        features: numbers to look at beside the usual ones: ``features(output)``.
        classifier: what predicts; see :class:`Classifier`. One that learns online is used if left out.
        pairs: neighbouring data sets to choose from, instead of d0 and d1. ``search_share`` of the runs goes into the choice, the
            others into the bound, which therefore needs no correction.
        stop_when: "refuted" or "never".
        bits: look at the bit patterns of floats too.
        watch: called with a :class:`PairProgress` now and then.

    Guarantee: finite-sample and anytime-valid: if the claim holds for these data sets, it is refuted with probability at most
    ``failure_probability``, whatever the classifier. A run that raises is an output that nobody bets on.
    """
    if not isinstance(claim, Claim):
        raise InvalidArgument(f"claim must be a Claim, as in Claim(epsilon=1), got {claim!r}")
    if stop_when not in ("refuted", "never"):
        raise InvalidArgument(f"stop_when must be refuted or never, got {stop_when!r}")
    runs, seed = checks.count(runs=runs), check_seed(seed)
    start = time.monotonic()
    target = mechanism if isinstance(mechanism, PairTarget) else PairTarget(mechanism, d0, d1, features)
    searched = 0
    if pairs is not None:
        from lidp.pairs.search import choose_pair

        budget = max(1, int(checks.probability(search_share=search_share) * runs))
        target, searched = choose_pair(target, pairs, claim, budget, seed)
    runner = PairRunner(target, seed, bits=bits)
    runner.check(claim)
    method = CoinWager(log_odds=True, largest=max(10.0, 2 * claim.epsilon))
    wager = method.begin(delta=claim.delta, failure_probability=failure_probability)
    ledger = _Ledger(wager, classifier)
    for number, size in enumerate(block_sizes(runs - searched)):
        ledger.wager_on(runner, number, size)
        if watch is not None:
            watch(PairProgress(ledger.runs, runs - searched, wager.epsilon, claim.epsilon, time.monotonic() - start))
        if stop_when == "refuted" and wager.epsilon > claim.epsilon:
            break
    scores = ledger.scores()
    if scores.failed.all():
        raise AuditFailed(f"all {ledger.runs:,} runs of {target.name} raised, the first with: {ledger.first_failure}")
    found = wager.bound()
    if stop_when == "refuted" and found.refutes(claim):
        # The result is that of the run at which the claim fell, although its block was run to its end.
        fell = next(seen for seen, epsilon in found.path if epsilon > claim.epsilon)
        scores = scores[:fell]
        found = method.bound(scores, delta=claim.delta, failure_probability=failure_probability)
    verdict = Verdict.NOT_REFUTED if _could_refute(scores.trials, claim, failure_probability) else Verdict.UNDECIDED
    return PairResult(
        verdict=Verdict.REFUTED if found.refutes(claim) else verdict,
        bound=found,
        claim=claim,
        target=target.name,
        design=CoinFlip(1, claim.neighbours),
        method=method,
        seed=seed,
        planned_trials=runs - searched,
        preparation_models=0,
        scores=scores,
        notes=(),
        versions={"python": platform.python_version()} | {name: metadata.version(name) for name in ("lidp", "numpy")},
        seconds=time.monotonic() - start,
        leak=ledger.classifier.explain(),
        search_runs=searched,
    )


def _could_refute(runs: int, claim: Claim, failure_probability: float) -> bool:
    """Whether guessing right every time would have been enough: a right guess multiplies the wealth by at most 1 + e^-ε."""
    return bool(runs * np.log1p(np.exp(-claim.epsilon)) > np.log(1 / failure_probability))


class _Ledger:
    """Predictions and coins so far."""

    def __init__(self, wager: CoinWagerRun, classifier: Classifier | None) -> None:
        self.wager = wager
        self._classifier = classifier
        self.runs = 0
        self.first_failure = ""
        self._blocks: list[Scores] = []

    @property
    def classifier(self) -> Classifier:
        """Who predicts."""
        if self._classifier is None:
            raise AuditFailed("no run has succeeded yet")
        return self._classifier

    def wager_on(self, runner: PairRunner, number: int, size: int) -> None:
        """Run a block, predict, wager."""
        block = runner.run(number, size)
        self.first_failure = self.first_failure or block.first_failure
        logits: NDArray[np.float64] = np.full(size, np.nan)
        if len(block.outputs):
            if self._classifier is None:
                self._classifier = default_classifier(block.outputs)
            logits[~block.failed] = self._classifier.predict_and_learn(block.outputs, block.coins[~block.failed])
        scores = Scores(scores=logits[:, None], coins=block.coins[:, None], failed=block.failed)
        self.wager.update(scores)
        self._blocks.append(scores)
        self.runs += size

    def scores(self) -> Scores:
        """All of it."""
        return Scores.join(self._blocks)

"""``open_seal``: join scores with sealed coins, bound ε by the committed method, judge the claim, record the look."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lidp._runtime.versions import versions
from lidp.engine.judge import judge
from lidp.engine.procedure import could_refute
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import InvalidArgument, SealError
from lidp.result import AuditResult, Verdict
from lidp.scores import Scores
from lidp.seals.evidence import RunEvidence, hash_evidence, scores_of
from lidp.seals.openings import Look, Opening, ledger_of, look_of
from lidp.seals.plan import SealPlan
from lidp.seals.score_lists import read_score_list
from lidp.seals.sealed_run import SealedRun, read_sequence
from lidp.seals.sealing import now
from lidp.stats.registry import bound

SCORES_ALONE = "scores use the trained model and the candidate alone, not who was in"
"""Further assumption of every seal: whoever computes scores has not seen the coins, nor the data set that was trained on."""
TRAINED_ON_IT = "the training used the sealed data set and nothing else about the candidates"
INDEPENDENT_TRAININGS = "the randomness of each training is independent of the others"


def run_assumptions(runs: int) -> tuple[str, ...]:
    """Return the assumptions of sealed runs beyond those of the method."""
    return (SCORES_ALONE, TRAINED_ON_IT, *((INDEPENDENT_TRAININGS,) if runs > 1 else ()))


@dataclass(frozen=True)
class SealedResult(AuditResult):
    """The outcome of opening sealed runs."""

    sealed: ClassVar[bool] = True

    plan_id: str = ""
    digests: tuple[str, ...] = ()
    look: int = 1
    looks: int = 1

    def _run_assumptions(self) -> tuple[str, ...]:
        return run_assumptions(self.bound.trials)

    def _narrow_hypothesis(self) -> list[str]:
        return [f"  hypothesis {self.bound.hypothesis.meaning}"]

    def to_dict(self, *, scores: bool = False) -> dict[str, Any]:
        """Return plain data, ready for JSON, without scores, coins, and the seed, which would tell the coins.

        :meth:`AuditResult.from_dict` refuses it: receipts are what can be read and checked.

        Raises:
            InvalidArgument: if scores are asked for.
        """
        if scores:
            raise InvalidArgument(
                "the scores of a sealed audit would tell its coins; make_receipt writes what may be shown"
            )
        plain = {name: value for name, value in super().to_dict().items() if name != "seed"}
        return {**plain, "plan": self.plan_id, "commitments": list(self.digests), "look": self.look, "looks": self.looks}

    def _remedy_of_too_few(self) -> str:
        return "seal further runs, or a new plan with more canaries"

    def _origin(self) -> list[str]:
        looks = [f"  look       {self.look} of {self.looks}, each at β/{self.looks}"] if self.looks > 1 else []
        return looks + [f"  commitment {digest}" for digest in self.digests]


@dataclass(frozen=True)
class OpenedSeal:
    """What an opening found. ``result`` is None as long as further looks are left: then the verdict alone is told."""

    verdict: Verdict
    plan: SealPlan
    look: Look
    evidence: tuple[RunEvidence, ...]
    evidence_hash: str
    time: str
    """when these scores were opened for the first time"""
    result: SealedResult | None

    def __str__(self) -> str:
        if self.result is not None:
            return str(self.result)
        each = f"{self.plan.failure_probability_per_look:.4g}"
        return "\n".join(
            [
                f"{self.verdict}: look {self.look.number} of {self.plan.looks} (failure probability {each} of each look)",
                "  claim      " + str(self.plan.claim),
                "  sealed     the bound is not told while looks are left, because it would steer the next scores; --last tells it",
                "  receipt    not written yet, nor any report: they would tell the bound",
                f"  left       {self.look.left} for other scores",
            ]
        )


@dataclass(frozen=True, eq=False)
class Judgement:
    """The bound of the committed method and its verdict, from evidence alone."""

    scores: Scores
    bound: EpsilonBound
    verdict: Verdict


def judge_evidence(plan: SealPlan, runs: Sequence[RunEvidence]) -> Judgement:
    """Return bound and verdict from the evidence of runs 1 to n.

    Guarantee: a true claim is refuted with probability at most β/looks, under the assumptions of the method and
    ``SCORES_ALONE``; over all looks together with probability at most β.
    """
    check_number_of_runs(plan, len(runs))
    scores, risk = scores_of(plan, runs), plan.failure_probability_per_look
    bounded = bound(scores, plan.method, claim=plan.claim, failure_probability=risk)
    able = bounded.refutes(plan.claim) or could_refute(
        plan.method, plan.claim, plan.design, scores, failure_probability=risk
    )
    verdict = judge(bounded, plan.claim, provisional=False, could_refute=able)
    return Judgement(scores, bounded, verdict)


def check_number_of_runs(plan: SealPlan, runs: int) -> None:
    """Raise ``SealError`` if the method needs a fixed number of runs, and this is another one."""
    if not plan.method.anytime and runs != plan.runs:
        raise SealError(
            f"{plan.method.name} is not anytime-valid: it needs all {plan.runs} planned runs at once, and {runs} are given; "
            "nothing was opened"
        )


def open_seal(
    folders: str | Path | Sequence[str | Path],
    scores: str | Path | Sequence[str | Path] = (),
    *,
    failed: Mapping[int, str] | None = None,
    last: bool = False,
) -> OpenedSeal:
    """Open the sealed runs 1 to n of one plan with their scores.

    Args:
        folders: the sealed folders, in the order of their runs.
        scores: one file of scores per run that did not fail, in the same order.
        failed: the reasons why trainings failed, by run number. Nothing is bet on those.
        last: tell the bound, and give up the looks that are left.

    The look is recorded in every folder before this function returns. Scores that are refused spend no look.

    Raises:
        SealError: if a seal was changed, is incomplete, or was opened with other scores and no look is left.
        InvalidScores: if scores are missing, not finite, or belong to other candidates.
    """
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, (str, Path)) else folders)]
    files = [Path(file) for file in ([scores] if isinstance(scores, (str, Path)) else scores)]
    runs = read_sequence(paths)
    check_number_of_runs(runs[0].commitment.plan, len(runs))
    evidence = _evidence(runs, files, dict(failed or {}))
    with ledger_of(paths) as ledger:
        hashes = tuple(run.hash for run in evidence)
        plan = runs[0].commitment.plan
        look = look_of(hashes, ledger.openings, plan.looks)
        judgement = judge_evidence(plan, evidence)
        revealed = judgement.verdict is Verdict.REFUTED or last or look.left == 0
        evidence_hash = hash_evidence(hashes)
        time = ledger.record(Opening(hashes, evidence_hash, str(judgement.verdict), revealed, now()))
    result = _result(plan, runs, judgement, look) if revealed else None
    return OpenedSeal(judgement.verdict, plan, look, tuple(evidence), evidence_hash, time, result)


def _evidence(runs: Sequence[SealedRun], files: list[Path], failed: dict[int, str]) -> list[RunEvidence]:
    unknown = [number for number in failed if not 1 <= number <= len(runs)]
    if unknown:
        raise InvalidArgument(f"run {unknown[0]} is said to have failed, and only runs 1 to {len(runs)} are opened")
    if len(files) != len(runs) - len(failed):
        raise InvalidArgument(
            f"runs opened: {len(runs)}, said to have failed: {len(failed)}; need {len(runs) - len(failed)} files of scores, "
            f"got {len(files)}; give --scores once per run, in the same order, or --failed for a run without scores"
        )
    remaining = iter(files)
    return [
        RunEvidence.of(run, None, failed[number])
        if number in failed
        else RunEvidence.of(run, read_score_list(next(remaining), run.ids))
        for number, run in zip(itertools.count(1), runs, strict=False)
    ]


def _result(plan: SealPlan, runs: Sequence[SealedRun], judgement: Judgement, look: Look) -> SealedResult:
    configuration: dict[str, Any] = {"stop_when": "never"} if not plan.method.anytime else {}
    return SealedResult(
        verdict=judgement.verdict,
        bound=judgement.bound,
        claim=plan.claim,
        target=f"the sealed training (plan {plan.id})",
        design=plan.design,
        method=plan.method,
        seed=runs[-1].seed,
        planned_trials=max(len(runs), plan.runs or 0),
        preparation_models=0,
        scores=judgement.scores,
        notes=(),
        versions=dict(runs[0].commitment.versions),
        configuration=configuration,
        computed_with=versions(),
        plan_id=plan.id,
        digests=tuple(run.commitment.digest for run in runs),
        look=look.number,
        looks=plan.looks,
    )

"""``verify_receipt``: check a receipt offline, line by line, and compute its bound and verdict again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lidp._runtime.versions import versions
from lidp.epsilon_bound import EpsilonBound
from lidp.errors import InvalidArgument, LidpError, SealError
from lidp.result import Verdict
from lidp.rounding import counted
from lidp.seals.evidence import RunEvidence, hash_evidence
from lidp.seals.opening import Judgement, judge_evidence, run_assumptions
from lidp.seals.plan import Commitment, SealPlan, check_time, parsed
from lidp.seals.receipt import STATEMENTS, Receipt, read_receipt
from lidp.seals.score_lists import read_score_list
from lidp.seals.sealed_run import SealedRun, check_chain, read_sequence
from lidp.seals.signatures import check_signature

_SAME = 1e-6  # versions of numpy and scipy agree on a bound up to this, relatively


@dataclass(frozen=True)
class Check:
    """One statement about a receipt: whether it holds, or None if it could not be checked."""

    name: str
    holds: bool | None
    text: str

    def __str__(self) -> str:
        word = {True: "holds", False: "FAILS", None: "not checked"}[self.holds]
        return (
            f"{word:11}  {self.name}: {' '.join(self.text.split())}"  # a text from the receipt must not look like a check
        )


@dataclass(frozen=True)
class Verification:
    """All checks of a receipt. ``holds`` is True only if none failed, and the verdict was computed again."""

    checks: tuple[Check, ...]
    verdict: str

    @property
    def holds(self) -> bool:
        """Whether everything that the receipt states about the verdict holds."""
        failed = any(check.holds is False for check in self.checks)
        return not failed and any(check.name == "verdict" and check.holds for check in self.checks)

    def __str__(self) -> str:
        words = {True: "the receipt holds", False: "the receipt does not hold"}
        unchecked = not self.holds and all(check.holds is not False for check in self.checks)
        summary = "the receipt could not be checked completely" if unchecked else words[self.holds]
        states = "it states" if self.holds else "do not rely on what it states,"
        return "\n".join([*map(str, self.checks), f"{summary}: {states} the verdict {self.verdict!r}"])


def verify_receipt(
    receipt: str | Path | Receipt,
    *,
    public_key: str | Path | None = None,
    seals: Sequence[str | Path] = (),
    scores: Sequence[str | Path] = (),
) -> Verification:
    """Check a receipt without the network: digest, signature, commitments, coins; compute bound and verdict again.

    Args:
        receipt: the file, or the receipt itself.
        public_key: a PEM file; the receipt must be signed by this key.
        seals: the sealed folders, which a receipt without evidence needs.
        scores: the files of scores of the runs that did not fail, in order.

    Raises:
        SealError: if the file is not a receipt at all.
    """
    if scores and not seals:
        raise InvalidArgument("scores are joined with the candidates of a seal; give --seal too")
    content = receipt if isinstance(receipt, Receipt) else read_receipt(receipt)
    return _Verifier(content, public_key, [Path(seal) for seal in seals], [Path(file) for file in scores]).verify()


class _Verifier:
    """Collects the checks of one receipt."""

    def __init__(self, receipt: Receipt, public_key: str | Path | None, seals: list[Path], scores: list[Path]) -> None:
        self._receipt = receipt
        self._plain = receipt.plain
        self._public_key = None if public_key is None else Path(public_key)
        self._seals = seals
        self._scores = scores
        self._checks: list[Check] = []

    def verify(self) -> Verification:
        self._check("digest", self._digest)
        self._check("signature", self._signature)
        commitments = self._value("commitments", self._commitments)
        if commitments:
            self._evidence(commitments)
        return Verification(tuple(self._checks), str(self._plain["verdict"])[:40])

    def _evidence(self, commitments: list[Commitment]) -> None:
        sealed = self._value("seal", lambda: self._sealed(commitments)) if self._seals else None
        if self._seals and sealed is None:
            return
        if self._plain["evidence"] is None and not (sealed and (self._scores or not self._files_needed())):
            self._add(
                "evidence", None, "the receipt holds no scores and coins; give --seal and --scores to compute the verdict"
            )
            return
        runs = self._value("evidence", lambda: self._runs(commitments, sealed))
        if runs is not None:
            judgement = self._value("bound", lambda: self._bound(commitments[0].plan, runs))
            if judgement is not None:
                self._check("verdict", lambda: self._verdict(judgement, commitments[0].plan))

    def _add(self, name: str, holds: bool | None, text: str) -> None:
        self._checks.append(Check(name, holds, text))

    def _check(self, name: str, check: Callable[[], str | None]) -> None:
        """Add what a check returns, None for what was not checked, or its error."""
        try:
            text = parsed("the receipt", check)
        except LidpError as error:
            self._add(name, False, " ".join(str(error).split()))
        else:
            self._add(name, None if text is None else True, text or "the receipt is not signed")

    def _value(self, name: str, make: Callable[[], tuple[Any, str]]) -> Any:
        """Add the text of a check that also returns a value; return None if it fails."""
        try:
            value, text = parsed("the receipt", make)
        except LidpError as error:
            self._add(name, False, " ".join(str(error).split()))
            return None
        self._add(name, True, text)
        return value

    def _digest(self) -> str:
        if self._plain.get("digest") != self._receipt.digest:
            raise SealError("the receipt was changed after it was written: its digest does not match its content")
        return str(self._receipt.digest)

    def _signature(self) -> str | None:
        signature = self._plain.get("signature")
        if signature is None and self._public_key is not None:
            raise SealError(f"the receipt is not signed, and --public-key {self._public_key} is given")
        if signature is None:
            return None
        if not isinstance(signature, Mapping):
            raise SealError("the signature is damaged")
        return check_signature(self._receipt.digest, signature, self._public_key)

    def _commitments(self) -> tuple[list[Commitment], str]:
        plain = self._plain["commitments"]
        if not isinstance(plain, list) or not plain:
            raise SealError("there is no commitment in it")
        names = [f"commitment {number}" for number in range(1, len(plain) + 1)]
        commitments = [Commitment.from_dict(one, name) for one, name in zip(plain, names, strict=True)]
        check_chain(commitments, names)
        plan = commitments[0].plan
        if self._plain["plan"] != plan.to_dict() or self._plain["claim"] != plan.claim.to_dict():
            raise SealError("the receipt states another claim or plan than its commitments")
        self._check_statements(plan)
        last = commitments[-1]
        return commitments, f"{len(commitments)} of plan {plan.id}, the last {last.digest}, sealed {last.created}"

    def _check_statements(self, plan: SealPlan) -> None:
        """Raise ``SealError`` for statements that no opening makes: nothing in a receipt may stand there unchecked."""
        unknown = sorted(set(self._plain) - set(STATEMENTS))
        if unknown:
            raise SealError(
                f"the receipt states {unknown[0]!r:.40}, which lidp does not check; receipts of lidp have no such entry"
            )
        look = self._plain.get("look")
        if isinstance(look, bool) or not isinstance(look, int) or not 1 <= look <= plan.looks:
            raise SealError(f"the receipt is of look {look!r:.40}, and the plan has {plan.looks:,}")
        check_time(self._plain.get("created"))

    def _sealed(self, commitments: list[Commitment]) -> tuple[list[SealedRun], str]:
        runs = read_sequence(self._seals)
        if [run.commitment.digest for run in runs] != [commitment.digest for commitment in commitments]:
            raise SealError("the sealed folders have other commitments than the receipt")
        return runs, "the folders match the commitments, candidates and coins included"

    def _files_needed(self) -> int:
        runs = self._plain["runs"]
        return sum(isinstance(run, dict) and run.get("failed") is None for run in runs) if isinstance(runs, list) else 0

    def _runs(self, commitments: list[Commitment], sealed: list[SealedRun] | None) -> tuple[list[RunEvidence], str]:
        stated = self._plain["runs"]
        if len(stated) != len(commitments):
            raise SealError(f"{len(commitments)} commitments, but evidence of {len(stated)} runs")
        packed = self._plain["evidence"]
        runs = self._from_files(sealed) if sealed and (self._scores or packed is None) else self._from_receipt(commitments)
        for at, (run, one) in enumerate(zip(runs, stated, strict=True)):
            run.check_coins()
            if sealed and not np.array_equal(run.ids, sealed[at].ids):
                raise SealError(f"the ids of run {run.commitment.run} are not those of the sealed folder")
            if run.hash != one["scores"] or run.failed != one["failed"]:
                raise SealError(f"the scores of run {run.commitment.run} are not those of the receipt")
        if hash_evidence([run.hash for run in runs]) != self._plain["evidence_hash"]:
            raise SealError("the hash of the evidence is not that of its runs")
        return runs, f"scores and coins of {counted(len(runs), 'runs')} match their hashes, {self._plain['evidence_hash']}"

    def _from_receipt(self, commitments: list[Commitment]) -> list[RunEvidence]:
        packed = self._plain["evidence"]
        if len(packed) != len(commitments):
            raise SealError(f"{len(commitments)} commitments, but evidence of {len(packed)} runs")
        return [RunEvidence.from_dict(one, commitment) for one, commitment in zip(packed, commitments, strict=True)]

    def _from_files(self, sealed: list[SealedRun]) -> list[RunEvidence]:
        if len(self._scores) != self._files_needed() or len(sealed) != len(self._plain["runs"]):
            raise InvalidArgument(f"the receipt needs {self._files_needed()} files of scores, got {len(self._scores)}")
        files = iter(self._scores)
        return [
            RunEvidence.of(run, read_score_list(next(files), run.ids) if one["failed"] is None else None, one["failed"])
            for run, one in zip(sealed, self._plain["runs"], strict=True)
        ]

    def _bound(self, plan: SealPlan, runs: Sequence[RunEvidence]) -> tuple[Judgement, str]:
        judgement = judge_evidence(plan, runs)
        stated, again = self._plain["bound"], judgement.bound
        same_versions = self._plain.get("versions") == versions()
        if not _alike(stated, EpsilonBound.from_json(again.to_json()).to_dict(), 0.0 if same_versions else _SAME):
            raise SealError(f"the receipt states another bound than its evidence gives, which is ε ≥ {again.epsilon!r}")
        return judgement, f"computed again from scores and coins: ε ≥ {again.epsilon!r} by {again.method}"

    def _verdict(self, judgement: Judgement, plan: SealPlan) -> str:
        refuted = judgement.bound.verdicts(plan.claim)
        inconclusive = judgement.verdict is Verdict.INCONCLUSIVE
        names = {True: Verdict.REFUTED, False: Verdict.NOT_REFUTED}
        verdicts = {name: str(Verdict.INCONCLUSIVE if inconclusive else names[value]) for name, value in refuted.items()}
        if self._plain["verdict"] != str(judgement.verdict) or self._plain["verdicts"] != verdicts:
            raise SealError(f"the receipt states another verdict than its evidence gives, which is {judgement.verdict}")
        expected = [*judgement.bound.assumptions, *run_assumptions(judgement.bound.trials)]
        if self._plain["assumptions"] != expected:
            raise SealError("the receipt states other assumptions than those under which its verdict holds")
        return f"{judgement.verdict}: {plan.claim} ({judgement.bound.certainty})"


def _alike(one: Any, other: Any, tolerance: float) -> bool:
    """Return whether plain data are equal, numbers up to a relative tolerance."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key], tolerance) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_alike(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=0.0)
    return bool(one == other)

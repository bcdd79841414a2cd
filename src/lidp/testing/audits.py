"""The end-to-end check of extensions: an audit with them is interrupted, resumed, read, reported and cited."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lidp.claim import Claim
from lidp.designs import CoinFlip, Design
from lidp.designs.trial_record import TrialRecord
from lidp.engine.audit import audit, plan_of, result_of
from lidp.report.page import write_report
from lidp.result import AuditInterrupted, AuditResult, recheck
from lidp.stats.citations import bibtex
from lidp.stats.method import Method
from lidp.target import Target
from lidp.testing.contract import ContractViolated, require
from lidp.trials.executors import Executor, Serial
from lidp.trials.setup import Setup


class _InterruptedAfter(Executor):
    """An executor that runs some trials with another one, and then interrupts the audit."""

    def __init__(self, executor: Executor, trials: int) -> None:
        self.executor = executor
        self.trials = trials

    def run(self, setup: Setup, indices: Sequence[int]) -> Iterator[list[TrialRecord]]:
        yield from self.executor.run(setup, indices[: self.trials])
        raise KeyboardInterrupt


def check_audit(
    target: Target,
    *,
    claim: Claim,
    design: Design | None = None,
    trials: int = 40,
    method: Method | None = None,
    executor: Executor | None = None,
) -> AuditResult:
    """Audit a target with a store; interrupt, resume, read, report, re-check and cite the audit. Return its result.

    Raises:
        ContractViolated: if the result is not that of an undisturbed audit without a store, at any of these steps.
    """
    executor = executor or Serial()
    options: dict[str, Any] = {
        "claim": claim,
        "design": design or CoinFlip(8, claim.neighbours),
        "trials": trials,
        "method": method,
        "stop_when": "never",
    }
    expected = audit(target, **options)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "audit.db"
        try:
            audit(target, store=store, executor=_InterruptedAfter(executor, trials // 2), **options)
        except AuditInterrupted:
            pass
        else:
            raise ContractViolated("an audit that was interrupted went on")
        resumed = audit(target, store=store, executor=executor, **options)
        _require_same(resumed, expected, "resumed after an interruption")
        stored = result_of(store)
        _require_same(stored, expected, "read from its store")
        require(plan_of(store).method == expected.method, "the method was read from the store as another one")
        page = write_report(stored, Path(folder) / "audit.html").read_text(encoding="utf-8")
        require(expected.bound.method in page, "the report does not name the method")
    witness = json.loads(json.dumps(expected.witness()))
    require(recheck(witness) == expected.bound, "the witness gives another bound")
    works = bibtex([stored.method])
    require(all(work.bibtex in works for work in expected.method.works), "the works of the method are not cited")
    return resumed


def _require_same(result: AuditResult, expected: AuditResult, when: str) -> None:
    same = replace(result, seconds=0.0) == replace(expected, seconds=0.0)
    require(same, f"the result of the audit, {when}, is not that of an undisturbed audit")

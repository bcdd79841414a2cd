"""What the pytest plugin asserts: a claim, its share of the suite's failure probability, and a failure that explains itself."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lidp._runtime.terminal_text import printable
from lidp.claim import Claim
from lidp.engine.audit_pair import audit_pair
from lidp.errors import InvalidArgument
from lidp.report.assertions import ERROR, AssertionRow
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, claimed

_FIRST_CALL = 0.9
"""Of a test's share of the failure probability; most tests assert once."""
_RERUN = "\n  rerun    an earlier attempt at this test refuted the claim; a rerun gets no other chance"


class NotPrivate(AssertionError):
    """A claim was refuted."""

    def __init__(self, result: AuditResult, witness: str, session_seed: int, *, rerun: bool = False) -> None:
        self.result = result
        self.witness = witness
        self.session_seed = session_seed
        bound, claim = result.bound, result.claim
        broken = f"is not {claim}" if bound.curve is None else f"does not have {claim}"
        excess = "" if bound.curve is not None else f", more than the {claimed(claim.epsilon, bound.epsilon)} claimed"
        lines = (
            f"{result.target} {broken}\n"
            f"  bound    {_describe_bound(result)}{excess}\n"
            f"  runs     {bound.trials:,} of {result.planned_trials:,}; a true claim would fail here with probability "
            f"{bound.failure_probability:.2g}\n"
            f"  leak     {result.leak}\n"
            f"  seed     {result.seed}; pytest --dp-seed={session_seed} repeats the session\n"
            f"  witness  {witness}"
        )
        super().__init__(printable(lines) + (_RERUN if rerun else ""))

    def repeated(self) -> NotPrivate:
        """Return the failure of a rerun."""
        return NotPrivate(self.result, self.witness, self.session_seed, rerun=True)


def _describe_bound(result: AuditResult) -> str:
    bound, claim = result.bound, result.claim
    if bound.curve is not None:
        return bound.describe_noise()
    return f"ε ≥ {at_least(bound.epsilon, above=claim.epsilon)}"


def _claim(epsilon: float | None, delta: float | None, claim: Claim | None) -> Claim:
    """Return the claim that an assertion states, either by ε and δ or as a claim."""
    if claim is None and epsilon is not None:
        return Claim(epsilon, 0.0 if delta is None else delta)
    if claim is None or epsilon is not None or delta is not None:
        raise InvalidArgument("give epsilon and delta, or a claim such as Claim.gaussian(mu=1), but not both")
    return claim


def share_of_call(call: int) -> float:
    """The share of a test's failure probability that its call number ``call`` (from 1) may use; they add up to 1, however many."""
    return _FIRST_CALL if call == 1 else (1 - _FIRST_CALL) / (call * (call - 1))


@dataclass
class _History:
    """What all attempts at a test have asserted: the number of calls, refutations by position in an attempt, and rows."""

    calls: int = 0
    refuted: dict[int, NotPrivate] = field(default_factory=dict)
    rows: list[AssertionRow] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_call(self) -> int:
        """Return the number of a new call, which no other thread gets."""
        with self.lock:
            self.calls += 1
            return self.calls


@dataclass
class Suite:
    """The assertions of a session: they split one failure probability among them.

    Guarantee: if all claims are true, the probability that any assertion of the session fails is at most
    ``failure_probability``, however often each of the ``tests`` asserts and however often it is run again: calls of all attempts
    at a test share what is reserved for the test. A refuted assertion stays refuted when its test is run again. Other tests, and
    tests of which an attempt in a lost process may have asserted, are refused.
    """

    failure_probability: float
    tests: Collection[str]
    """the names of the tests that share it, as often as they are selected"""
    seed: int
    scale: float
    witnesses: Path
    _histories: dict[str, _History] = field(default_factory=dict)

    def asserting(self, test: str, *, lost_attempts: int = 0) -> Attempt:
        """Return the function that a test calls in one attempt at it; other processes have lost so many attempts."""
        if test not in self.tests:
            raise InvalidArgument(
                f"{test} was not counted when the failure probability was split; name assert_private among its arguments"
            )
        if lost_attempts:
            raise InvalidArgument(
                f"an earlier attempt at {test} was lost with its process, and with it how much of the failure probability it used; "
                "run the session again"
            )
        return Attempt(self, test, self._histories.setdefault(test, _History()))

    def skipped(self, test: str) -> str:
        """Return the failure of an attempt that skipped a test before it could assert; empty if no earlier one refuted a claim."""
        for position in self._histories.get(test, _History()).refuted:
            try:
                self.asserting(test).fail_again(position)
            except NotPrivate as failure:
                return str(failure)
        return ""

    def rows(self, test: str) -> list[AssertionRow]:
        """Return the assertions of a test so far, those of all attempts."""
        return list(self._histories.get(test, _History()).rows)

    def probability(self, call: int) -> float:
        """Return the failure probability of a test's call number ``call``, counted over all attempts."""
        return self.failure_probability / len(self.tests) * share_of_call(call)

    def seed_of(self, test: str, call: int) -> int:
        """Return the seed of a call."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{test}/{call}".encode()).digest()[:6], "big")

    def keep_witness(self, test: str, call: int, result: AuditResult) -> str:
        """Write a witness, and say where; that it cannot be written must not hide the failure."""
        own = hashlib.sha256(test.encode()).hexdigest()[:8]  # names of tests may be long, or differ in odd characters only
        path = self.witnesses / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', test)[-100:]}-{own}-{call}.json"
        try:
            self.witnesses.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result.witness(), allow_nan=False) + "\n", encoding="utf-8")
        except OSError as error:
            return f"could not be written to {path}: {error.strerror}"
        return f"lidp witness {path} checks it again"


class Attempt:
    """``assert_private`` in one attempt at a test."""

    def __init__(self, suite: Suite, test: str, history: _History) -> None:
        self._suite = suite
        self._test = test
        self._history = history
        self._position = 0

    def __call__(
        self,
        mechanism: Any,
        d0: Any = None,
        d1: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        claim: Claim | None = None,
        runs: int = 50_000,
        **options: Any,
    ) -> AuditResult:
        """Fail if the mechanism is shown not to be (epsilon, delta)-DP, or not to have the privacy curve of ``claim``.

        Other options are those of ``lidp.audit_pair``. What an earlier attempt at the test refuted fails again, without new runs.
        """
        __tracebackhide__ = True  # a failure points at the test, not in here
        fixed = {"failure_probability", "seed", "stop_when"} & set(options)
        if fixed:
            raise InvalidArgument(f"{sorted(fixed)[0]} is set by the session; see pytest --help for --dp-...")
        with self._history.lock:  # a test may assert in several threads
            self._position += 1
            position = self._position
        self.fail_again(position)
        call = self._history.begin_call()
        stated = _claim(epsilon, delta, claim)
        scaled = max(1, round(runs * self._suite.scale))
        given = {"mechanism": mechanism, "d0": d0, "d1": d1, "claim": stated, "runs": scaled, "watch": None}
        return self._judge(self._audit(given | options, call), call, position)

    def finish(self) -> None:
        """End the attempt; fail if it did not reach an assertion that an earlier attempt refuted."""
        __tracebackhide__ = True
        for position in self._history.refuted:
            if position > self._position:
                self.fail_again(position)

    def fail_again(self, position: int) -> None:
        """Fail if an earlier attempt refuted the claim at this position."""
        __tracebackhide__ = True
        earlier = self._history.refuted.get(position)
        if earlier is not None:
            failure = earlier.repeated()
            self._history.rows.append(_row(self._test, position, earlier.result, str(failure), repeats=True))
            raise failure

    def _audit(self, arguments: dict[str, Any], call: int) -> AuditResult:
        __tracebackhide__ = True
        beta, seed = self._suite.probability(call), self._suite.seed_of(self._test, call)
        try:
            return audit_pair(**arguments, failure_probability=beta, seed=seed)
        except Exception as error:  # a claim that was not judged is listed as such
            mechanism, claim, runs = (arguments[name] for name in ("mechanism", "claim", "runs"))
            name = getattr(mechanism, "__name__", type(mechanism).__name__)
            text = f"{type(error).__name__}: {error}"
            self._history.rows.append(
                AssertionRow(self._test, call, name, str(claim), ERROR, "", 0, runs, beta, seed, text)
            )
            raise

    def _judge(self, result: AuditResult, call: int, position: int) -> AuditResult:
        __tracebackhide__ = True
        suite, history = self._suite, self._history
        if result.verdict is Verdict.INCONCLUSIVE:
            message = (
                f"{result.planned_trials:,} runs cannot refute any mechanism at failure probability "
                f"{result.bound.failure_probability:.2g}, so this assertion could never fail; raise runs"
            )
            history.rows.append(_row(self._test, call, result, message))
            raise InvalidArgument(message)
        if result.verdict is Verdict.REFUTED:
            failure = NotPrivate(result, suite.keep_witness(self._test, call, result), suite.seed)
            history.refuted[position] = failure
            history.rows.append(_row(self._test, call, result, str(failure)))
            raise failure
        history.rows.append(_row(self._test, call, result, ""))
        return result


def _row(test: str, call: int, result: AuditResult, explanation: str, *, repeats: bool = False) -> AssertionRow:
    """Return the row of a judged assertion; a repetition has no runs and no failure probability of its own."""
    return AssertionRow(
        test=test,
        call=call,
        mechanism=result.target,
        claim=str(result.claim),
        verdict=str(result.verdict),
        bound=_describe_bound(result),
        runs=0 if repeats else result.bound.trials + result.preparation_models,
        planned=result.planned_trials,
        failure_probability=0.0 if repeats else result.bound.failure_probability,
        seed=result.seed,
        explanation=explanation,
        repeats=repeats,
    )

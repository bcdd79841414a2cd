"""What the pytest plugin asserts: a claim, its share of the suite's failure probability, and a failure that explains itself."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lidp.claim import Claim
from lidp.engine.audit_pair import audit_pair
from lidp.errors import InvalidArgument
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, claimed

_FIRST_CALL = 0.9
"""Of a test's share of the failure probability; most tests assert once."""


class NotPrivate(AssertionError):
    """A claim was refuted."""

    def __init__(self, result: AuditResult, witness: str, session_seed: int) -> None:
        self.result = result
        bound, claim = result.bound, result.claim
        if bound.curve is None:
            stated = claimed(claim.epsilon, bound.epsilon)
            shown = f"ε ≥ {at_least(bound.epsilon, above=claim.epsilon)}, more than the {stated} claimed"
            broken = f"{result.target} is not {claim}"
        else:
            shown = bound.describe_noise()
            broken = f"{result.target} does not have {claim}"
        super().__init__(
            f"{broken}\n"
            f"  bound    {shown}\n"
            f"  runs     {bound.trials:,} of {result.planned_trials:,}; a true claim would fail here with probability "
            f"{bound.failure_probability:.2g}\n"
            f"  leak     {result.leak}\n"
            f"  seed     {result.seed}; pytest --dp-seed={session_seed} repeats the session\n"
            f"  witness  {witness}"
        )


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
class Suite:
    """The assertions of a session: they split one failure probability among them.

    Guarantee: if all claims are true, the probability that any assertion of the session fails is at most
    ``failure_probability``, however often each of the ``tests`` asserts. Others are refused.
    """

    failure_probability: float
    tests: frozenset[str]
    """the names of the tests that share it"""
    seed: int
    scale: float
    witnesses: Path
    assertions: int = 0
    runs: int = 0

    def asserting(self, test: str) -> Callable[..., AuditResult]:
        """The function that a test calls."""
        if test not in self.tests:
            raise InvalidArgument(
                f"{test} was not counted when the failure probability was split; name assert_private among its arguments"
            )
        calls = 0

        def assert_private(
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

            Other options are those of ``lidp.audit_pair``.
            """
            __tracebackhide__ = True  # a failure points at the test, not in here
            nonlocal calls
            calls += 1
            given = {"failure_probability", "seed", "stop_when"} & set(options)
            if given:
                raise InvalidArgument(f"{sorted(given)[0]} is set by the session; see pytest --help for --dp-...")
            beta = self.failure_probability / len(self.tests) * share_of_call(calls)
            result = audit_pair(
                mechanism,
                d0,
                d1,
                claim=_claim(epsilon, delta, claim),
                runs=max(1, round(runs * self.scale)),
                failure_probability=beta,
                seed=self._seed(test, calls),
                **({"watch": None} | options),
            )
            self.assertions += 1
            self.runs += result.bound.trials + result.preparation_models
            if result.verdict is Verdict.INCONCLUSIVE:
                raise InvalidArgument(
                    f"{result.planned_trials:,} runs cannot refute any mechanism at failure probability {beta:.2g}, "
                    "so this assertion could never fail; raise runs"
                )
            if result.verdict is Verdict.REFUTED:
                raise NotPrivate(result, self._keep(test, calls, result), self.seed)
            return result

        return assert_private

    def _seed(self, test: str, call: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{test}/{call}".encode()).digest()[:6], "big")

    def _keep(self, test: str, call: int, result: AuditResult) -> str:
        """Write a witness, and say where; that it cannot be written must not hide the failure."""
        own = hashlib.sha256(test.encode()).hexdigest()[:8]  # names of tests may be long, or differ in odd characters only
        path = self.witnesses / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', test)[-100:]}-{own}-{call}.json"
        try:
            self.witnesses.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result.witness(), allow_nan=False) + "\n", encoding="utf-8")
        except OSError as error:
            return f"could not be written to {path}: {error.strerror}"
        return f"lidp witness {path} checks it again"

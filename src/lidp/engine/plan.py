"""``AuditPlan``: the settings of an audit, checked before anything runs, and as plain data for its store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lidp import checks
from lidp.claim import Claim
from lidp.designs import Design, PairRuns, design_from_json
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.pair_target import PairTarget
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.method import Method, check_probabilities
from lidp.stats.registry import default_method, from_plain, method_named, to_plain
from lidp.streams import check_seed
from lidp.target import Target, fingerprint
from lidp.trials.scoring import as_trial_score

STOPS = ("refuted", "never")
_MOST_TRIALS = 10**8
_LARGEST_PAIR_EPSILON = 10.0


@dataclass(frozen=True)
class AuditPlan:
    """A checked plan.

    ``trials`` is the budget; ``options`` holds settings of one kind of audit only, as plain data. A plan that was read from a
    store has no target: no code of the target has been loaded.
    """

    target: Target | PairTarget | None
    name: str
    claim: Claim
    design: Design
    trials: int
    method: Method
    failure_probability: float
    seed: int
    stop_when: str
    sequential: bool
    origin: str | None
    fingerprint: str
    facts: Mapping[str, float | str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        *,
        target: Target,
        claim: Claim,
        design: Design,
        trials: int,
        method: Method | str | None,
        failure_probability: float,
        seed: int,
        stop_when: str | None,
        origin: str | None,
    ) -> AuditPlan:
        """Return the plan of an audit with canaries, if its parts fit together."""
        if not isinstance(design, Design) or not design.has_canaries:
            raise InvalidArgument(f"design must be LeaveOneOut, ReplaceOne or CoinFlip, got {design!r}")
        if design.neighbours is not claim.neighbours:
            raise InvalidArgument(
                f"the claim is about {claim.neighbours} neighbours, the design tests {design.neighbours} ones; "
                "a bound for one relation says nothing about the other"
            )
        if target.neighbours not in (None, claim.neighbours):
            raise InvalidArgument(
                f"{target.name} was made for {target.neighbours} neighbours, the claim is about {claim.neighbours} ones; "
                "make the target with the claim that is audited"
            )
        check_probabilities(claim.delta, failure_probability)
        sequential = design.has_coins and as_trial_score(target.score).sequential
        chosen = _choose_method(method, design, sequential, claim)
        return cls(
            target=target,
            name=target.name,
            claim=claim,
            design=design,
            trials=_check_trials(trials),
            method=chosen,
            failure_probability=failure_probability,
            seed=check_seed(seed),
            stop_when=_check_stop(stop_when, chosen),
            sequential=sequential,
            origin=origin,
            fingerprint=fingerprint(target),
            facts=dict(target.facts),
        )

    @classmethod
    def for_pair(
        cls,
        *,
        target: PairTarget,
        claim: Claim,
        runs: int,
        failure_probability: float,
        seed: int,
        stop_when: str,
        origin: str | None,
        options: Mapping[str, Any],
    ) -> AuditPlan:
        """Return the plan of an audit of two data sets."""
        check_probabilities(claim.delta, failure_probability)
        design = PairRuns(runs, claim.neighbours)
        method = CoinWager(log_odds=True, largest=max(_LARGEST_PAIR_EPSILON, 2 * claim.epsilon))
        return cls(
            target=target,
            name=target.name,
            claim=claim,
            design=design,
            trials=design.trials,
            method=method,
            failure_probability=failure_probability,
            seed=check_seed(seed),
            stop_when=_check_stop(stop_when, method),
            sequential=False,
            origin=origin,
            fingerprint=fingerprint(target),
            options=options,
        )

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> AuditPlan:
        """Return the plan that a store was made for; its target is not loaded."""
        return cls(
            target=None,
            name=str(configuration["target"]),
            claim=Claim(**configuration["claim"]),
            design=design_from_json(configuration["design"]),
            trials=_check_trials(configuration["trials"]),
            method=_method_of(configuration["method"]),
            failure_probability=checks.probability(failure_probability=configuration["failure_probability"]),
            seed=check_seed(configuration["seed"]),
            stop_when=checks.one_of(STOPS, stop_when=configuration["stop_when"]),
            sequential=bool(configuration["sequential"]),
            origin=None if configuration["origin"] is None else str(configuration["origin"]),
            fingerprint=str(configuration["fingerprint"]),
            facts=dict(configuration.get("facts", {})),
            options=dict(configuration.get("options", {})),
        )

    @property
    def rows(self) -> int:
        """The number of rows of scores of the whole budget."""
        return self.design.rows(self.trials)

    @property
    def configuration(self) -> dict[str, Any]:
        """The plan as plain data: all of it must be the same to resume the audit."""
        required = {
            "target": self.name,
            "claim": {**asdict(self.claim), "neighbours": str(self.claim.neighbours)},
            "design": self.design.to_json(),
            "trials": self.trials,
            "method": to_plain(self.method),
            "failure_probability": self.failure_probability,
            "seed": self.seed,
            "stop_when": self.stop_when,
            "sequential": self.sequential,
            "origin": self.origin,
            "fingerprint": self.fingerprint,
        }
        optional = {"facts": dict(self.facts), "options": dict(self.options)}
        return required | {name: value for name, value in optional.items() if value}


def _choose_method(method: Method | str | None, design: Design, sequential: bool, claim: Claim) -> Method:
    probe = _probe(design, sequential)
    usual = default_method(probe, claim.epsilon)
    chosen = method or usual
    if isinstance(chosen, str):
        chosen = usual if usual.name == method else method_named(chosen)()
    largest = getattr(chosen, "largest", math.inf)
    if largest <= claim.epsilon:
        raise InvalidArgument(
            f"{chosen.name} gives bounds up to ε = {largest:g} only, so a claim of {claim.epsilon:g} could never "
            f"be refuted; set largest={2 * claim.epsilon:g}"
        )
    chosen.check(probe)
    return chosen


def _check_stop(stop_when: str | None, method: Method) -> str:
    stop = checks.one_of(STOPS, stop_when=stop_when or ("refuted" if method.anytime else "never"))
    if stop == "refuted" and not method.anytime:
        raise MethodNotApplicable(
            f"{method.name} is not anytime-valid: stopping when it looks good breaks its guarantee; use stop_when='never'"
        )
    return stop


def _check_trials(trials: Any) -> int:
    number = checks.count(trials=trials)
    if number > _MOST_TRIALS:
        raise InvalidArgument(f"trials must be at most {_MOST_TRIALS:,}, got {number:,}")
    return number


def _method_of(plain: Any) -> Method:
    method = from_plain(plain)
    if not isinstance(method, Method):
        raise InvalidArgument(f"method must be one of lidp's, got {plain!r}")
    return method


def _probe(design: Design, sequential: bool) -> Scores:
    """Return scores of the shape of a design, with which a method checks whether it applies."""
    arrays = {name: np.asarray(array) for name, array in design.perfect_arrays(1).items() if name != "neighbours"}
    return Scores.of_block(**arrays, neighbours=design.neighbours, sequential=sequential)

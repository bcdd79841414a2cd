"""``AuditPlan``: the settings of an audit, checked before anything runs, and as plain data for its store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.designs import Design, PairRuns, check_canary_design, design_from_json
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.stats.coin_wager import CoinWager
from lidp.stats.curve_wager import CurveWager
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method, check_probabilities
from lidp.stats.registry import canary_by_canary, check_name, default_method, make_method, method_named
from lidp.stats.storable import Storable, from_plain, to_plain
from lidp.streams import check_seed
from lidp.target import PairTarget, Target
from lidp.target_spec import TargetSpec
from lidp.target_spec.fingerprint import fingerprint
from lidp.trials.scoring import as_trial_score, watches

STOPS = ("refuted", "never")
_MOST_TRIALS = 10**8
_LARGEST_PAIR_EPSILON = 10.0
_CURVE_METHODS = (CurveWager.name, LiftedBetting.name)
"""Names of methods that test a target's own curve although only a point of it is claimed; the default method does so too."""


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
    target_spec: TargetSpec | None
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
        target_spec: TargetSpec | None,
        independent_canaries: bool = False,
    ) -> AuditPlan:
        """Return the plan of an audit with canaries, if its parts fit together."""
        check_canary_design(design)
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
        if target.curve is not None and claim.curve is None and (method is None or method in _CURVE_METHODS):
            claim = claim.with_curve(target.curve)
        if watches(target.score) and not design.has_coins:
            raise InvalidArgument(f"scores of all steps need coin-flip canaries, got {design}; use the design CoinFlip")
        sequential = design.has_coins and as_trial_score(target.score).sequential
        chosen = _choose_method(method, design, sequential, claim)
        if independent_canaries:
            chosen = canary_by_canary(chosen)
        if chosen.assumes_independent_canaries and target.interference is not None:
            raise InvalidArgument(f"the canaries of one run are not independent: {target.interference}")
        return cls(
            target=target,
            name=target.name,
            claim=claim,
            design=design,
            trials=check_trials(trials),
            method=chosen,
            failure_probability=failure_probability,
            seed=check_seed(seed),
            stop_when=_check_stop(stop_when, chosen),
            sequential=sequential,
            target_spec=target_spec,
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
        target_spec: TargetSpec | None,
        options: Mapping[str, Any],
    ) -> AuditPlan:
        """Return the plan of an audit of two data sets."""
        check_probabilities(claim.delta, failure_probability)
        design = PairRuns(runs, claim.neighbours)
        method: Method = (
            CoinWager(log_odds=True, largest=max(_LARGEST_PAIR_EPSILON, 2 * claim.epsilon))
            if claim.curve is None
            else CurveWager(claim.curve, log_odds=True)
        )
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
            target_spec=target_spec,
            fingerprint=fingerprint(target),
            options=options,
        )

    @classmethod
    def of(cls, configuration: Mapping[str, Any], *, methods: Iterable[type[Storable]] = ()) -> AuditPlan:
        """Return the plan that a store was made for; its target is not loaded, and no module is imported.

        ``methods`` are classes of a user's own that the store may name: see :func:`lidp.stats.storable.from_plain`.
        """
        spec = configuration["target_spec"]
        plan = cls(
            target=None,
            name=str(configuration["target"]),
            claim=Claim(**configuration["claim"]),
            design=design_from_json(configuration["design"]),
            trials=check_trials(configuration["trials"]),
            method=_method_of(configuration["method"], methods),
            failure_probability=checks.probability(failure_probability=configuration["failure_probability"]),
            seed=check_seed(configuration["seed"]),
            stop_when=checks.one_of(STOPS, stop_when=configuration["stop_when"]),
            sequential=bool(configuration["sequential"]),
            target_spec=None if spec is None else TargetSpec.from_dict(spec),
            fingerprint=str(configuration["fingerprint"]),
            facts=dict(configuration.get("facts", {})),
            options=dict(configuration.get("options", {})),
        )
        if plan.trials != plan.design.trials_of(plan.trials):
            raise InvalidArgument(
                f"trials must be {plan.design.trials_of(plan.trials):,} for {plan.design}, got {plan.trials:,}"
            )
        return plan

    @property
    def rows(self) -> int:
        """The number of rows of scores of the whole budget."""
        return self.design.rows(self.trials)

    @property
    def configuration(self) -> dict[str, Any]:
        """The plan as plain data: all of it must be the same to resume the audit."""
        required = {
            "target": self.name,
            "claim": self.claim.to_dict(),
            "design": self.design.to_json(),
            "trials": self.trials,
            "method": to_plain(self.method),
            "failure_probability": self.failure_probability,
            "seed": self.seed,
            "stop_when": self.stop_when,
            "sequential": self.sequential,
            "target_spec": None if self.target_spec is None else self.target_spec.to_dict(),
            "fingerprint": self.fingerprint,
        }
        optional = {"facts": dict(self.facts), "options": dict(self.options)}
        return required | {name: value for name, value in optional.items() if value}


def _choose_method(method: Method | str | None, design: Design, sequential: bool, claim: Claim) -> Method:
    usual = default_method(design, claim)
    chosen = method or usual
    if isinstance(chosen, str):
        chosen = usual if usual.name == method else make_method(method_named(chosen), claim)
    largest = getattr(chosen, "largest", math.inf) if getattr(chosen, "curve", None) is None else math.inf
    if largest <= claim.epsilon:
        raise InvalidArgument(
            f"{chosen.name} gives bounds up to ε = {largest:g} only, so a claim of {claim.epsilon:g} could never "
            f"be refuted; set largest={2 * claim.epsilon:g}"
        )
    tested = getattr(chosen, "curve", None)
    if tested is not None and tested != claim.curve:
        raise InvalidArgument(f"{chosen.name} tests {tested}, but the claim is {claim}; give the method the claimed curve")
    check_name(chosen)
    chosen.check(design, sequential=sequential)
    return chosen


def _check_stop(stop_when: str | None, method: Method) -> str:
    stop = checks.one_of(STOPS, stop_when=stop_when or ("refuted" if method.anytime else "never"))
    if stop == "refuted" and not method.anytime:
        raise MethodNotApplicable(
            f"{method.name} is not anytime-valid: stopping when it looks good breaks its guarantee; use stop_when='never'"
        )
    return stop


def check_trials(trials: Any) -> int:
    """Return a number of trials, if it is one."""
    number = checks.count(trials=trials)
    if number > _MOST_TRIALS:
        raise InvalidArgument(f"trials must be at most {_MOST_TRIALS:,}, got {number:,}")
    return number


def _method_of(plain: Any, methods: Iterable[type[Storable]]) -> Method:
    method = from_plain(plain, classes=methods)
    if not isinstance(method, Method):
        raise InvalidArgument(f"{plain!r} describes no method")
    check_name(method)
    return method

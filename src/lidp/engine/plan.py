"""``AuditPlan``: what an audit is to do, checked before anything runs, and as plain data for its store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.claim import Claim
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.fingerprints import fingerprint
from lidp.scores import Scores
from lidp.stats.method import Method, check_probabilities
from lidp.stats.registry import default_method, from_plain, method_named, to_plain
from lidp.streams import check_seed
from lidp.target import Target
from lidp.target_spec import TargetSpec
from lidp.trials.scoring import as_trial_score

_FAR = 1e6
STOPS = ("refuted", "never")
_FEW_TRIALS = 1024
_MOST_TRIALS = 10**8


@dataclass(frozen=True)
class AuditPlan:
    """What is to be done, checked."""

    target: Target | None
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
    ) -> AuditPlan:
        if not isinstance(design, (LeaveOneOut, ReplaceOne, CoinFlip)):
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
        sequential = as_trial_score(target.score).sequential and isinstance(design, CoinFlip)
        probe = _probe(design, sequential)
        chosen = method or default_method(probe, claim.epsilon)
        if isinstance(chosen, str):
            usual = default_method(probe, claim.epsilon)
            chosen = usual if usual.name == method else method_named(chosen)()
        largest = getattr(chosen, "largest", math.inf)
        if largest <= claim.epsilon:
            raise InvalidArgument(
                f"{chosen.name} looks no further than ε = {largest:g}, so that a claim of {claim.epsilon:g} could never "
                f"be refuted; set largest={2 * claim.epsilon:g}"
            )
        chosen.check(probe)
        stop = stop_when or ("refuted" if chosen.anytime else "never")
        checks.one_of(STOPS, stop_when=stop)
        if stop == "refuted" and not chosen.anytime:
            raise MethodNotApplicable(
                f"{chosen.name} is not anytime-valid: stopping when it looks good breaks its guarantee; use stop_when='never'"
            )
        return cls(
            target=target,
            name=target.name,
            claim=claim,
            design=design,
            trials=_trials(trials),
            method=chosen,
            failure_probability=failure_probability,
            seed=check_seed(seed),
            stop_when=stop,
            sequential=sequential,
            target_spec=target_spec,
            fingerprint=fingerprint(target),
            facts=dict(target.facts),
        )

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> AuditPlan:
        """The plan that a store was made for; its target is not loaded."""
        kinds = {"LeaveOneOut": LeaveOneOut, "ReplaceOne": ReplaceOne, "CoinFlip": CoinFlip}
        design, spec = dict(configuration["design"]), configuration["target_spec"]
        return cls(
            target=None,
            name=str(configuration["target"]),
            claim=Claim(**configuration["claim"]),
            design=kinds[design.pop("kind")](**design),
            trials=_trials(configuration["trials"]),
            method=_method_of(configuration["method"]),
            failure_probability=checks.probability(failure_probability=configuration["failure_probability"]),
            seed=check_seed(configuration["seed"]),
            stop_when=checks.one_of(STOPS, stop_when=configuration["stop_when"]),
            sequential=bool(configuration["sequential"]),
            target_spec=None if spec is None else TargetSpec.from_dict(spec),
            fingerprint=str(configuration["fingerprint"]),
            facts=dict(configuration.get("facts", {})),
        )

    @property
    def configuration(self) -> dict[str, Any]:
        """What must be the same to resume."""
        design = {name: str(value) if name == "neighbours" else value for name, value in asdict(self.design).items()}
        return {
            "target": self.name,
            "claim": {**asdict(self.claim), "neighbours": str(self.claim.neighbours)},
            "design": {"kind": type(self.design).__name__, **design},
            "trials": self.trials,
            "method": to_plain(self.method),
            "failure_probability": self.failure_probability,
            "seed": self.seed,
            "stop_when": self.stop_when,
            "sequential": self.sequential,
            "target_spec": None if self.target_spec is None else self.target_spec.to_dict(),
            "fingerprint": self.fingerprint,
        } | ({"facts": dict(self.facts)} if self.facts else {})


def _trials(trials: Any) -> int:
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
    """Scores of the design's shape, to ask a method whether it covers it."""
    if isinstance(design, CoinFlip):
        zeros = np.zeros((1, design.canaries))
        coins = _flips(1, design.canaries)
        return Scores.of_block(scores=zeros, coins=coins, neighbours=design.neighbours, sequential=sequential)
    zeros = np.zeros((1, design.canaries))
    return Scores(inserted=zeros, held_out=np.zeros((1, design.held_out)), neighbours=design.neighbours)


def _flips(trials: int, canaries: int) -> NDArray[np.int64]:
    """Coins to try a method on."""
    return np.random.default_rng(0).integers(0, 2, (trials, canaries))


def could_refute(plan: AuditPlan, scores: Scores) -> bool:
    """Whether a mechanism that gives every canary away, where it does not fail, would be refuted with so many trials."""
    if plan.method.anytime and scores.trials > _FEW_TRIALS and could_refute(plan, scores[:_FEW_TRIALS]):
        return True  # and a claim that has fallen stays fallen
    trials, failed = scores.trials, scores.failed
    design = plan.design
    if isinstance(design, CoinFlip):
        coins = _flips(trials, design.canaries)
        # Far to either side of any threshold, and of any prediction.
        telling = _FAR * (2.0 * coins - 1.0)
        perfect = Scores.of_block(
            scores=telling, coins=coins, neighbours=design.neighbours, sequential=plan.sequential, failed=failed
        )
    else:
        inserted, held_out = (np.full((trials, size), _FAR) for size in (design.canaries, design.held_out))
        perfect = Scores(inserted=inserted, held_out=-held_out, neighbours=design.neighbours, failed=failed)
    try:
        best = plan.method.bound(perfect, delta=plan.claim.delta, failure_probability=plan.failure_probability)
    except MethodNotApplicable:  # too few trials to split, say
        return False
    return best.refutes(plan.claim)

"""Plans for tests of the ledger; their targets are never run."""

from lidp import Claim
from lidp.designs import CoinFlip
from lidp.engine.plan import AuditPlan
from lidp.engine.scorer import CanaryScorer
from lidp.target import PairTarget
from tests.designs.records import SEED
from tests.sample_targets import LEAKY, claim_for, leaky


def canary_plan(design=None, *, trials=12, stop_when="never", method=None):
    """Return a plan with canaries."""
    design = design or CoinFlip(6)
    return AuditPlan.make(
        target=LEAKY,
        claim=claim_for(design),
        design=design,
        trials=trials,
        method=method,
        failure_probability=0.05,
        seed=SEED,
        stop_when=stop_when,
        target_spec=None,
    )


def pair_plan(runs=500, *, stop_when="never"):
    """Return a plan for two data sets."""
    return AuditPlan.for_pair(
        target=PairTarget(leaky, [0.0], [1.0]),
        claim=Claim(1.0),
        runs=runs,
        failure_probability=0.05,
        seed=SEED,
        stop_when=stop_when,
        target_spec=None,
        options={},
    )


def canary_scorer(plan):
    """Return a scorer for a plan with canaries."""
    return CanaryScorer(plan.design, sequential=plan.sequential)

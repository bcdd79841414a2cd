"""lidp: rigorous lower bounds on the ε of differentially private mechanisms and training.

With scores at hand, start with :class:`Scores` and :func:`bound`; with a mechanism, with :class:`Target` and :func:`audit`.

    >>> import lidp
    >>> scores = lidp.Scores(scores=[[0.1, 2.3, -0.4]], coins=[[0, 1, 0]])
    >>> print(lidp.bound(scores, delta=1e-5).epsilon)
    0.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lidp.claim import Claim, Direction, Neighbours
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve, PrivacyCurve, ZeroConcentratedCurve
from lidp.designs import CoinFlip, Design, LeaveOneOut, PairRuns, ReplaceOne
from lidp.epsilon_bound import EpsilonBound, Guarantee, Hypothesis
from lidp.errors import (
    AuditFailed,
    ClassNotImported,
    InvalidArgument,
    InvalidScores,
    LidpError,
    MethodNotApplicable,
    StoreError,
)
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.citations import Work
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.coin_wager import CoinWager
from lidp.stats.curve_wager import CurveWager
from lidp.stats.curve_wager_with_guesses import CurveWagerWithGuesses
from lidp.stats.gaussian_dp import GaussianDP
from lidp.stats.jeffreys import Jeffreys
from lidp.stats.joint_beta import JointBeta
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import AnytimeMethod, Method
from lidp.stats.one_run import OneRun, RankGuesses
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.planned_guesses import PlannedGuesses
from lidp.stats.registry import METHODS, applicable, bound
from lidp.stats.signed_ranks import SignedRanks
from lidp.stats.thresholds import (
    CentralGrid,
    FixedThreshold,
    SplitThreshold,
    TailQuantiles,
    ThresholdStrategy,
    UnionThreshold,
)
from lidp.stats.wilson import Wilson

if TYPE_CHECKING:
    from lidp.canaries import CanaryDistribution
    from lidp.canaries.sphere import UniformSphere
    from lidp.diagnosis import Diagnosis, diagnose
    from lidp.engine.audit import audit, result_of
    from lidp.engine.audit_pair import audit_pair
    from lidp.engine.progress import Progress
    from lidp.planner import BudgetPlan, plan
    from lidp.report.page import write_report
    from lidp.report.plots import Plots
    from lidp.result import AuditInterrupted, AuditResult, Verdict, recheck
    from lidp.target import Output, PairTarget, Prepared, Target
    from lidp.target_spec import TargetSpec
    from lidp.trials.scoring import Decorrelated, SelfNormalised

__version__ = "0.1.0"

# What runs audits is imported on first use: those who only have scores do not wait for it.
_LAZY = {
    "AuditInterrupted": "lidp.result",
    "AuditResult": "lidp.result",
    "BudgetPlan": "lidp.planner",
    "CanaryDistribution": "lidp.canaries",
    "Decorrelated": "lidp.trials.scoring",
    "Diagnosis": "lidp.diagnosis",
    "Output": "lidp.target",
    "PairTarget": "lidp.target",
    "Plots": "lidp.report.plots",
    "Prepared": "lidp.target",
    "Progress": "lidp.engine.progress",
    "SelfNormalised": "lidp.trials.scoring",
    "Target": "lidp.target",
    "TargetSpec": "lidp.target_spec",
    "UniformSphere": "lidp.canaries.sphere",
    "Verdict": "lidp.result",
    "audit": "lidp.engine.audit",
    "audit_pair": "lidp.engine.audit_pair",
    "diagnose": "lidp.diagnosis",
    "plan": "lidp.planner",
    "recheck": "lidp.result",
    "result_of": "lidp.engine.audit",
    "write_report": "lidp.report.page",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'lidp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "METHODS",
    "AnytimeMethod",
    "AuditFailed",
    "AuditInterrupted",
    "AuditResult",
    "Bernstein",
    "BudgetPlan",
    "CanaryDistribution",
    "CentralGrid",
    "Claim",
    "ClassNotImported",
    "ClopperPearson",
    "CoinFlip",
    "CoinWager",
    "CurveWager",
    "CurveWagerWithGuesses",
    "Decorrelated",
    "Design",
    "Diagnosis",
    "Direction",
    "EpsilonBound",
    "EventCurve",
    "FixedThreshold",
    "GaussianCurve",
    "GaussianDP",
    "Guarantee",
    "Hypothesis",
    "InvalidArgument",
    "InvalidScores",
    "Jeffreys",
    "JointBeta",
    "LaplaceCurve",
    "LeaveOneOut",
    "LidpError",
    "LiftedBetting",
    "Method",
    "MethodNotApplicable",
    "Neighbours",
    "OneRun",
    "OneRunFDP",
    "Output",
    "PairRuns",
    "PairTarget",
    "PlannedGuesses",
    "Plots",
    "PointCurve",
    "Prepared",
    "PrivacyCurve",
    "Progress",
    "RankGuesses",
    "ReplaceOne",
    "Scores",
    "SelfNormalised",
    "SignedRanks",
    "SplitThreshold",
    "StoreError",
    "TailQuantiles",
    "Target",
    "TargetSpec",
    "ThresholdStrategy",
    "UniformSphere",
    "UnionThreshold",
    "Verdict",
    "Wilson",
    "Work",
    "ZeroConcentratedCurve",
    "__version__",
    "applicable",
    "audit",
    "audit_pair",
    "bound",
    "diagnose",
    "plan",
    "recheck",
    "result_of",
    "write_report",
]

"""lidp: rigorous lower bounds on the ε of differentially private mechanisms and training.

With scores at hand, start with :class:`Scores` and :func:`bound`; with a mechanism, with :class:`Target` and :func:`audit`.

    >>> import lidp
    >>> scores = lidp.Scores(scores=[[0.1, 2.3, -0.4]], coins=[[0, 1, 0]])
    >>> print(lidp.bound(scores, delta=1e-5).epsilon)
    0.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lidp.canaries import CanaryDistribution
    from lidp.canaries.sphere import UniformSphere
    from lidp.claim import Claim, Direction, Neighbours
    from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve, PointCurve, PrivacyCurve, ZeroConcentratedCurve
    from lidp.designs import CoinFlip, Design, LeaveOneOut, PairRuns, ReplaceOne
    from lidp.diagnosis import Diagnosis, diagnose
    from lidp.engine.audit import audit, result_of
    from lidp.engine.audit_pair import audit_pair
    from lidp.engine.progress import Progress
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
    from lidp.planner import BudgetPlan, plan
    from lidp.report.page import write_report
    from lidp.report.plots import Plots
    from lidp.result import AuditInterrupted, AuditResult, Verdict, recheck
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
    from lidp.target import Output, PairTarget, Prepared, Target
    from lidp.target_spec import TargetSpec
    from lidp.trials.scoring import Decorrelated, SelfNormalised

__version__ = "0.1.0"

# Every name is imported on first use: neither the command's help nor those who only have scores wait for what runs audits.
_HOMES = {
    "lidp.canaries": "CanaryDistribution",
    "lidp.canaries.sphere": "UniformSphere",
    "lidp.claim": "Claim Direction Neighbours",
    "lidp.curves": "EventCurve GaussianCurve LaplaceCurve PointCurve PrivacyCurve ZeroConcentratedCurve",
    "lidp.designs": "CoinFlip Design LeaveOneOut PairRuns ReplaceOne",
    "lidp.diagnosis": "Diagnosis diagnose",
    "lidp.engine.audit": "audit result_of",
    "lidp.engine.audit_pair": "audit_pair",
    "lidp.engine.progress": "Progress",
    "lidp.epsilon_bound": "EpsilonBound Guarantee Hypothesis",
    "lidp.errors": "AuditFailed ClassNotImported InvalidArgument InvalidScores LidpError MethodNotApplicable StoreError",
    "lidp.planner": "BudgetPlan plan",
    "lidp.report.page": "write_report",
    "lidp.report.plots": "Plots",
    "lidp.result": "AuditInterrupted AuditResult Verdict recheck",
    "lidp.scores": "Scores",
    "lidp.stats.bernstein": "Bernstein",
    "lidp.stats.citations": "Work",
    "lidp.stats.clopper_pearson": "ClopperPearson",
    "lidp.stats.coin_wager": "CoinWager",
    "lidp.stats.curve_wager": "CurveWager",
    "lidp.stats.curve_wager_with_guesses": "CurveWagerWithGuesses",
    "lidp.stats.gaussian_dp": "GaussianDP",
    "lidp.stats.jeffreys": "Jeffreys",
    "lidp.stats.joint_beta": "JointBeta",
    "lidp.stats.lifted_betting": "LiftedBetting",
    "lidp.stats.method": "AnytimeMethod Method",
    "lidp.stats.one_run": "OneRun RankGuesses",
    "lidp.stats.one_run_fdp": "OneRunFDP",
    "lidp.stats.planned_guesses": "PlannedGuesses",
    "lidp.stats.registry": "METHODS applicable bound",
    "lidp.stats.signed_ranks": "SignedRanks",
    "lidp.stats.thresholds": "CentralGrid FixedThreshold SplitThreshold TailQuantiles ThresholdStrategy UnionThreshold",
    "lidp.stats.wilson": "Wilson",
    "lidp.target": "Output PairTarget Prepared Target",
    "lidp.target_spec": "TargetSpec",
    "lidp.trials.scoring": "Decorrelated SelfNormalised",
}
# So are modules that "import lidp" is expected to make available, as in lidp.errors.StoreError.
_MODULES = ("claim", "curves", "designs", "epsilon_bound", "errors", "scores", "stats", "streams")
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    if name in _MODULES:
        return import_module(f"lidp.{name}")
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

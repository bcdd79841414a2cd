"""lidp: rigorous lower bounds on the ε of differentially private mechanisms and training.

Start with :class:`Scores` and :func:`bound`:

    >>> import lidp
    >>> scores = lidp.Scores(scores=[[0.1, 2.3, -0.4]], coins=[[0, 1, 0]])
    >>> print(lidp.bound(scores, delta=1e-5).epsilon)
    0.0
"""

from lidp.claim import Claim, Direction, Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.errors import InvalidArgument, InvalidScores, LidpError, MethodNotApplicable
from lidp.scores import Scores
from lidp.stats.bernstein import Bernstein
from lidp.stats.clopper_pearson import ClopperPearson
from lidp.stats.coin_wager import CoinWager
from lidp.stats.gaussian_dp import GaussianDP
from lidp.stats.jeffreys import Jeffreys
from lidp.stats.joint_beta import JointBeta
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method
from lidp.stats.one_run import OneRun, RankGuesses
from lidp.stats.one_run_fdp import OneRunFDP
from lidp.stats.registry import METHODS, applicable, bound
from lidp.stats.thresholds import CentralGrid, FixedThreshold, SplitThreshold, TailQuantiles, UnionThreshold
from lidp.stats.wilson import Wilson

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Bernstein",
    "CentralGrid",
    "Claim",
    "ClopperPearson",
    "CoinFlip",
    "CoinWager",
    "Design",
    "Direction",
    "EpsilonBound",
    "FixedThreshold",
    "GaussianDP",
    "Guarantee",
    "InvalidArgument",
    "InvalidScores",
    "Jeffreys",
    "JointBeta",
    "LeaveOneOut",
    "LidpError",
    "LiftedBetting",
    "Method",
    "MethodNotApplicable",
    "Neighbours",
    "OneRun",
    "OneRunFDP",
    "RankGuesses",
    "ReplaceOne",
    "Scores",
    "SplitThreshold",
    "TailQuantiles",
    "UnionThreshold",
    "Wilson",
    "__version__",
    "applicable",
    "bound",
]

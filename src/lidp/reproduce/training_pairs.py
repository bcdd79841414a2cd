"""The data sets and models of the paper's Section 6, at every scale.

``reduced`` keeps the paper's models and batch size and takes fewer records and steps: few enough to train thousands of models
in minutes, and enough that a canary is about as hard to detect as in the paper (a fourth to three fourths of a standard
deviation). Purchases are synthetic there, of ten classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_runs import Schedule


@dataclass(frozen=True)
class Pair:
    """A data set and a model of the paper's Section 6."""

    name: str
    schedules: dict[Scale, Schedule]


FMNIST_LINEAR = Pair(
    "fmnist-linear",
    {
        Scale.SMOKE: Schedule("fmnist-linear", 200, 2, 0.5, 2, 200),
        Scale.REDUCED: Schedule("fmnist-linear", 3_000, 4, 0.5, 32, 1_000),
        Scale.PAPER: Schedule("fmnist-linear", 0, 30, 0.02, 100, 10_000),
    },
)
FMNIST_MLP = Pair(
    "fmnist-mlp",
    {
        Scale.SMOKE: Schedule("fmnist-mlp", 200, 1, 0.5, 2, 200),
        Scale.REDUCED: Schedule("fmnist-mlp", 1_500, 1, 0.2, 32, 500),
        Scale.PAPER: Schedule("fmnist-mlp", 0, 30, 0.01, 100, 10_000),
    },
)
PURCHASES_MLP = Pair(
    "purchases-mlp",
    {
        Scale.SMOKE: Schedule("purchase-mlp", 200, 1, 0.2, 2, 200, classes=10),
        Scale.REDUCED: Schedule("purchase-mlp", 1_500, 1, 0.2, 32, 500, classes=10),
        Scale.PAPER: Schedule("purchase-mlp", 0, 100, 0.05, 100, 5_000),
    },
)

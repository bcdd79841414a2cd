"""The data sets and models of the paper's Section 6, and how they are trained at every scale.

``reduced`` keeps the paper's models and batch size and takes fewer records and steps: few enough to train thousands of models
in minutes, and enough that a canary is about as hard to detect as in the paper (a fourth to three fourths of a standard
deviation). The purchases of ``purchases-mlp`` are synthetic there, of ten classes; those of ``journey-mlp`` never are.
"""

from __future__ import annotations

from dataclasses import dataclass

from lidp.reproduce.experiment import Scale


@dataclass(frozen=True)
class Schedule:
    """Data, model and training of one data set and model of the paper at one scale. Zero records mean all of them."""

    preset: str
    records: int
    epochs: float
    learning_rate: float
    references: int
    """pilot models for canaries that are examples; the paper's reference models"""
    tested: int
    """test examples that the accuracy is measured on"""
    classes: int = 0
    """classes of synthetic purchases; 0 for real data"""
    accountant: str = "rdp"
    """as in the paper"""


SCHEDULES = {
    "fmnist-linear": {
        Scale.SMOKE: Schedule("fmnist-linear", 200, 2, 0.5, 2, 200),
        Scale.REDUCED: Schedule("fmnist-linear", 3_000, 4, 0.5, 32, 1_000),
        Scale.PAPER: Schedule("fmnist-linear", 0, 30, 0.02, 100, 10_000),
    },
    "fmnist-mlp": {
        Scale.SMOKE: Schedule("fmnist-mlp", 200, 1, 0.5, 2, 200),
        Scale.REDUCED: Schedule("fmnist-mlp", 1_500, 1, 0.2, 32, 500),
        Scale.PAPER: Schedule("fmnist-mlp", 0, 30, 0.01, 100, 10_000),
    },
    "purchases-mlp": {
        Scale.SMOKE: Schedule("purchase-mlp", 200, 1, 0.2, 2, 200, classes=10),
        Scale.REDUCED: Schedule("purchase-mlp", 1_500, 1, 0.2, 32, 500, classes=10),
        Scale.PAPER: Schedule("purchase-mlp", 0, 100, 0.05, 100, 5_000),
    },
    "journey-mlp": {
        Scale.SMOKE: Schedule("journey-mlp", 200, 1, 0.2, 2, 200),
        Scale.REDUCED: Schedule("journey-mlp", 1_500, 1, 0.2, 32, 500),
        Scale.PAPER: Schedule("journey-mlp", 0, 100, 0.05, 100, 5_000),
    },
    "cifar10-features": {
        Scale.SMOKE: Schedule("cifar10-features", 200, 1, 0.5, 2, 200),
        Scale.PAPER: Schedule("cifar10-features", 0, 10, 0.5, 100, 10_000),
    },
}
"""By the name of the data set and model, and by scale."""

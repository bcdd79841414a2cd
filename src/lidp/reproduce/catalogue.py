"""List all experiments by name."""

from __future__ import annotations

from lidp.reproduce.binomial_intervals import BinomialIntervals
from lidp.reproduce.experiment import Experiment
from lidp.reproduce.gaussian_canaries import GaussianBiasVariance, GaussianCanaries
from lidp.reproduce.gaussian_correlation import GaussianCorrelation
from lidp.reproduce.gaussian_dimension import GaussianDimension
from lidp.reproduce.gaussian_trials import GaussianTrials
from lidp.reproduce.models_needed import ModelsNeeded
from lidp.reproduce.training_canaries import TrainingCanaries, Utility
from lidp.reproduce.training_trials import SECTION_6_TRIALS, Table1
from lidp.reproduce.training_wagers import Wagers

_ALL: tuple[Experiment, ...] = (
    GaussianTrials(),
    GaussianCanaries(),
    GaussianDimension(),
    GaussianBiasVariance(),
    GaussianCorrelation(),
    ModelsNeeded(),
    BinomialIntervals(),
    Table1(),
    *SECTION_6_TRIALS,
    TrainingCanaries(),
    Utility(),
    Wagers(),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}

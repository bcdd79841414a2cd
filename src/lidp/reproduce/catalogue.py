"""All experiments by name."""

from __future__ import annotations

from lidp.reproduce.binomial_intervals import BinomialIntervals
from lidp.reproduce.experiment import Experiment
from lidp.reproduce.gaussian_canaries import GaussianBiasVariance, GaussianCanaries
from lidp.reproduce.gaussian_correlation import GaussianCorrelation
from lidp.reproduce.gaussian_dimension import GaussianDimension
from lidp.reproduce.gaussian_trials import GaussianTrials
from lidp.reproduce.models_needed import ModelsNeeded

_ALL: tuple[Experiment, ...] = (
    GaussianTrials(),
    GaussianCanaries(),
    GaussianDimension(),
    GaussianBiasVariance(),
    GaussianCorrelation(),
    ModelsNeeded(),
    BinomialIntervals(),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}

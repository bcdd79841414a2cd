"""List all experiments by name."""

from __future__ import annotations

from lidp.reproduce import sweeps
from lidp.reproduce.binomial_intervals import binomial_intervals
from lidp.reproduce.correlation import gaussian_correlation
from lidp.reproduce.experiment import Experiment
from lidp.reproduce.models_needed import models_needed
from lidp.reproduce.training_canaries import fmnist_canaries, utility
from lidp.reproduce.training_replace_one import fmnist_replace_one
from lidp.reproduce.training_transcripts import cifar10_transcripts, fmnist_transcripts
from lidp.reproduce.training_trials import SECTION_6_TRIALS, journey_trials, table_1
from lidp.reproduce.training_wagers import fmnist_wagers

_ALL = (
    sweeps.gaussian_trials,
    sweeps.gaussian_canaries,
    sweeps.gaussian_dimension,
    sweeps.gaussian_bias_variance,
    gaussian_correlation,
    models_needed,
    binomial_intervals,
    table_1,
    *SECTION_6_TRIALS,
    journey_trials,
    fmnist_replace_one,
    fmnist_canaries,
    utility,
    fmnist_wagers,
    fmnist_transcripts,
    cifar10_transcripts,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}

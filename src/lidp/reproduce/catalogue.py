"""All experiments: for each its sources, its table and its findings."""

from __future__ import annotations

from lidp.reproduce import binomial_intervals, correlation, models_needed, sweeps, training_canaries, training_trials
from lidp.reproduce.bias_variance import bias_variance_findings, bias_variance_table
from lidp.reproduce.experiment import Experiment, Source
from lidp.reproduce.training_wagers import FMNIST_WAGERS, wagers_findings, wagers_table


def _trials(source: Source, pair: str) -> Experiment:
    about = f"ε̂ against the number of trials n for trained models, K = 16 against K = 1: {pair}"
    return Experiment(source.name, about, (source,), training_trials.trials_table, training_trials.trials_findings)


_ALL = (
    Experiment(
        "gaussian-trials",
        "ε̂ against the number of trials n, K = √n canaries",
        (sweeps.BY_TRIALS,),
        sweeps.sweep_table,
        sweeps.trials_findings,
    ),
    Experiment(
        "gaussian-canaries",
        "ε̂ against the number of canaries K",
        (sweeps.BY_CANARIES,),
        sweeps.sweep_table,
        sweeps.canaries_findings,
    ),
    Experiment(
        "gaussian-dimension",
        "ε̂ against the dimension d",
        (sweeps.BY_DIMENSION,),
        sweeps.sweep_table,
        sweeps.dimension_findings,
    ),
    Experiment(
        "gaussian-bias-variance",
        "ΔBias(K) = ε̂(K, 1) - ε̂(1, 1) and ΔVar(K, ℓ) = ε̂(K, ℓ) - ε̂(K, 1)",
        (sweeps.BY_CANARIES,),
        bias_variance_table,
        bias_variance_findings,
    ),
    Experiment(
        "gaussian-correlation",
        "|μ̂2 - μ̂1²| and |μ̂4 - μ̂2²| against K and d, with fitted slopes",
        (correlation.CORRELATION,),
        correlation.correlation_table,
        correlation.correlation_findings,
    ),
    Experiment(
        "models-needed",
        "models trained to reach ε̂ = 0.67 and 0.85 at nominal ε = 2, at most 64 canaries, tuning counted",
        (models_needed.MODELS_NEEDED,),
        models_needed.models_table,
        models_needed.models_findings,
    ),
    Experiment(
        "binomial-intervals",
        "expected widths of 95 % intervals for a binomial proportion of 0.1 against n",
        (binomial_intervals.INTERVAL_WIDTHS,),
        binomial_intervals.interval_table,
        binomial_intervals.interval_findings,
    ),
    Experiment(
        "table-1",
        "times fewer trials with K = 16 canaries than with one, for all data sets and models (Table 1)",
        (training_trials.FMNIST_TRIALS, training_trials.FMNIST_MLP_TRIALS, training_trials.PURCHASES_TRIALS),
        training_trials.factors_table,
        training_trials.factor_findings,
    ),
    _trials(training_trials.FMNIST_TRIALS, "fmnist-linear"),
    _trials(training_trials.FMNIST_MLP_TRIALS, "fmnist-mlp"),
    _trials(training_trials.PURCHASES_TRIALS, "purchases-mlp"),
    Experiment(
        "fmnist-canaries",
        "ε̂ against the number of canaries K for trained models: fmnist-linear",
        (training_canaries.FMNIST_CANARIES,),
        training_canaries.canaries_table,
        training_canaries.canaries_findings,
    ),
    Experiment(
        "utility",
        "test accuracy against the number of canaries K: fmnist-linear",
        (training_canaries.FMNIST_CANARIES,),
        training_canaries.utility_table,
        training_canaries.utility_findings,
    ),
    Experiment(
        "fmnist-wagers",
        "ε̂ of the coin wager with 96 and 128 trained models, pilots included: fmnist-linear, gradient canaries",
        (FMNIST_WAGERS,),
        wagers_table,
        wagers_findings,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}

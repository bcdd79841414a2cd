"""Audits of models that train in a fraction of a second and need no data files."""

from lidp.reproduce.experiment import Scale
from lidp.reproduce.training_runs import Run
from lidp.reproduce.training_schedules import SCHEDULES

SCHEDULE = SCHEDULES["purchases-mlp"][Scale.SMOKE]


def make_run(step, canary="random-gradient", canaries=2):
    return Run("purchases-mlp", SCHEDULE, canary, 8.0, canaries, step)

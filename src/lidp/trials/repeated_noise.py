"""Name mechanisms whose noise is the same in every run, such as one that seeds its own generator with a constant.

All runs of an audit then have the same noise, so that they are not independent, or there is no noise at all. Trainings are checked
by their pilot models or first steps, and two data sets by their outputs; these checks end the audit. A target is checked by the
rehearsal here, which only warns: who knows the mechanism may know better.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.user_code import user_code
from lidp._runtime.workers import use_one_core
from lidp.errors import AuditFailed, LidpError
from lidp.streams import Purpose, stream
from lidp.target import Output, with_canaries
from lidp.trials.executor import Executor
from lidp.trials.probe import draws_only_from_rng, show_output
from lidp.trials.scoring import watches
from lidp.trials.trial import TrialSetup

IDENTICAL_PILOTS = (
    "two pilot runs with different seeds gave exactly the same result. Either the trainer ignores its seed, so that all runs would "
    "have the same noise and a true claim could be refuted: use the seed. Or it adds no noise: to audit it anyway, train no pilot "
    "models (pilots=0, --pilots 0)"
)
IDENTICAL_FIRST_STEPS = (
    "two runs with different seeds had exactly the same noise: the loop seeds its generator itself. All runs would have the same "
    "noise, and a true claim could be refuted. Remove that: the audit seeds every run differently"
)

_MOST_RUNS = 64
_FEWEST_RUNS = 3
_SECONDS = 1.0
_PATIENCE = 2.0  # seconds that a process may need besides its runs


def never_varies(name: str, runs: int) -> AuditFailed:
    """Return the error for a mechanism without randomness."""
    return AuditFailed(
        f"{name} returned the same output in {runs:,} runs on each data set, although each run had random numbers "
        "of its own: it does not use the rng that it gets, or adds no noise"
    )


def warn_of_repeated_noise(executor: Executor, setup: Any) -> str:
    """Return a warning if a mechanism gives the same output again and again; empty if it does not, or cannot be told in a second.

    The runs have random numbers of their own and canaries that no trial has, and happen in a process of their own, so they change
    nothing in the trials. Mechanisms with a preparation step are left to it, and those that draw from ``rng`` only are trusted.
    """
    if not isinstance(setup, TrialSetup) or setup.has_preparation or draws_only_from_rng(setup):
        return ""
    limit = _SECONDS + _PATIENCE
    if executor.time_limit is not None:
        limit = min(limit, executor.time_limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that do not like to be forked
            runs = executor.run_work(partial(count_equal_runs, setup), limit)
    except (LidpError, RuntimeError):  # it takes long, dies or fails: the trials record that
        return ""
    if not runs:
        return ""
    return (
        f"{setup.target.name} returned exactly the same output in {runs:,} runs on the same data, although each run had random "
        "numbers of its own: its noise is the same in every run, or it adds none. Runs that share noise are not independent, and "
        "a true claim could be refuted. Draw the noise from rng, and set no seed in the mechanism"
    )


def count_equal_runs(setup: TrialSetup, clock: Callable[[], float] = time.monotonic) -> int:
    """Return how many runs on the same data gave the same output; 0 if one differs, or there are too few to tell."""
    canaries = setup.canaries.draw(np.random.default_rng(0), setup.design.canaries)
    first, start = None, clock()
    with use_one_core():
        for run in range(_MOST_RUNS):
            data = with_canaries(setup.target.dataset, canaries)
            if watches(setup.target.score):
                data = data.watching(canaries)
            # No trial draws from a stream of this purpose, and there is no preparation step.
            rng = stream(setup.seed, trial=run + 1, purpose=Purpose.PREPARATION)
            seed_global_generators(rng)
            with user_code():
                output = setup.target.mechanism(data, rng)
            shown = show_output(output.value if isinstance(output, Output) else output)
            first = first or shown
            if shown is None or first is None or shown.whole != first.whole:
                return 0
            if clock() - start > _SECONDS:
                break
    whole = math.isfinite(float(np.sum(first.numbers))) and not np.any(first.numbers % 1) if first else True
    # Counts and choices repeat by chance, fractions do not.
    return run + 1 if run + 1 >= (_MOST_RUNS if whole else _FEWEST_RUNS) else 0

"""Targets for fault tests, in a module that the processes of an audit can import.

All of them give the scores of ``LEAKY``, so that one undisturbed audit gives the expected result of each.
"""

import os
import sys
import time
from pathlib import Path

from lidp import Target
from tests.sample_targets import Numbers, closeness, leaky

GATE = "LIDP_TEST_GATE"
"""The environment variable with the path of the file for which ``GATED`` waits."""
_RUNS_BEFORE_GATE = 60
_FORK_PROBABILITY = 0.1

calls = [0]


def slow(dataset, rng):
    time.sleep(0.02)
    return leaky(dataset, rng)


def gated(dataset, rng):
    """Like ``slow``; after some runs, wait until a file exists, then be fast."""
    calls[0] += 1
    gate = Path(os.environ[GATE])
    while calls[0] > _RUNS_BEFORE_GATE and not gate.exists():
        time.sleep(0.02)
    if not gate.exists():
        time.sleep(0.02)
    return leaky(dataset, rng)


def _forking(in_child):
    """Return a leaky mechanism that forks in some of its runs and waits for the child."""

    def mechanism(dataset, rng):
        output = leaky(dataset, rng)
        if rng.random() < _FORK_PROBABILITY:
            child = os.fork()
            if not child:
                return in_child(output)
            os.waitpid(child, 0)
        return output

    return mechanism


def _exits(output):
    sys.exit(0)


def _ends(output):
    os._exit(0)


def _raises(output):
    raise RuntimeError("the child has failed")


def _returns(output):
    return output


def _target(mechanism):
    return Target(mechanism, Numbers(), closeness, dataset=[0.5], name="leaky")


LEAKY = _target(leaky)
SLOW = _target(slow)
GATED = _target(gated)
RETURNS = _target(_forking(_returns))
EXITS = _target(_forking(_exits))
ENDS = _target(_forking(_ends))
RAISES = _target(_forking(_raises))

"""Targets for the faults; in a module of their own, so that the processes of an audit can import them.

All of them give the scores of ``LEAKY``, whatever else they do, so that one audit in peace says what each must find.
"""

import os
import sys
import time
from pathlib import Path

from lidp import Target
from tests.engine import Numbers, closeness, leaky

GATE = "LIDP_TEST_GATE"
"""The environment variable that names the file ``GATED`` waits for."""
_BEFORE_GATE = 60
_FORKING = 0.1

calls = [0]


def slow(dataset, rng):
    time.sleep(0.02)
    return leaky(dataset, rng)


def gated(dataset, rng):
    """Like ``slow``; after some runs, wait until a file is there, then be fast."""
    calls[0] += 1
    gate = Path(os.environ[GATE])
    while calls[0] > _BEFORE_GATE and not gate.exists():
        time.sleep(0.02)
    if not gate.exists():
        time.sleep(0.02)
    return leaky(dataset, rng)


def _forking(in_child):
    """A leaky mechanism that forks in some of its runs and waits for the child."""

    def mechanism(dataset, rng):
        output = leaky(dataset, rng)
        if rng.random() < _FORKING:
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

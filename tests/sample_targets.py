"""Targets for the engine's tests; a module of its own, so that other processes can import them."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, Neighbours, ReplaceOne, Target
from lidp.store import Store
from lidp.trials.executors import Executor, Serial
from tests.waiting import wait_until


@dataclass(frozen=True)
class Numbers:
    """Canaries that are standard normal numbers."""

    def draw(self, rng, size):
        return rng.standard_normal(size)


@dataclass(frozen=True)
class Bits:
    """Canaries that all are 1: for mechanisms that count."""

    def draw(self, rng, size):
        return np.ones(size)


def closeness(output, canary):
    return -min((abs(canary - value) for value in output), default=10.0)


def leaky(dataset, rng):
    """Releases its data with a little noise: no privacy at all."""
    return [value + 0.01 * rng.standard_normal() for value in dataset]


def silent(dataset, rng):
    """Releases nothing that depends on its data."""
    return [rng.standard_normal() for _ in range(3)]


@dataclass(frozen=True)
class NoisyCount:
    """Laplace or Gaussian noise on the number of records."""

    scale: float
    kind: str = "laplace"

    def __call__(self, dataset, rng):
        noise = rng.laplace() if self.kind == "laplace" else rng.standard_normal()
        return len(dataset) + self.scale * noise


@dataclass(frozen=True)
class RandomizedResponse:
    """Tells whether there is a record, with a lie of probability 1/(1+e^ε): exactly ε-DP."""

    epsilon: float

    def __call__(self, dataset, rng):
        truth = len(dataset) > 0
        return float(truth if rng.random() > 1 / (1 + math.exp(self.epsilon)) else not truth)


def itself(output, canary):
    return output


@dataclass(frozen=True)
class Trouble:
    """A leaky mechanism that gets into trouble in some trials, by a coin of its own."""

    kind: str
    rate: float = 0.05

    def __call__(self, dataset, rng):
        unlucky = rng.random() < self.rate
        output = leaky(dataset, rng)
        if unlucky and self.kind == "raises":
            raise RuntimeError("no luck today")
        if unlucky and self.kind == "nan":
            return [float("nan")]
        if unlucky and self.kind == "dies":
            os._exit(9)
        while unlucky and self.kind == "hangs":
            time.sleep(1)
        return output


@dataclass(frozen=True)
class DiesOnce:
    """Kills its process the first time each trial of a set is run, told by files in a folder."""

    folder: str

    def __call__(self, dataset, rng):
        mark = Path(self.folder) / str(rng.random())
        if not mark.exists() and rng.random() < 0.2:
            mark.touch()
            os.kill(os.getpid(), 9)
        return leaky(dataset, rng)


class Many:
    """A mechanism that is faster many at a time."""

    def __init__(self):
        self.batches = 0

    def __call__(self, dataset, rng):
        return leaky(dataset, rng)

    def run_many(self, datasets, rngs):
        self.batches += 1
        return [leaky(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]


def slow(dataset, rng):
    time.sleep(0.02)
    return leaky(dataset, rng)


@dataclass(frozen=True)
class SlowUntil:
    """A leaky mechanism that takes a moment per run until a file exists, then none."""

    mark: str

    def __call__(self, dataset, rng):
        if not Path(self.mark).exists():
            time.sleep(0.02)
        return leaky(dataset, rng)


def finished(path):
    """How many trials a store has, which need not exist."""
    if not Path(path).exists():
        return 0
    with Store.read(path) as store:
        return len(store.finished())


def wait_for_more(path, before=0):
    """Wait until a store under way has more than ``before`` finished trials; return how many."""
    return wait_until(lambda: max(finished(path) - before, 0), f"{path} has more than {before} trials") + before


def chatty(dataset, rng):
    print("I am busy")  # noqa: T201  # that is the point
    return []


def broken(dataset, rng):
    raise RuntimeError("never works")


BROKEN = Target(broken, Numbers(), closeness)
CHATTY = Target(chatty, Numbers(), closeness)
LEAKY = Target(leaky, Numbers(), closeness, dataset=[0.5, -0.5])
SILENT = Target(silent, Numbers(), closeness, dataset=[0.5, -0.5])
SLOW = Target(slow, Numbers(), closeness, dataset=[0.5])
NOT_A_TARGET = 3

CLAIM = Claim(1.0, 1e-5)
DESIGNS = [
    CoinFlip(6),
    CoinFlip(6, Neighbours.REPLACE_ONE),
    LeaveOneOut(4, 3),
    ReplaceOne(4, 3),
]


def claim_for(design, epsilon=1.0):
    return Claim(epsilon, 1e-5, design.neighbours)


class InterruptedAfter(Executor):
    """An executor that is interrupted after so many trials."""

    yields_while_waiting = True

    def __init__(self, trials):
        self.trials = trials

    def run(self, setup, indices):
        yield from Serial().run(setup, indices[: self.trials])
        raise KeyboardInterrupt


def run(target=LEAKY, **options):
    options = {"claim": CLAIM, "design": CoinFlip(6), "trials": 40, "seed": 3, "stop_when": "never", **options}
    return lidp.audit(target, **options)


def same(a, b):
    assert a == b
    for name, array in a.scores.to_arrays().items():
        np.testing.assert_array_equal(array, b.scores.to_arrays()[name])

"""Results of real audits of claimed privacy curves, of every kind that a report must show."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

import lidp
from lidp import Claim, CoinFlip, Target
from lidp.curves import GaussianCurve
from lidp.stats.curve_wager import CurveWager
from tests.sample_targets import NoisyCount

DIMENSION = 200


@dataclass(frozen=True)
class NoisySum:
    """A Gaussian mechanism on vectors of length 1."""

    noise: float

    def __call__(self, dataset, rng):
        return np.sum(dataset, axis=0) + self.noise * rng.standard_normal(DIMENSION)


def noisy_sum(noise, curve=None):
    canaries, dataset = lidp.UniformSphere(DIMENSION), np.zeros((1, DIMENSION))
    return Target(NoisySum(noise), canaries, np.dot, dataset=dataset, name=f"noise {noise:g}", curve=curve)


HONEST = noisy_sum(1.0, GaussianCurve(1.0))
"""A target that knows its own curve, so that claiming a point of it claims the curve."""


@functools.cache
def gaussian(noise, trials, *, mu=1.0, seed=1, canary_by_canary=False, point_only=False, stop_when="refuted"):
    claim = Claim.gaussian(mu)
    method = lidp.CoinWager() if point_only else CurveWager(claim.curve, canary_by_canary=canary_by_canary)
    return lidp.audit(
        noisy_sum(noise), claim=claim, design=CoinFlip(16), trials=trials, seed=seed, method=method, stop_when=stop_when
    )


def refuted():
    """The curve falls, the point does not."""
    return gaussian(0.4, 60, stop_when="never")


def refuted_with_point():
    """Both fall."""
    return gaussian(0.1, 300, stop_when="never")


def refuted_by_canary():
    return gaussian(0.3, 20, canary_by_canary=True)


def not_refuted():
    """Nothing falls, but much noise is excluded."""
    return gaussian(1.0, 150)


def nothing_excluded():
    """Too little is seen to exclude any amount of noise."""
    return gaussian(50.0, 40)


def inconclusive():
    return gaussian(1.0, 1)


@dataclass(frozen=True)
class FlippedBit:
    """Releases its only record, a bit, and lies with probability 1/(1+e^ε)."""

    epsilon: float

    def __call__(self, dataset, rng):
        return float(dataset[0] if rng.random() > 1 / (1 + math.exp(self.epsilon)) else 1 - dataset[0])


@functools.cache
def without_family(epsilon=3.0, runs=4000):
    """Randomised response, whose curve has no amount of noise."""
    import dp_accounting

    claimed = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(1.0)), 2)  # exactly 1-DP
    claim = Claim.from_event(claimed, neighbours="replace-one")
    return lidp.audit_pair(FlippedBit(epsilon), [0.0], [1.0], claim=claim, runs=runs, seed=2)


@functools.cache
def laplace_pair(scale=0.5, runs=3000):
    """A pair audit whose claim is a curve."""
    return lidp.audit_pair(NoisyCount(scale), [], [1.0], claim=Claim.laplace(1.0), runs=runs, seed=1)


@functools.cache
def dpsgd(noise=0.5, trials=20):
    """A claim of DP-SGD with few steps, about a mechanism with less noise than its ε needs."""
    claim = Claim.dpsgd(noise_multiplier=2.0, sampling_rate=0.1, steps=20)
    return lidp.audit(
        noisy_sum(noise), claim=claim, design=CoinFlip(16), trials=trials, seed=1, method=CurveWager(claim.curve)
    )


CURVE_RESULTS = {
    "refuted": refuted,
    "refuted with the point": refuted_with_point,
    "refuted canary by canary": refuted_by_canary,
    "not refuted": not_refuted,
    "nothing excluded": nothing_excluded,
    "inconclusive": inconclusive,
    "without family": without_family,
    "pair": laplace_pair,
    "dpsgd": dpsgd,
}

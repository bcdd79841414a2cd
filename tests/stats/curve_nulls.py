"""Mechanisms whose privacy curve is known exactly, as sources of scores, and curves that are wrong on purpose.

Each draw gives coin-flip scores, or inserted and held-out arms, from the same laws of single canaries; the canaries of a run are
independent, identical, or as informative as one another.
"""

import json
from dataclasses import dataclass

import numpy as np

from lidp import Direction, Scores
from lidp.curves import EventCurve, GaussianCurve, LaplaceCurve
from lidp.stats.guess_trade_off import rejects_curve

STEPS, RATE, NOISE = 3, 0.3, 0.8


def sampled_event(noise=NOISE):
    step = {
        "event": "PoissonSampledDpEvent",
        "sampling_probability": RATE,
        "of": {"event": "GaussianDpEvent", "noise_multiplier": noise},
    }
    return json.dumps({"event": "SelfComposedDpEvent", "count": STEPS, "of": step})


class Alone:
    """A curve that is tested alone, without its family: the question of coverage is whether the claim falls."""

    @property
    def has_family(self):
        return False


@dataclass(frozen=True)
class GaussianAlone(Alone, GaussianCurve):
    pass


@dataclass(frozen=True)
class LaplaceAlone(Alone, LaplaceCurve):
    pass


@dataclass(frozen=True)
class EventAlone(Alone, EventCurve):
    pass


@dataclass(frozen=True)
class OptimisticGaussian(GaussianAlone):
    """A curve that promises more than the mechanism has."""

    factor: float = 0.75

    def forward(self, epsilons):
        return self.factor * super().forward(epsilons)


@dataclass(frozen=True)
class SwappedEvent(EventAlone):
    """A curve whose directions are exchanged."""

    def forward(self, epsilons):
        return EventCurve.backward(self, epsilons)

    def backward(self, epsilons):
        return EventCurve.forward(self, epsilons)


@dataclass(frozen=True)
class Interpolated(Alone, GaussianCurve):
    """The largest curve with given values at given ε: linear in e^ε between them, and constant after the last."""

    at: tuple[float, ...] = ()
    forward_values: tuple[float, ...] = ()
    backward_values: tuple[float, ...] = ()

    def forward(self, epsilons):
        return np.interp(np.exp(epsilons), np.exp(self.at), self.forward_values)

    def backward(self, epsilons):
        return np.interp(np.exp(epsilons), np.exp(self.at), self.backward_values)

    def rungs(self):
        return np.array(self.at)


def gaussian_scores(mu):
    return lambda rng, inserted: mu * inserted + rng.standard_normal(inserted.shape)


def laplace_scores(scale):
    return lambda rng, inserted: inserted + rng.laplace(scale=scale, size=inserted.shape)


def sampled_scores(noise=NOISE):
    """The likelihood ratio of all steps: whoever sees each step can do no better."""

    def draw(rng, inserted):
        total = np.zeros(inserted.shape)
        for _ in range(STEPS):
            seen = inserted * (rng.random(inserted.shape) < RATE) + noise * rng.standard_normal(inserted.shape)
            total += np.log(1 - RATE + RATE * np.exp((seen - 0.5) / noise**2))
        return total

    return draw


def mixture_scores(mu):
    """Runs of different quality: each canary has a Gaussian curve exactly, and all of a run are as informative as one another.

    The pair N(±μ/2, 1) is a mixture over |z| of randomised responses with log-odds μ|z|; here |z| is drawn once per run.
    """

    def draw(rng, inserted):
        size = np.abs(rng.choice([-1, 1], (len(inserted), 1)) * mu / 2 + rng.standard_normal((len(inserted), 1)))
        truthful = rng.random(inserted.shape) < 1 / (1 + np.exp(-mu * size))
        return np.where(truthful == (inserted == 1), size, -size)

    return draw


def duplicate_scores(mu):
    """All canaries of a run are the same record: the output is their number and noise, and every canary has this score."""

    def draw(rng, inserted):
        total = mu * inserted.sum(axis=1, keepdims=True) + rng.standard_normal((len(inserted), 1))
        return np.repeat(total, inserted.shape[1], axis=1)

    return draw


def coins_of(law, trials, canaries):
    def draw(rng):
        coins = rng.integers(0, 2, (trials, canaries))
        return Scores(scores=law(rng, coins), coins=coins)

    return draw


def arms_of(law, trials, canaries):
    def draw(rng):
        ones, zeros = np.ones((trials, canaries), dtype=int), np.zeros((trials, canaries), dtype=int)
        return Scores(inserted=law(rng, ones), held_out=law(rng, zeros))

    return draw


def duplicate_arms(mu, trials, canaries):
    """Leave-one-out with one record as every canary: D1 has it ``canaries`` times, D0 once less."""

    def draw(rng):
        inserted = canaries * mu + rng.standard_normal((trials, 1))
        held_out = (canaries - 1) * mu + rng.standard_normal((trials, 1))
        return Scores(inserted=np.repeat(inserted, canaries, axis=1), held_out=np.repeat(held_out, canaries, axis=1))

    return draw


def falls(method, delta=1e-5, beta=0.05):
    """Return a function that says whether the method refutes its curve on given scores: 1 if so."""

    def refuted(scores):
        return float(method.bound(scores, delta=delta, failure_probability=beta).fell_at is not None)

    return refuted


def refutations(method, draw, repeats, seed, delta=1e-5, beta=0.05):
    """Count how often the method refutes its curve."""
    refuted = falls(method, delta, beta)
    seeds = np.random.SeedSequence(seed).spawn(repeats)
    return int(sum(refuted(draw(np.random.default_rng(one))) for one in seeds))


def p_value(guesses, curve, direction=Direction.BOTH):
    """The largest failure probability at which the curve is not rejected."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rejects_curve(guesses, curve, middle, direction) else (middle, high)
    return high

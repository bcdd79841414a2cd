"""A method and a threshold strategy as a user would write them, in a module that nothing of lidp imports."""

import math
from dataclasses import dataclass

import numpy as np

import lidp
from lidp.stats.thresholds import Choice


@dataclass(frozen=True)
class Hoeffding(lidp.Method):
    """Hoeffding limits of the rates at or above a fixed threshold.

    Guarantee: finite-sample, for independent, identically distributed trials.
    """

    threshold: float = 0.0

    name = "hoeffding"
    guarantee = lidp.Guarantee.FINITE_SAMPLE
    works = (lidp.Work("@article{hoeffding1963, title = {Probability Inequalities for Sums of Bounded Random Variables}}"),)

    def check(self, design, *, sequential=False):
        if design.has_coins:
            raise lidp.MethodNotApplicable("hoeffding compares two arms, and coin-flip scores have none; use coin-wager")

    def bound(self, scores, *, delta, failure_probability):
        inserted, held_out = (float((arm >= self.threshold).mean()) for arm in scores.arms())
        slack = math.sqrt(math.log(2 / failure_probability) / (2 * scores.trials))
        odds = max(inserted - slack - delta, 0.0) / min(held_out + slack, 1.0)
        rates = {"inserted": inserted, "held_out": held_out}
        options = {"delta": delta, "failure_probability": failure_probability, "assumptions": ("trials are independent",)}
        return self.report(scores, math.log(max(odds, 1.0)), rates=rates, thresholds={"forward": self.threshold}, **options)

    def describe_rates(self, bound):
        return {"inserted": "inserted scores at or above it", "held_out": "held-out scores at or above it"}


@dataclass(frozen=True)
class MeanOfTuning(lidp.ThresholdStrategy):
    """The mean score of the first trials, bound on the others."""

    trials: int = 10

    def choose(self, scores, samples, objective):
        likely, unlikely = samples(scores[: self.trials])
        mean = np.nanmean(np.concatenate([likely.ravel(), unlikely.ravel()]))
        return Choice(np.array([mean]), scores[self.trials :], 1.0)

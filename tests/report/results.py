"""Results of every kind, to be reported on."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, Neighbours, ReplaceOne, Scores
from lidp.epsilon_bound import Guarantee
from lidp.result import AuditResult, TrialNote, Verdict
from lidp.stats.registry import applicable

CASES = {
    "coins": CoinFlip(6),
    "coins-replace": CoinFlip(6, Neighbours.REPLACE_ONE),
    "coins-one": CoinFlip(1),
    "leave": LeaveOneOut(4, 3),
    "leave-one": LeaveOneOut(1, 1),
    "replace": ReplaceOne(4, 3),
}


def scores_like(design, trials=48, *, shift=2.0, shared=0.3, seed=0, failed=0):
    """Scores of a leaky mechanism; canaries of a trial share some noise."""
    rng = np.random.default_rng(seed)

    def noise(columns):
        return rng.standard_normal((trials, columns)) + shared * rng.standard_normal((trials, 1))

    runs = 1 if design.has_coins else 2
    marked = np.zeros((trials, runs), dtype=bool)
    marked[:failed] = True
    if design.has_coins:
        coins = rng.integers(0, 2, (trials, design.canaries))
        values = noise(design.canaries) + shift * coins
        return Scores(scores=values, coins=coins, neighbours=design.neighbours, failed=marked[:, 0])
    return Scores(
        inserted=noise(design.canaries) + shift,
        held_out=noise(design.held_out),
        neighbours=design.neighbours,
        failed=marked,
    )


def result_like(scores, method=None, *, claim=0.2, delta=1e-5, target="leaky", notes=None, planned=None, **changes):
    """A result on these scores, as an audit would put it together."""
    method = method or (lidp.CoinWager() if scores.has_coins else lidp.LiftedBetting())
    bound = method.bound(scores, delta=delta, failure_probability=0.05)
    stated = Claim(claim, delta, scores.neighbours)
    verdict = Verdict.REFUTED if bound.refutes(stated) else Verdict.NOT_REFUTED
    if notes is None:
        notes = tuple(TrialNote(i, 0.01 + 0.001 * (i % 7), 1, {}, {"scores_accuracy": 0.9}) for i in range(scores.trials))
    options = {
        "verdict": verdict,
        "bound": bound,
        "claim": stated,
        "target": target,
        "design": scores.design,
        "method": method,
        "seed": 3,
        "planned_trials": planned or scores.trials,
        "preparation_models": 0,
        "scores": scores,
        "notes": notes,
        "versions": {"lidp": "0.1.0", "python": "3.11.0"},
        "seconds": 1.5,
    }
    return AuditResult(**(options | changes))


@functools.cache
def every_case():
    """(design's name, method's name) of all pairs that go together."""
    return tuple(
        (name, method)
        for name, design in CASES.items()
        for method, reason in applicable(scores_like(design)).items()
        if not isinstance(reason, str)
    )


def case(name, method, **options):
    scores = scores_like(CASES[name])
    return result_like(scores, applicable(scores)[method], **options)


@functools.cache
def pair_result(name="laplace-half-scale", epsilon=1.0, runs=3000):
    from lidp.mechanisms.catalogue import CATALOGUE

    return lidp.audit_pair(CATALOGUE[name].make(epsilon, 0.0), claim=Claim(epsilon), runs=runs, seed=1)


def as_guarantee(result, guarantee):
    """The same result with another guarantee."""
    return replace(result, bound=replace(result.bound, guarantee=Guarantee(guarantee)))

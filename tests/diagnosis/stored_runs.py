"""Stores of simulated runs of DP-SGD, as audits with transcript scores make them."""

import functools
from dataclasses import replace

import numpy as np

from lidp import Claim, CoinFlip, CurveWager
from lidp.engine.plan import AuditPlan
from lidp.store import Store


@functools.cache
def claim_of_dpsgd():
    """Return the claim that the simulated runs make; its curve takes a second to compute."""
    return Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.1, steps=200)


def plan_of(canaries, trials, claim=None):
    """Return the plan of an audit with coin-flip canaries."""
    claim = claim_of_dpsgd() if claim is None else claim
    return AuditPlan(
        target=None,
        name="simulated DP-SGD",
        claim=claim,
        design=CoinFlip(canaries),
        trials=trials,
        method=CurveWager(claim.whole_curve),
        failure_probability=0.05,
        seed=0,
        stop_when="never",
        sequential=False,
        target_spec=None,
        fingerprint="none",
    )


def stored(path, training, trials=4, *, change=lambda records: records, **plan):
    """Write a store of simulated runs, changed by ``change`` before they are saved; return its path."""
    runs = replace(training, audited=True).runs(trials, np.random.default_rng(0))
    with Store.create(path, plan_of(training.canaries, trials, **plan).configuration, {}) as store:
        store.keep_trials(change(runs))
    return path

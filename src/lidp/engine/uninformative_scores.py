"""Name scores that carry no information about which canaries were inserted, before a whole budget is spent on them."""

from __future__ import annotations

import numpy as np

from lidp.arrays import Floats
from lidp.scores import Scores

FEWEST_TRIALS = 8
"""Trials with scores that a warning needs."""


def warn_of_uninformative_scores(scores: Scores) -> str:
    """Return a warning if the scores of canaries cannot tell who was inserted, whatever the mechanism does; empty otherwise.

    Guarantee: the bound from such scores is valid, as from any others; it is 0, or close to it.
    """
    rows = _whole_rows(scores)
    if len(rows) < FEWEST_TRIALS:
        return ""
    remedy = "See what the score computes from the output of the mechanism and a canary"
    if np.all(rows == rows[0, 0]):
        return f"all {rows.size:,} scores are {rows[0, 0]:g}, so they tell nothing about canaries. {remedy}"
    if scores.design.has_coins and np.all(rows == rows[0]):
        return (
            f"all {len(rows):,} trials have the same scores, although other canaries were inserted in each: the score does not "
            f"look at the output, or the mechanism not at its data. {remedy}"
        )
    if rows.shape[1] > 1 and np.all(rows == rows[:, :1]):
        return (
            f"all {rows.shape[1]:,} canaries of a trial have the same score, in each of {len(rows):,} trials: the score does not "
            f"look at the canary. {remedy}"
        )
    return ""


def _whole_rows(scores: Scores) -> Floats:
    """Return the scores of the trials in which no run failed, a row per trial."""
    arrays = scores.to_arrays()
    parts = [np.asarray(arrays[name], np.float64) for name in ("scores", "inserted", "held_out") if name in arrays]
    return np.concatenate(parts, axis=1)[~scores.failed.any(axis=1)]

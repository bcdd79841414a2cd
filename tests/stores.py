"""Trials to put into stores, and ways to tamper with them."""

import sqlite3

from lidp.designs.trial_record import TrialRecord
from lidp.streams import draw_coins


def trial(index, seed=3, canaries=6):
    """Return a trial as the audit of the ``store`` fixture would make it."""
    coins = draw_coins(seed, trial=index, size=canaries).astype(float)
    return TrialRecord(index, {"scores": coins + index, "coins": coins})


def edit(path, statement, *values):
    """Change a store behind its back."""
    with sqlite3.connect(path) as connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    assert changed

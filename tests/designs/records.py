"""Trial records that are made up rather than run, for tests of designs, scorers and the ledger."""

import numpy as np

from lidp.designs.trial_record import TrialRecord
from lidp.pairs.outputs import take_apart

SEED = 3


def draw_numbers(rng, size):
    """Draw canaries that are standard normal numbers."""
    return rng.standard_normal(size)


def record_of(design, index, leak=0.0):
    """Return a record with normal scores; ``leak`` moves the scores of inserted canaries up and of others down."""
    rng = np.random.default_rng([SEED, index])
    layout = design.lay_out(draw_numbers, SEED, index)
    if not design.has_canaries:
        return block_of(design, index, rng.standard_normal(len(layout.coins)) + leak * (2 * layout.coins - 1))
    if layout.coins is not None:
        scores = rng.standard_normal(len(layout.coins)) + leak * (2 * layout.coins - 1)
        return TrialRecord(index, {"scores": scores, "coins": layout.coins}, seconds=0.5)
    shift = {"inserted": leak, "held_out": -leak}
    arrays = {arm.name: rng.standard_normal(len(arm.tested)) + shift[arm.name] for arm in layout.arms}
    return TrialRecord(index, arrays, seconds=0.5)


def block_of(design, index, outputs, failed=()):
    """Return the record of a block of pair runs that gave these outputs; the runs listed in ``failed`` gave none."""
    coins = design.lay_out(draw_numbers, SEED, index).coins
    marks = np.zeros(len(coins))
    marks[list(failed)] = 1.0
    table = take_apart(outputs)
    arrays = {"coins": coins, "failed": marks, "values": table.values}
    metadata = {"names": list(table.names)}
    if table.texts is not None:
        arrays["identities"] = table.identities
        metadata["texts"] = [[identity, text] for identity, text in table.texts.items()]
    if table.rows is not None:
        arrays |= {"rows": table.rows, "columns": table.columns}
    if len(failed):
        metadata["first_failure"] = "RuntimeError: no luck"
    return TrialRecord(index, arrays, seconds=0.5, metadata=metadata)

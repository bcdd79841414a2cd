"""The catalogue of broken training: the number of models after which each claim falls, and the diagnosis.

Prints the table of docs/broken-training.md. The seeds of the audits are 11 to 20. The diagnosis is that of 16 models with seed 1,
or of 256 models with a single canary each where the gradients of canaries overlap, since a diagnosis needs canaries that do not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from lidp import Claim, CoinFlip, audit, diagnose
from lidp.rounding import at_most
from lidp.training.catalogue import TRAININGS, TrainingEntry

SEEDS = range(11, 21)  # the settings of entries were chosen with seeds 1 to 10
DIAGNOSED_MODELS = 16
DIAGNOSED_SINGLE_CANARIES = 256


def models_until_refuted(entry: TrainingEntry, claim: Claim) -> list[float]:
    """Return for each seed the number of models after which the claim falls; infinity if it stands."""
    design = CoinFlip(entry.canaries)
    results = [audit(entry.target, claim=claim, design=design, trials=entry.models, seed=seed) for seed in SEEDS]
    return [float(result.bound.fell_at or np.inf) for result in results]


def describe(entry: TrainingEntry, models: list[float]) -> str:
    refuted = int(np.isfinite(models).sum())
    if entry.correct:
        return f"refuted in {refuted} of {len(models)} audits of {entry.models}"
    median = float(np.median(models))
    words = f"{median:g}" if np.isfinite(median) else f"more than {entry.models}"
    return words if refuted == len(models) else f"{words} (refuted in {refuted} of {len(models)})"


def diagnosis(entry: TrainingEntry, claim: Claim) -> str:
    """Return what ``lidp diagnose`` prints first."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "audit.db")
        separate = entry.planted.separate
        design = CoinFlip(entry.canaries if separate else 1)
        models = DIAGNOSED_MODELS if separate else DIAGNOSED_SINGLE_CANARIES
        audit(entry.target, claim=claim, design=design, trials=models, seed=1, stop_when="never", store=store)
        return diagnose(store, separate_canaries=True).summary[0]


def row(entry: TrainingEntry) -> str:
    """Return one row of the table."""
    claim = entry.claim
    models = describe(entry, models_until_refuted(entry, claim))
    canaries = f"{entry.planted.description}, {entry.canaries} per model"
    cells = (entry.name, canaries, entry.found_by, at_most(claim.epsilon, 3), models, diagnosis(entry, claim))
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    print(f"\n| training | canaries | found by | claimed ε | models, median of {len(SEEDS)} seeds | diagnosis |")
    print("|---|---|---|---|---|---|")
    for entry in TRAININGS.values():
        print(row(entry), flush=True)

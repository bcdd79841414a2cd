"""Sealed runs of trainings that are simulated in this process, for tests."""

import json

import numpy as np

from lidp import Claim
from lidp.seals import seal

POINT = Claim(0.5)
"""A claim that 200 coins refute if they are all revealed."""


def gradients(folder, *, claim=POINT, canaries=200, seed=0, **options):
    """Seal a run of gradient canaries."""
    return seal(folder, claim=claim, canaries=canaries, kind="gradients", seed=seed, **options)


def coins_of(folder):
    """The coins by id, as the auditor's file has them."""
    return json.loads((folder / "coins.json").read_text(encoding="utf-8"))["coins"]


def simulated(folder, *, shift=0.0, seed=1):
    """Scores by id: normal noise, plus a shift where the candidate was in."""
    rng = np.random.default_rng(seed)
    return {name: shift * coin + rng.standard_normal() for name, coin in coins_of(folder).items()}


def write_csv(path, scores):
    lines = [f"{name},{score!r}\n" for name, score in scores.items()]
    path.write_text("id,score\n" + "".join(lines), encoding="utf-8")
    return path


def scored(folder, *, shift=0.0, seed=1):
    """Write simulated scores beside a sealed folder and return the file."""
    return write_csv(folder.with_name(f"{folder.name}-{shift}-{seed}.csv"), simulated(folder, shift=shift, seed=seed))


def edit_json(path, change):
    """Apply a change to the content of a JSON file."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    change(plain)
    path.write_text(json.dumps(plain), encoding="utf-8")

"""A million candidates: arrays and compact files instead of an object per row."""

import numpy as np
import pytest

from lidp import Claim, Verdict
from lidp.seals import make_receipt, open_seal, verify_receipt
from lidp.seals.sealed_run import read_sealed_run
from tests.seals.sealed import gradients


@pytest.mark.slow
def test_a_million_candidates_are_sealed_opened_and_verified(tmp_path):
    gradients(tmp_path / "s", claim=Claim.gaussian(0.5), canaries=1_000_000, runs=1, independent_canaries=True)
    run, rng = read_sealed_run(tmp_path / "s"), np.random.default_rng(0)
    order = rng.permutation(len(run.ids))
    scores = run.coins + rng.standard_normal(len(run.ids))
    np.savez(tmp_path / "scores.npz", id=run.ids[order], score=scores[order])
    opened = open_seal(tmp_path / "s", tmp_path / "scores.npz")
    assert opened.verdict is Verdict.REFUTED
    make_receipt(opened).write(tmp_path / "r.json")
    assert (tmp_path / "r.json").stat().st_size < 25_000_000
    assert verify_receipt(tmp_path / "r.json").holds

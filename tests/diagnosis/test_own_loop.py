"""A training loop of one's own that records transcripts: audited, stored, diagnosed and reported."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, Target
from lidp.canaries.coordinates import SpreadCoordinates
from lidp.diagnosis import diagnose_result
from lidp.report.page import render_report
from lidp.training.transcript import ClaimedSteps, TranscriptRecorder, TranscriptScore

SIZES = (300, 20)
CLAIM = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.2, steps=100)


@dataclass(frozen=True)
class Records:
    """No records but canaries, rows (coordinate, value), of which some are watched."""

    inserted: np.ndarray | None = None
    watched: np.ndarray | None = None

    def __len__(self):
        return 0

    def with_canaries(self, canaries):
        return replace(self, inserted=canaries.copy())

    def watching(self, canaries):
        return replace(self, watched=canaries.copy())


@dataclass(frozen=True)
class Trainer:
    """DP-SGD on two layers, each with its own factor of the noise; the first step's noise may be used at all steps."""

    noise: tuple[float, float] = (1.0, 1.0)
    reuses_noise: bool = False

    def __call__(self, records, rng):
        places, values = records.watched[:, 0].astype(int), records.watched[:, 1]
        recorder, noise = TranscriptRecorder(len(places)), None
        for _ in range(100):
            if noise is None or not self.reuses_noise:
                noise = np.repeat(self.noise, SIZES) * rng.standard_normal(sum(SIZES))
            sampled = records.inserted[rng.random(len(records.inserted)) < 0.2]
            released = noise.copy()
            np.add.at(released, sampled[:, 0].astype(int), sampled[:, 1])
            recorder.add(values * released[places], values**2, ClaimedSteps(1.0, 0.2, 1.0))
        return recorder.transcript((places >= SIZES[0]).astype(np.int64), ("fc1.weight", "fc2.weight"))


def audited(trainer, tmp_path):
    """Audit a trainer with a store; return the result and the diagnosis of the store."""
    target = Target(trainer, SpreadCoordinates(SIZES), TranscriptScore(), dataset=Records(), name="own loop")
    path = tmp_path / "a.db"
    result = lidp.audit(
        target, claim=CLAIM, design=CoinFlip(32), trials=3, independent_canaries=True, store=path, stop_when="never"
    )
    return result, lidp.diagnose(path)


@pytest.mark.parametrize(
    ("trainer", "finding"),
    [
        (Trainer(), "nothing found, within these limits"),
        (Trainer(noise=(1.0, 0.1)), "fc2.weight: noise 0.09"),
        (Trainer(noise=(0.5, 0.5)), "noise 0.4"),
        (Trainer(reuses_noise=True), "noise of successive steps is correlated (at least 0.9"),
    ],
)
def test_a_loop_of_ones_own_is_diagnosed(trainer, finding, tmp_path):
    result, diagnosis = audited(trainer, tmp_path)
    assert diagnosis.summary[0].startswith(finding)
    assert diagnose_result(result) == diagnosis
    assert diagnosis.summary[0] in render_report(result)

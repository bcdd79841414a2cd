"""Simulated runs of DP-SGD with canaries along different coordinates, as trial records with evidence."""

from dataclasses import dataclass

import numpy as np

from lidp.designs.trial_record import TrialRecord
from lidp.diagnosis.diagnosis import Claimed
from lidp.diagnosis.evidence import Evidence
from lidp.diagnosis.measurements import diagnose_evidence
from lidp.streams import draw_coins
from lidp.training.transcript import ClaimedSteps, TranscriptRecorder

GROUPS = ("fc1.weight", "fc2.weight")


@dataclass(frozen=True)
class Training:
    """A training to simulate. By default it is as :data:`CLAIMED` says; its fields make it deviate."""

    canaries: int = 64
    steps: int = 200
    noise: float = 1.0
    rate: float = 0.1
    contribution: float = 1.0
    group_noise: tuple[float, float] = (1.0, 1.0)
    early_noise: float = 1.0
    """factor of the noise in the first half of the steps"""
    reused_share: float = 0.0
    """correlation of the noise with that of the step before; 1 uses the same noise at every step"""
    seed: int | None = None
    """seed of the noise of every run; None draws new noise"""
    audited: bool = False
    """whether coins are those of an audit with seed 0, for a store"""
    grouped: bool = True
    """whether evidence says to which group of parameters each canary belongs"""

    def run(self, trial, rng):
        """Return the record of one run."""
        size = self.steps, self.canaries
        coins = draw_coins(0, trial=trial, size=self.canaries) if self.audited else rng.integers(0, 2, self.canaries)
        groups = np.arange(self.canaries) % 2
        fresh = (rng if self.seed is None else np.random.default_rng(self.seed)).normal(size=size)
        noise = fresh.copy()
        for step in range(1, self.steps if self.reused_share else 0):
            noise[step] = self.reused_share * noise[step - 1] + np.sqrt(1 - self.reused_share**2) * fresh[step]
        noise *= self.noise * np.array(self.group_noise)[groups]
        noise[: self.steps // 2] *= self.early_noise
        residuals = noise + self.contribution * coins * (rng.random(size) < self.rate)
        return record_of(trial, residuals, coins, groups if self.grouped else None)

    def runs(self, trials, rng):
        """Return the records of several runs."""
        return [self.run(trial, rng) for trial in range(trials)]


CLAIMED = Claimed(noise_multiplier=1.0, sampling_rate=0.1, steps=200)


def record_of(trial, residuals, coins, groups=None):
    """Return the record of a run from the residual at the coordinate of each canary, an array (steps, canaries)."""
    recorder = TranscriptRecorder(residuals.shape[1])
    claimed = ClaimedSteps(1.0, 0.1, 1.0)
    for row in residuals:
        recorder.add(row, np.ones(len(row)), claimed)
    transcript = recorder.transcript(groups, GROUPS if groups is not None else ())
    metadata = {"scores_steps": transcript.steps}
    if groups is not None:
        metadata["scores_groups"] = ", ".join(GROUPS)
    arrays = {"coins": np.asarray(coins, dtype=float), "scores": transcript.log_ratios}
    return TrialRecord(trial, arrays, metadata=metadata, evidence=transcript.to_arrays())


def diagnosed(records, claimed=CLAIMED, **options):
    """Return the diagnosis of records whose canaries do not overlap."""
    return diagnose_evidence(Evidence.of(records), claimed, target="simulated", **{"separate_canaries": True} | options)

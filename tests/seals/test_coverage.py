"""Sealed runs of mechanisms that are exactly as private as claimed are refuted at most as often as β allows.

Every run goes through the whole pipeline: files, coins, scores by id, opening.
"""

import json

import numpy as np
import pytest
from scipy.stats import binom

from lidp import Claim, Verdict
from lidp.seals import open_seal, seal_next
from tests.seals.sealed import coins_of, gradients, write_csv

SEALS = 250
BETA = 0.1
pytestmark = pytest.mark.slow


def randomised_response(coins, rng, epsilon):
    """Each coin is told truly with the probability that ε-DP allows, and no less."""
    told = rng.random(len(coins)) < 1 / (1 + np.exp(-epsilon))
    return np.where(told, coins, 1 - coins)


def gaussian(coins, rng, mu):
    return mu * coins + rng.standard_normal(len(coins))


def leaked_at_once(coins, rng, delta):
    """Dependent canaries: all coins are told with probability δ, and none otherwise."""
    return coins.astype(float) if rng.random() < delta else np.zeros(len(coins))


def scores_file(folder, mechanism, rng):
    coins = coins_of(folder)
    values = mechanism(np.array(list(coins.values())), rng)
    return write_csv(
        folder.with_name(f"{folder.name}-{rng.integers(2**62)}.csv"), dict(zip(coins, values.tolist(), strict=True))
    )


def refutations(tmp_path, mechanism, *, seals=SEALS, **options):
    """How many of the seals are refuted; analysts with several looks choose further scores after every verdict."""
    count = 0
    for number in range(seals):
        rng = np.random.default_rng([7, number])
        folder = tmp_path / str(number)
        made = gradients(folder, seed=number, failure_probability=BETA, **options)
        verdicts = [
            open_seal(folder, scores_file(folder, mechanism, rng)).verdict
            for _ in range(made.commitment.plan.looks)
            if not _is_refuted(folder)
        ]
        count += Verdict.REFUTED in verdicts
    return count


def _is_refuted(folder):
    file = folder / "openings.jsonl"
    return file.exists() and any(json.loads(line)["verdict"] == "refuted" for line in file.read_text().splitlines())


MOST = int(binom.ppf(1 - 1e-4, SEALS, BETA))


@pytest.mark.parametrize("looks", [1, 3])
@pytest.mark.parametrize(
    ("mechanism", "claim", "options"),
    [
        (lambda coins, rng: randomised_response(coins, rng, 0.5), Claim(0.5), {"canaries": 60}),
        (lambda coins, rng: leaked_at_once(coins, rng, BETA / 2), Claim(0.5, BETA / 2), {"canaries": 60}),
        (lambda coins, rng: gaussian(coins, rng, 0.5), Claim.gaussian(0.5), {"canaries": 100, "runs": 1}),
        (
            lambda coins, rng: gaussian(coins, rng, 0.5),
            Claim.gaussian(0.5),
            {"canaries": 100, "runs": 1, "independent_canaries": True},
        ),
    ],
    ids=["randomised-response", "dependent", "gaussian", "canary-by-canary"],
)
def test_true_claims_are_refuted_at_most_as_often_as_allowed(tmp_path, mechanism, claim, options, looks):
    assert refutations(tmp_path, mechanism, claim=claim, looks=looks, **options) <= MOST


def test_true_claims_over_several_runs(tmp_path):
    """An analyst who opens after every run, and stops when the claim is refuted."""
    count, claim = 0, Claim.gaussian(0.5)
    for number in range(SEALS // 4):
        rng = np.random.default_rng([8, number])
        folders, files, verdict = [], [], None
        while len(folders) < 4 and verdict is not Verdict.REFUTED:
            folder = tmp_path / f"{number}-{len(folders)}"
            if folders:
                seal_next(folders[-1], folder, seed=number)
            else:
                gradients(folder, claim=claim, canaries=60, seed=number, failure_probability=BETA)
            folders.append(folder)
            files.append(scores_file(folder, lambda coins, rng: gaussian(coins, rng, 0.5), rng))
            verdict = open_seal(folders, files).verdict
        count += verdict is Verdict.REFUTED
    assert count <= binom.ppf(1 - 1e-4, SEALS // 4, BETA)


def test_leaky_trainings_are_refuted(tmp_path):
    def leaky(coins, rng):
        return gaussian(coins, rng, 4.0)

    assert refutations(tmp_path, leaky, seals=10, claim=Claim.gaussian(0.5), canaries=300, runs=1) == 10

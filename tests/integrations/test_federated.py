"""Audits of federated averaging at user level: correct training stands, wrong training falls within few runs."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import lidp
from lidp import Claim, CoinFlip, InvalidArgument, Neighbours, Verdict
from lidp.integrations.federated import PRIVACY_UNIT, audit_federated, federated_target
from lidp.integrations.planting import Planting
from lidp.testing.simulations import assert_covers
from tests.integrations.federated_averaging import OUTLIER, SIZES, FederatedAveraging, loss, make_clients

CLIENTS = make_clients(6)
POOL = make_clients(64, seed=5, scale=OUTLIER)
PARAMETERS = sum(SIZES)
SIMULATED = 20_000


def audit(train, *, rounds=5, trials=12, design=None, noise=1.0, **options):
    """Audit the claim of a training with this noise, from update canaries unless options say otherwise."""
    accounted = {"noise_multiplier": noise, "sampling_rate": 0.5, "rounds": rounds, "delta": 1e-5}
    return audit_federated(
        train, CLIENTS, **accounted, trials=trials, design=design or CoinFlip(64), name="training", **options
    )


def log_ratios(rng, *, inserted, rate, rounds):
    """Return the log-likelihood ratios of the pair that the accountant composes, simulated without a model."""
    sampled = (rng.random((SIMULATED, rounds)) < rate) & inserted
    products = sampled + rng.standard_normal((SIMULATED, rounds))
    return np.log(1 - rate + rate * np.exp(products - 0.5)).sum(axis=1)


def run(train, inserted, watched, seed):
    planting = Planting(inserted, np.random.default_rng(seed), watched=watched)
    return planting.outcome(train(CLIENTS, planting)).transcript


@pytest.mark.parametrize(("rate", "clip_norm"), [(0.1, 1.0), (0.5, 0.2), (1.0, 3.0)])
def test_log_ratios_of_clients_have_the_claimed_law(rate, clip_norm):
    """The probability that this test fails by chance is below 2e-4 per case; the seeds are fixed."""
    train = FederatedAveraging(rate=rate, clip_norm=clip_norm, rounds=8)
    ratios = {True: [], False: []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        watched = np.column_stack([rng.permutation(PARAMETERS), rng.choice([-1.0, 1.0], PARAMETERS)])
        half = PARAMETERS // 2
        both = run(train, watched[:half], watched, seed).log_ratios
        ratios[True].append(both[:half])
        ratios[False].append(both[half:])
    rng = np.random.default_rng(99)
    for inserted, measured in ratios.items():
        expected = log_ratios(rng, inserted=inserted, rate=rate, rounds=8)
        assert stats.ks_2samp(np.concatenate(measured), expected).pvalue > 1e-4


def test_log_ratios_of_half_the_noise_do_not_have_the_claimed_law():
    train = FederatedAveraging(noise=0.5, rounds=8)
    watched = np.column_stack([np.arange(PARAMETERS), np.ones(PARAMETERS)])
    measured = np.concatenate([run(train, watched, watched, seed).log_ratios for seed in range(10)])
    expected = log_ratios(np.random.default_rng(99), inserted=True, rate=0.5, rounds=8)
    assert stats.ks_2samp(measured, expected).pvalue < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("canary", "canaries", "trials"), [(None, 64, 8), ("random-gradient", 8, 40)])
def test_correct_training_stands_and_half_the_noise_falls(canary, canaries, trials):
    """Random directions overlap in a model of so few parameters, so that fewer of them fit into one run."""
    options = {"canary": canary, "design": CoinFlip(canaries), "trials": trials}
    for seed in range(3):
        assert audit(FederatedAveraging(), seed=seed, **options).verdict is Verdict.NOT_REFUTED
        assert audit(FederatedAveraging(noise=0.5), seed=seed, **options).verdict is Verdict.REFUTED


def test_half_the_noise_falls_in_four_runs_canary_by_canary():
    for seed in range(3):
        result = audit(
            FederatedAveraging(noise=0.5), trials=4, design=CoinFlip(PARAMETERS), independent_canaries=True, seed=seed
        )
        assert result.verdict is Verdict.REFUTED


@pytest.mark.slow
def test_missing_clipping_falls_by_clients_of_a_pool_and_not_by_updates():
    """A server that clips in the first round only: updates are planted after clipping, clients with data before it."""
    unclipped = FederatedAveraging(noise=4.0, stated=4.0, clips=False)
    options = {"canaries": POOL, "loss": loss, "design": CoinFlip(16), "trials": 24, "noise": 4.0}
    for seed in range(3):
        assert audit(unclipped, seed=seed, **options).verdict is Verdict.REFUTED
        correct = FederatedAveraging(noise=4.0, stated=4.0)
        assert audit(correct, seed=seed, **options).verdict is Verdict.NOT_REFUTED
    assert audit(unclipped, noise=4.0).verdict is Verdict.NOT_REFUTED


def test_the_result_says_that_the_claim_is_about_clients():
    for options in ({}, {"canaries": POOL, "loss": loss, "pilots": 2}):
        result = audit(FederatedAveraging(), trials=2, **options)
        assert result.facts["privacy unit"] == PRIVACY_UNIT
        assert result.facts["rounds"] == 5
        assert result.claim == Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=5, delta=1e-5)
    assert result.facts["not tested"].startswith("what single rounds release")


def test_a_point_is_tested_with_the_curve_of_the_accountant():
    target = federated_target(FederatedAveraging(), CLIENTS, noise_multiplier=1.0, sampling_rate=0.5, rounds=5)
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=5)
    assert target.curve == claim.curve
    assert target.neighbours is Neighbours.ADD_REMOVE
    assert lidp.audit(target, claim=claim.point, trials=1).claim == claim
    with pytest.raises(InvalidArgument, match="replace-one"):
        lidp.audit(target, claim=Claim(1.0, 1e-5, Neighbours.REPLACE_ONE), trials=1)


def test_every_run_gets_copies_of_the_clients():
    class Careless(FederatedAveraging):
        def __call__(self, clients, planting):
            assert all(np.isfinite(x).all() for x, _ in clients)
            model = super().__call__(clients, planting)
            for x, _ in clients:
                x[:] = np.nan
            return model

    audit(Careless(), trials=2)
    audit(Careless(), trials=2, canaries=POOL, loss=loss, pilots=2)
    assert all(np.isfinite(x).all() for x, _ in [*CLIENTS, *POOL])


def test_the_result_is_the_same_with_workers():
    options = {"trials": 4, "stop_when": "never", "design": CoinFlip(16), "seed": 3}
    one, two = audit(FederatedAveraging(), **options), audit(FederatedAveraging(), workers=2, **options)
    np.testing.assert_array_equal(one.scores.flips()[0], two.scores.flips()[0])


def test_training_that_seeds_its_noise_itself_is_refused():
    class Seeded(FederatedAveraging):
        def __call__(self, clients, planting):
            planting.rng = np.random.default_rng(0)
            return super().__call__(clients, planting)

    with pytest.raises(lidp.AuditFailed, match="exactly the same noise"):
        audit(Seeded(), trials=1)


class OwnNoise:
    """The generator of a run, from which clients are sampled, but with normal numbers from a fixed seed."""

    def __init__(self, rng):
        self.random = rng.random
        self.standard_normal = np.random.default_rng(0).standard_normal


def test_noise_of_a_fixed_seed_is_found_in_sums_of_different_clients():
    """Noise is what a round releases minus the sums, which rounding makes different if the clients of the round differ."""

    class Seeded(FederatedAveraging):
        def __call__(self, clients, planting):
            planting.rng = OwnNoise(planting.rng)
            return super().__call__(clients, planting)

    with pytest.raises(lidp.AuditFailed, match="exactly the same noise"):
        audit(Seeded(), trials=1)


def test_arguments_that_do_not_fit_are_refused():
    accounted = {"noise_multiplier": 1.0, "sampling_rate": 0.5, "rounds": 5}
    refused = [
        ({"canaries": POOL}, "a pool of clients as canaries= needs loss="),
        ({"loss": loss}, "a pool of clients as canaries= needs loss="),
        ({"canaries": POOL, "loss": loss, "canary": "dirac-gradient"}, "leave one of them out"),
        ({"pilots": 4}, "leave pilots out, got 4"),
        ({"canaries": {}, "loss": loss}, "canaries must be a list with one item per client, got dict"),
        ({"canaries": [], "loss": loss}, "the pool of canaries is empty"),
        ({"rounds": 0}, "steps"),
    ]
    for options, message in refused:
        with pytest.raises(InvalidArgument, match=message):
            federated_target(FederatedAveraging(), CLIENTS, **{**accounted, **options})
    with pytest.raises(InvalidArgument, match="clients must be a list with one item per client, got dict"):
        federated_target(FederatedAveraging(), {}, **accounted)
    with pytest.raises(InvalidArgument, match=r"train must be callable as train\(clients, planting\)"):
        federated_target(None, CLIENTS, **accounted)


@pytest.mark.slow
def test_federated_training_needs_no_torch():
    program = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Without(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, *more):\n"
        "        return None if name == 'torch' else super().find_spec(name, *more)\n"
        "sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]\n"
        "from lidp import CoinFlip\n"
        "from lidp.integrations.federated import audit_federated\n"
        "from tests.integrations.federated_averaging import *\n"
        "told = dict(noise_multiplier=1.0, sampling_rate=0.5, rounds=5, delta=1e-5, trials=2, design=CoinFlip(16))\n"
        "print(audit_federated(FederatedAveraging(), make_clients(4), **told).verdict)\n"
        "pool = dict(canaries=make_clients(32, seed=1), loss=loss, pilots=2)\n"
        "print(audit_federated(FederatedAveraging(), make_clients(4), **told, **pool).verdict)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("independent", [False, True])
def test_false_alarms_at_an_exactly_tight_null(independent):
    """The law of the scores is exactly the pair of the claimed curve."""
    design, trials = (CoinFlip(PARAMETERS), 1) if independent else (CoinFlip(16), 8)
    options = {"rounds": 3, "trials": trials, "design": design, "independent_canaries": independent}
    results = [audit(FederatedAveraging(rounds=3), seed=seed, **options) for seed in range(200)]
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in results), 200, 0.05)

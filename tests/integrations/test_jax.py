"""Audits of DP-SGD with jax-privacy: correct training stands, too little noise is refuted, and misuse ends the audit."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra jax")
pytest.importorskip("jax_privacy", reason="needs the extra jax")

import jax.numpy as jnp  # noqa: E402

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, Verdict  # noqa: E402
from lidp.integrations.jax import audit_jax, jax_target  # noqa: E402
from lidp.target_spec.fingerprint import fingerprint  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402
from tests import sample_targets  # noqa: E402
from tests.integrations.jax_training import (  # noqa: E402
    ACCOUNTANT,
    INTERRUPTED,
    NOISE,
    PARAMETERS,
    STEPS,
    make_records,
    train,
    train_with_optax,
)
from tests.waiting import PATIENCE  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")  # in jax-privacy
AUDIT = {"delta": 1e-5, "design": CoinFlip(40), "pilots": 0}


def audit(loop, **options):
    return audit_jax(loop, make_records(), **ACCOUNTANT | AUDIT | options)


@pytest.mark.slow
@pytest.mark.parametrize("loop", [train_with_optax, pytest.param(train, marks=pytest.mark.slow)])
def test_correct_training_stands(loop):
    result = audit(loop, trials=4, pilots=2)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.target == f"{loop.__name__}, all steps"
    assert result.facts["scores see"].startswith("what every step releases")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_correct_training_stands_for_every_seed(seed):
    """Each fails with probability at most 0.05 if it holds; seeds are fixed."""
    assert audit(train, trials=24, seed=seed).verdict is Verdict.NOT_REFUTED


@pytest.mark.slow
def test_false_alarms_when_canaries_count_as_independent():
    """The hypothesis of one run: the curve, and canaries that do not interfere."""
    verdicts = [
        audit(train, trials=1, design=CoinFlip(128), independent_canaries=True, seed=seed).verdict for seed in range(60)
    ]
    assert_covers(verdicts.count(Verdict.REFUTED), 60, 0.05)


@pytest.mark.parametrize("loop", [train, pytest.param(train_with_optax, marks=pytest.mark.slow)])
def test_half_of_the_noise_is_refuted(loop):
    result = audit(partial(loop, noise=NOISE / 2), trials=16)
    assert result.verdict is Verdict.REFUTED


def test_half_of_the_noise_is_refuted_in_one_run_of_independent_canaries():
    assert (
        audit(partial(train, noise=NOISE / 2), trials=1, design=CoinFlip(128), independent_canaries=True).verdict
        is Verdict.REFUTED
    )


@pytest.mark.parametrize("leaf", sorted(PARAMETERS))
def test_noise_missing_in_one_array_is_refuted(leaf):
    assert audit(partial(train, silent=leaf), trials=16).verdict is Verdict.REFUTED


def run_script(*, workers, store="none", interrupted_after=100):
    """Audit in a new process, in which JAX has not been used; return its exit code and the scores and coins that it prints."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.integrations.jax_training", workers, store, interrupted_after]
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert finished.returncode in (0, INTERRUPTED), finished.stderr
    return finished.returncode, finished.stdout.splitlines()


@pytest.mark.slow
def test_results_do_not_depend_on_workers_or_interruptions(tmp_path):
    store = tmp_path / "audit.db"
    code, scores = run_script(workers=2, store=store, interrupted_after=2)
    assert (code, scores) == (INTERRUPTED, [])
    assert sample_targets.finished(store) >= 2
    resumed, whole = run_script(workers=1, store=store), run_script(workers=1)
    assert resumed == whole
    assert len(whole[1]) == 8 * 8


def test_workers_forked_after_use_of_jax_end_the_audit():
    """Without this error, they would wait forever for threads that exist in their parent only."""
    jnp.zeros(1).block_until_ready()
    with pytest.raises(AuditFailed, match="JAX was used before this process was forked"):
        audit(train, trials=4, workers=2)


def leave_out_planting(records, planting, key):
    return PARAMETERS


def return_first_planting(records, planting, key):
    train(records, planting, key)
    return PARAMETERS, planting


def omit_released(records, planting, key):
    _, planting = planting.add(jax.tree.map(jnp.asarray, PARAMETERS), clip_norm=1.0)
    return PARAMETERS, planting


def other_shapes(records, planting, key):
    sums, planting = planting.add({"weights": jnp.zeros(3), "bias": jnp.zeros(16)}, clip_norm=1.0)
    return sums, planting.released(sums)


def omit_add(records, planting, key):
    return PARAMETERS, planting.released(PARAMETERS)


def return_two(records, planting, key):
    return planting, planting


class ReturnAnother:
    """Returns the planting of its first run in every run."""

    def __init__(self):
        self.first = None

    def __call__(self, records, planting, key):
        self.first = self.first or train(records, planting, key)
        return self.first


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (leave_out_planting, "train returned 0 plantings"),
        (return_two, "train returned 2 plantings"),
        (return_first_planting, "planted no canaries"),
        (omit_released, "the last step called planting.add without planting.released"),
        (omit_add, "planting.released was called without planting.add"),
        (other_shapes, r"shape \(3,\) at weights, but the parameters of the target have \(8, 16\)"),
        (ReturnAnother(), "the planting of another run"),
    ],
)
def test_misuse_ends_the_audit(loop, message):
    with pytest.raises(AuditFailed, match=message):
        audit(loop, trials=4)


def ignore_key(records, planting, key):
    return train(records, planting, jax.random.key(0))


@pytest.mark.parametrize("loop", [ignore_key, partial(train, noise=0.0), partial(train, same_noise=True)])
def test_noise_that_is_the_same_in_every_run_ends_the_audit(loop):
    with pytest.raises(AuditFailed, match="two pilot runs with different seeds gave exactly the same result"):
        audit(loop, trials=4, pilots=2)


def test_training_without_noise_is_refuted_without_pilots():
    assert audit(partial(train, noise=0.0), trials=16).verdict is Verdict.REFUTED


def test_invalid_arguments_are_refused():
    for options, message in (
        ({"parameters": {}}, "parameters has no arrays"),
        ({"parameters": {"a": np.zeros(3, int)}}, "floating-point numbers, got int64 at a"),
        ({"parameters": {"a": 1.0}}, "floating-point numbers, got float at a"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be above 0"),
        ({"sampling_rate": 1.5}, "rate must be above 0 and at most 1"),
        ({"steps": 0}, "steps must be"),
        ({"claim": Claim(1.0, 1e-5)}, "give either delta"),
        ({"delta": None}, "give either delta"),
        ({"design": LeaveOneOut(4, 4)}, "need coin-flip canaries"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            audit(train, trials=2, **options)
    with pytest.raises(InvalidArgument, match="train must be callable"):
        jax_target(3, make_records(), **ACCOUNTANT)


@pytest.mark.slow
def test_a_point_is_audited_with_the_curve_of_the_steps():
    target = jax_target(train, make_records(), **ACCOUNTANT, pilots=0)
    curve = Claim.dpsgd(noise_multiplier=NOISE, sampling_rate=0.2, steps=STEPS).curve
    assert target.curve == curve
    result = lidp.audit(target, claim=Claim(curve.epsilon(1e-6), 1e-6), design=CoinFlip(8), trials=2)
    assert result.claim.curve == curve


def test_records_on_a_device_are_as_those_of_numpy():
    features, labels = make_records()
    targets = [
        jax_target(train, records, **ACCOUNTANT) for records in ((features, labels), (jnp.asarray(features), labels))
    ]
    assert fingerprint(targets[0]) == fingerprint(targets[1])
    assert all(type(column) is np.ndarray for column in targets[1].dataset.records)


def test_shapes_serve_as_parameters():
    shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, PARAMETERS))
    targets = [jax_target(train, (), **ACCOUNTANT | {"parameters": given}) for given in (PARAMETERS, shapes)]
    assert fingerprint(targets[0]) == fingerprint(targets[1])

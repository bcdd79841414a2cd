"""Trainers: records of every type, pilot runs, false alarms and power."""

import numpy as np
import pytest

import lidp
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, ReplaceOne, Verdict
from lidp.curves.gaussian import gaussian_epsilon
from lidp.integrations.record_sets import CanaryPool, PooledRecords, mislabelled_records
from lidp.integrations.trainers import PilotWarning, trainer_target
from lidp.testing.simulations import assert_covers


def noisy_mean(noise):
    """Return a trainer whose "model" is the sum of clipped records with Gaussian noise, exactly the Gaussian mechanism."""

    def train(records, seed):
        rows = np.array([np.asarray(record, float) for record in records])
        norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
        return (rows / norms).sum(axis=0) + noise * np.random.default_rng(seed).standard_normal(rows.shape[1])

    return train


def loss(model, record):
    return -float(np.dot(model, record))


RECORDS = np.random.default_rng(0).standard_normal((30, 12)) / 10
POOL = np.eye(12)


@pytest.mark.parametrize(
    "make", [np.asarray, list, lambda rows: [tuple(row) for row in rows]], ids=["array", "list", "tuples"]
)
@pytest.mark.parametrize("design", [CoinFlip(6), LeaveOneOut(6, 6)], ids=["coin flips", "leave one out"])
def test_too_little_noise_is_refuted_for_every_type_of_records(make, design):
    target = trainer_target(noisy_mean(0.1), loss, make(RECORDS), make(POOL), pilots=4)
    result = lidp.audit(target, claim=Claim(1.0, 1e-5), trials=60, design=design)
    assert result.verdict is Verdict.REFUTED
    assert result.preparation_models == 4


def test_too_little_noise_is_refuted_under_replace_one():
    target = trainer_target(noisy_mean(0.1), loss, RECORDS, POOL, pilots=0)
    claim = Claim(1.0, 1e-5, "replace-one")
    assert lidp.audit(target, claim=claim, trials=60, design=ReplaceOne(6, 6)).verdict is Verdict.REFUTED


@pytest.mark.parametrize("pilots", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_false_alarms_at_an_exactly_tight_null(pilots):
    target = trainer_target(noisy_mean(1.0), loss, RECORDS, POOL, pilots=pilots)
    claim = Claim(gaussian_epsilon(1.0, 1e-3), 1e-3)
    alarms = sum(
        lidp.audit(target, claim=claim, trials=20, design=CoinFlip(6), seed=seed).verdict is Verdict.REFUTED
        for seed in range(100)
    )
    assert_covers(alarms, 100, 0.05)


def test_trainers_of_columns_get_columns():
    x, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2, 0, 1, 2])
    seen = []

    def train(records, seed):
        seen.append(records)
        return 0.0

    pool = mislabelled_records((x, y), 5)
    target = trainer_target(train, lambda model, record: float(record[1]), (x, y), pool, pilots=1)
    lidp.audit(target, claim=Claim(1.0), trials=3, design=CoinFlip(3))
    assert seen[0][0].shape == (6, 2)  # a pilot run has no canaries
    for features, labels in seen:
        assert len(features) == len(labels)
        np.testing.assert_array_equal(features[:6], x)
    assert {len(labels) for _, labels in seen} - {6}


def test_mislabelled_records_have_wrong_labels():
    x, y = np.arange(20.0).reshape(10, 2), np.array(list("abcabcabca"))
    features, labels = mislabelled_records((x, y), 200, seed=3)
    right = {tuple(row): label for row, label in zip(x, y, strict=True)}
    assert all(right[tuple(row)] != label for row, label in zip(features, labels, strict=True))
    assert set(labels) == set("abc")
    with pytest.raises(InvalidArgument, match="at least 2 different labels"):
        mislabelled_records((x, np.zeros(10)))
    with pytest.raises(InvalidArgument, match="two arrays"):
        mislabelled_records(x)


def test_a_trainer_that_changes_its_records_changes_only_its_copy():
    def overwrites_records(records, seed):
        for record in records:
            record[:] = 0
        return np.zeros(12)

    for make in (np.asarray, lambda rows: [row.copy() for row in rows]):
        records, pool = make(RECORDS.copy()), make(POOL.copy())
        lidp.audit(
            trainer_target(overwrites_records, loss, records, pool, pilots=0),
            claim=Claim(1.0),
            trials=2,
            design=CoinFlip(4),
        )
        np.testing.assert_array_equal(np.array(records), RECORDS)
        np.testing.assert_array_equal(np.array(pool), POOL)


def test_failed_pilot_runs_are_left_out_unless_all_fail():
    def train(records, seed):
        if seed % 2:
            raise RuntimeError("no luck")
        return noisy_mean(1.0)(records, seed)

    target = trainer_target(train, loss, RECORDS, POOL, pilots=6)
    with pytest.warns(
        PilotWarning, match="^[1-5] of 6 pilot runs failed and are left out, the first with: no luck; repair"
    ):
        result = lidp.audit(target, claim=Claim(5.0, 1e-5), trials=20, design=CoinFlip(4))
    assert 0 < result.failed_runs < 20

    def never(records, seed):
        raise RuntimeError("no luck at all")

    with pytest.raises(AuditFailed, match="all 2 pilot runs failed, the first with: no luck at all"):
        lidp.audit(trainer_target(never, loss, RECORDS, POOL, pilots=2), claim=Claim(1.0), trials=2)
    worthless = trainer_target(noisy_mean(1), lambda m, r: float("nan") if r[3] else 0.0, RECORDS, POOL, pilots=2)
    with pytest.raises(AuditFailed, match="the loss on record 3 of the pool is not finite"):
        lidp.audit(worthless, claim=Claim(1.0), trials=2)


def test_invalid_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="loss must be callable, got 3"):
        trainer_target(noisy_mean(1), 3, RECORDS, POOL)
    with pytest.raises(InvalidArgument, match="must have the same type"):
        PooledRecords((RECORDS, RECORDS), POOL)
    with pytest.raises(InvalidArgument, match="the same length, got \\[29, 30\\]"):
        len(PooledRecords((RECORDS, RECORDS[1:]), (POOL, POOL)))
    with pytest.raises(InvalidArgument, match="the pool of canaries is empty"):
        PooledRecords([1, 2], [])
    with pytest.raises(InvalidArgument, match="size must be"):
        CanaryPool(0)

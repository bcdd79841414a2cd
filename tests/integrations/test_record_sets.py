"""Changes of records in place, by a run or a loss, affect neither other runs nor the scoring, for records of any type."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, Verdict  # noqa: E402
from lidp.integrations.record_sets import PooledRecords, concatenate, copy_records, record, select, snapshot  # noqa: E402
from lidp.integrations.torch import Loop, PlantedRecords, torch_target  # noqa: E402
from lidp.integrations.trainers import trainer_target  # noqa: E402


class NormalisedInPlace(torch.utils.data.Dataset):
    """A data set whose items change when they are read, a mistake that training does not reveal."""

    def __init__(self, size):
        self.x = torch.full((size, 2), 5.0)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, number):
        features = self.x[number]
        features -= 1.0
        return features, 0


class Opened(torch.utils.data.Dataset):
    """Records that hold an open file, which cannot be copied."""

    def __init__(self):
        self.file = open(__file__, encoding="utf-8")  # noqa: SIM115, PTH123

    def __len__(self):
        return 1

    def __getitem__(self, number):
        return number


def constant_model(records, _):
    """Read all records, and return a constant: ε = 0."""
    for number in range(len(records)):
        records[number]
    return torch.zeros(1)


def first_feature(_model, item):
    return float(item[0][0])


@pytest.mark.parametrize("make", ["torch_target", "trainer_target"])
def test_items_changed_by_reading_do_not_refute_a_true_claim(make):
    # The mechanism releases novalue. False-failure probability: 1e-6, that of the audit.
    records, pool = NormalisedInPlace(4), NormalisedInPlace(2000)
    if make == "torch_target":
        target = torch_target(constant_model, records, canaries=pool, loss=first_feature, pilots=0)
    else:
        target = trainer_target(constant_model, first_feature, records, pool, pilots=0)
    result = lidp.audit(target, claim=Claim(0.1, 0), trials=60, design=CoinFlip(16), failure_probability=1e-6)
    assert result.verdict is not Verdict.REFUTED
    assert result.bound.epsilon == 0


ARRAY = np.arange(12.0).reshape(6, 2)
KINDS = {
    "array": lambda: ARRAY.copy(),
    "array of objects": lambda: np.array([[1.0], [2.0, 3.0], [4.0]], dtype=object),
    "columns": lambda: (ARRAY.copy(), np.arange(6)),
    "columns of tensors": lambda: (torch.tensor(ARRAY), torch.arange(6)),
    "tensor": lambda: torch.tensor(ARRAY),
    "list": lambda: [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
    "list of views": lambda: list(torch.tensor(ARRAY)),
    "list of dicts": lambda: [{"x": np.array([1.0, 2.0])}, {"x": np.array([3.0])}],
    "tensor data set": lambda: torch.utils.data.TensorDataset(torch.tensor(ARRAY), torch.arange(6)),
    "subset": lambda: torch.utils.data.Subset(torch.utils.data.TensorDataset(torch.tensor(ARRAY)), [1, 3, 5]),
    "normalised in place": lambda: NormalisedInPlace(5),
}


def overwrite(value):
    """Overwrite all numbers in place, and return their previous values."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in overwrite(part)]
    if isinstance(value, (np.ndarray, torch.Tensor)) and value.dtype != object:
        before = value.reshape(-1).tolist()
        value[...] = 77
        return before
    if isinstance(value, (int, float, np.generic)):
        return [float(value)]
    if isinstance(value, list) and all(isinstance(part, float) for part in value):
        before = list(value)
        value[:] = [77.0] * len(value)
        return before
    return [number for index in range(len(value)) for number in overwrite(value[index])]


@pytest.mark.parametrize("kind", KINDS)
def test_every_run_gets_the_original_records(kind):
    records, pool = KINDS[kind](), KINDS[kind]()
    seen = []

    def train(given, _planting):
        seen.append(overwrite(given))

    data = PooledRecords(records, pool)
    canaries = np.array([0, 1, 0])
    for _ in range(3):
        train(data.with_canaries(canaries), None)
    assert seen[0]
    assert seen[0] == seen[1] == seen[2]
    loop = Loop(lambda given, planting: train(given, planting), threads=1)
    seen.clear()
    for _ in range(3):
        planting = loop.planting(data.with_canaries(canaries), np.random.default_rng(0))
        loop.run(PlantedRecords(records), planting, np.random.default_rng(0))
    assert seen[0]
    assert seen[0] == seen[1] == seen[2]
    assert overwrite(records) == seen[0]


@pytest.mark.parametrize("kind", KINDS)
def test_two_canaries_of_the_same_record_share_no_memory(kind):
    two = select(snapshot(KINDS[kind]()), np.array([1, 1]))
    first = overwrite(record_of(two, 0))
    assert overwrite(record_of(two, 1)) == first
    assert 77 not in first


def record_of(records, number):
    """Return a record itself, not a copy; a part of an array is a view."""
    return tuple(column[number] for column in records) if isinstance(records, tuple) else records[number]


@pytest.mark.parametrize("kind", KINDS)
def test_record_returns_a_new_copy_each_time(kind):
    pool = snapshot(KINDS[kind]())
    assert overwrite(record(pool, 1)) == overwrite(record(pool, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_concatenate_and_copy_leave_the_records_unchanged(kind):
    records = KINDS[kind]()
    pool = snapshot(records)
    overwrite(concatenate(records, select(pool, np.array([0]))))
    overwrite(copy_records(records))
    assert overwrite(records) == overwrite(KINDS[kind]())


def test_snapshots_of_a_pool_with_random_augmentation_are_equal():
    class Augmented(NormalisedInPlace):
        def __getitem__(self, number):
            return self.x[number] + torch.randn(2), 0

    torch.manual_seed(1)
    one = snapshot(Augmented(3))
    after = torch.randn(1)
    torch.manual_seed(1)
    assert torch.randn(1) == after, "the snapshot must preserve the global generators"
    torch.manual_seed(2)
    two = snapshot(Augmented(3))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))


def test_records_that_cannot_be_copied_are_refused_with_a_remedy():
    opened = Opened()
    try:
        with pytest.raises(AuditFailed, match="Opened cannot be copied .*__deepcopy__"):
            PooledRecords(opened, [1]).with_canaries([0])
        with pytest.raises(AuditFailed, match="__deepcopy__"):
            PooledRecords([1], opened)
    finally:
        opened.file.close()


class RecordsWithGenerator(torch.utils.data.Dataset):
    """Records that hold a generator, of which every run would get the same copy."""

    def __init__(self, generator):
        self.parts = {"generator": [generator]}

    def __len__(self):
        return 1

    def __getitem__(self, number):
        return 0.0


GENERATORS = {
    "Generator": lambda: np.random.default_rng(0),
    "PCG64": lambda: np.random.PCG64(0),
    "RandomState": lambda: np.random.RandomState(0),
    "Random": lambda: random.Random(0),  # noqa: S311  # no secrets
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_records_with_a_generator_are_refused_before_the_first_run(kind):
    def train(records, seed):
        raise AssertionError("must not run")

    generator = GENERATORS[kind]()
    for records in (RecordsWithGenerator(generator), [1.0, {"own": generator}]):
        with pytest.raises(AuditFailed, match=rf"{kind}\).*Create the generator in the mechanism or in train"):
            trainer_target(train, first_feature, records, [1.0], pilots=0)
        with pytest.raises(AuditFailed, match="random number generator"):
            torch_target(train, records)
    with pytest.raises(AuditFailed, match="random number generator"):
        trainer_target(train, first_feature, [1.0], RecordsWithGenerator(generator), pilots=0)


def test_a_loader_with_a_generator_is_refused():
    data = torch.utils.data.TensorDataset(torch.arange(8))
    copy_records(torch.utils.data.DataLoader(data))
    with pytest.raises(AuditFailed, match="generator|cannot be copied"):
        copy_records(torch.utils.data.DataLoader(data, shuffle=True, generator=torch.Generator().manual_seed(0)))

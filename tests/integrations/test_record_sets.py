"""What a run or a loss does to its records in place reaches neither another run nor the scoring, whatever the records are."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, Verdict  # noqa: E402
from lidp.integrations.record_sets import PooledRecords, copied, joined, pick, record, snapshot  # noqa: E402
from lidp.integrations.torch import Loop, PlantedRecords, torch_target  # noqa: E402
from lidp.integrations.trainers import trainer_target  # noqa: E402


class NormalisedInPlace(torch.utils.data.Dataset):
    """Reading an item changes it: the kind of mistake that nobody notices while training."""

    def __init__(self, size):
        self.x = torch.full((size, 2), 5.0)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, number):
        features = self.x[number]
        features -= 1.0
        return features, 0


class Opened(torch.utils.data.Dataset):
    """Records that cannot be copied."""

    def __init__(self):
        self.file = open(__file__, encoding="utf-8")  # noqa: SIM115, PTH123

    def __len__(self):
        return 1

    def __getitem__(self, number):
        return number


def noise_alone(records, _):
    """Read all records, and return nothing but noise: ε = 0."""
    for number in range(len(records)):
        records[number]
    return torch.zeros(1)


def first_feature(_model, item):
    return float(item[0][0])


@pytest.mark.parametrize("make", ["torch_target", "trainer_target"])
def test_items_normalised_in_place_refute_no_true_claim(make):
    # The mechanism releases nothing. False-failure probability: 1e-6, that of the audit.
    records, pool = NormalisedInPlace(4), NormalisedInPlace(2000)
    if make == "torch_target":
        target = torch_target(noise_alone, records, canaries=pool, loss=first_feature, pilots=0)
    else:
        target = trainer_target(noise_alone, first_feature, records, pool, pilots=0)
    found = lidp.audit(target, claim=Claim(0.1, 0), trials=60, design=CoinFlip(16), failure_probability=1e-6)
    assert found.verdict is not Verdict.REFUTED
    assert found.bound.epsilon == 0


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


def spoil(thing):
    """Overwrite all numbers, in place, and return what they were."""
    if isinstance(thing, dict):
        return [number for value in thing.values() for number in spoil(value)]
    if isinstance(thing, (np.ndarray, torch.Tensor)) and thing.dtype != object:
        before = thing.reshape(-1).tolist()
        thing[...] = 77
        return before
    if isinstance(thing, (int, float, np.generic)):
        return [float(thing)]
    if isinstance(thing, list) and all(isinstance(part, float) for part in thing):
        before = list(thing)
        thing[:] = [77.0] * len(thing)
        return before
    return [number for place in range(len(thing)) for number in spoil(thing[place])]


@pytest.mark.parametrize("kind", KINDS)
def test_every_run_sees_the_records_as_they_were(kind):
    records, pool = KINDS[kind](), KINDS[kind]()
    seen = []

    def train(given, _planting):
        seen.append(spoil(given))

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
    assert spoil(records) == seen[0]


@pytest.mark.parametrize("kind", KINDS)
def test_canaries_that_are_the_same_record_share_no_memory(kind):
    two = pick(snapshot(KINDS[kind]()), np.array([1, 1]))
    first = spoil(record_of(two, 0))
    assert spoil(record_of(two, 1)) == first
    assert 77 not in first


def record_of(records, number):
    """A record itself, not a copy of it; a part of an array is a view."""
    return tuple(column[number] for column in records) if isinstance(records, tuple) else records[number]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_that_changes_its_record_changes_no_other_score(kind):
    pool = snapshot(KINDS[kind]())
    assert spoil(record(pool, 1)) == spoil(record(pool, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_joining_and_copying_leave_the_records_alone(kind):
    records = KINDS[kind]()
    pool = snapshot(records)
    spoil(joined(records, pick(pool, np.array([0]))))
    spoil(copied(records))
    assert spoil(records) == spoil(KINDS[kind]())


def test_a_pool_with_random_augmentation_is_the_same_every_time():
    class Augmented(NormalisedInPlace):
        def __getitem__(self, number):
            return self.x[number] + torch.randn(2), 0

    torch.manual_seed(1)
    one = snapshot(Augmented(3))
    after = torch.randn(1)
    torch.manual_seed(1)
    assert torch.randn(1) == after, "the snapshot must leave the global generators alone"
    torch.manual_seed(2)
    two = snapshot(Augmented(3))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))


def test_records_that_cannot_be_copied_are_refused_with_the_remedy():
    opened = Opened()
    try:
        with pytest.raises(AuditFailed, match="Opened cannot be copied .*__deepcopy__"):
            PooledRecords(opened, [1]).with_canaries([0])
        with pytest.raises(AuditFailed, match="__deepcopy__"):
            PooledRecords([1], opened)
    finally:
        opened.file.close()


class Noisy(torch.utils.data.Dataset):
    """Records that hold a generator, which every copy of them would bring along."""

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
    for records in (Noisy(generator), [1.0, {"own": generator}]):
        with pytest.raises(AuditFailed, match=rf"{kind}\).*Make the generator in the mechanism or in train"):
            trainer_target(train, first_feature, records, [1.0], pilots=0)
        with pytest.raises(AuditFailed, match="random number generator"):
            torch_target(train, records)
    with pytest.raises(AuditFailed, match="random number generator"):
        trainer_target(train, first_feature, [1.0], Noisy(generator), pilots=0)


def test_a_loader_with_a_generator_is_refused():
    data = torch.utils.data.TensorDataset(torch.arange(8))
    copied(torch.utils.data.DataLoader(data))
    with pytest.raises(AuditFailed, match="generator|cannot be copied"):
        copied(torch.utils.data.DataLoader(data, shuffle=True, generator=torch.Generator().manual_seed(0)))

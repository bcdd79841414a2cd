"""Features, labels and settings that are not finite in float32 are refused where they enter."""

import numpy as np
import pytest

from lidp import Claim, InvalidArgument
from lidp.canaries.examples import ExamplePool
from lidp.data import Dataset, load_npz
from lidp.errors import InvalidData
from lidp.training import DPSGD, Network, Training, training_target
from lidp.training.records import Kind, TrainingSet

X = np.ones((6, 3), np.float32)
Y = np.array([0, 1, 0, 1, 0, 1])


def data(x=X, y=Y, **options):
    return Dataset("d", x, y, X, Y, **{"classes": 2, **options})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, -1e300])
def test_features_that_are_not_finite_in_float32_are_refused(bad, tmp_path):
    x = X.astype(np.float64)
    x[4, 2] = bad
    with pytest.raises(InvalidData, match="training example 4, feature 2 is not a finite number"):
        data(x)
    np.savez(tmp_path / "d.npz", x=x, y=Y)
    with pytest.raises(InvalidData, match="example 4, feature 2 is not a finite number"):
        load_npz(tmp_path / "d.npz")
    with pytest.raises(InvalidArgument, match="example 4 of a pool: feature 2"):
        ExamplePool(x)
    with pytest.raises(InvalidData, match="training example 4: feature 2"):
        TrainingSet(x, Y, Kind.EXAMPLE)
    with pytest.raises(InvalidArgument, match="canary 4: number 2 is not finite"):
        TrainingSet(X, Y, Kind.EXAMPLE).with_canaries(np.column_stack([x, Y, Y]))
    with pytest.raises(InvalidArgument, match="unit must be above 0 and finite|must be a number"):
        TrainingSet(X, Y, Kind.EXAMPLE, unit=-abs(bad))


@pytest.mark.parametrize(
    ("large", "unit"), [(np.float32(1e36), 1000.0), (np.float32(-1e36), 1000.0), (np.uint8(255), 2e36), (np.uint8(1), 1e39)]
)
def test_features_that_are_not_finite_after_scaling_are_refused(large, unit):
    """Models are trained on features times the unit; one infinite feature would ruin the model."""
    x = np.zeros((6, 3), large.dtype)
    x[4, 2] = large
    first = "example 0: feature 0" if unit > 1e38 else "example 4: feature 2"  # an infinite unit spoils zeros, too
    with pytest.raises(InvalidData, match=f"training {first} is not a finite number of 32 bits after .* unit"):
        TrainingSet(x, Y, Kind.EXAMPLE, unit=unit)
    if x.dtype == np.uint8:
        with pytest.raises(
            InvalidData, match="training example ., feature . is not a finite number of 32 bits after .* unit"
        ):
            data(x, unit=unit)


@pytest.mark.parametrize(("large", "unit"), [(np.float32(3e38), 1.0), (np.float32(3e35), 1000.0), (np.uint8(255), 1e36)])
def test_the_largest_features_that_are_finite_after_scaling_are_accepted(large, unit):
    x = np.zeros((6, 3), large.dtype)
    x[4] = large
    planted = np.array([[3e38, -3e38, 3e38, 1.0, 0.0]])  # canaries are not scaled
    records = TrainingSet(x, Y, Kind.EXAMPLE, unit=unit).with_canaries(planted)
    trainer = DPSGD(Network(3, 2), rate=1.0, batch_size=6, steps=3, learning_rate=0.1, sigma=1.0)
    assert np.isfinite(trainer.train(records, np.random.default_rng(0))).all()


@pytest.mark.parametrize("coordinate", [-1.0, 8.0, 1e12])
def test_coordinates_beyond_the_model_are_refused(coordinate):
    trainer = DPSGD(Network(3, 2), rate=1.0, batch_size=6, steps=1, learning_rate=0.1, sigma=1.0)
    records = TrainingSet(X, Y, Kind.COORDINATE).with_canaries(np.array([[coordinate, 1.0]]))
    with pytest.raises(InvalidArgument, match="coordinates of canaries must be 0 to 7 for this model"):
        trainer.train(records, np.random.default_rng(0))


@pytest.mark.parametrize("labels", [Y + 0.5, np.where(Y, np.nan, 0.0)])
def test_labels_that_are_not_whole_numbers_are_refused(labels, tmp_path):
    with pytest.raises(InvalidData, match="labels must be whole numbers, got float64"):
        data(y=labels)
    with pytest.raises(InvalidArgument, match="labels of a pool must be whole numbers"):
        ExamplePool(X, labels)
    np.savez(tmp_path / "d.npz", x=X, y=labels)
    with pytest.raises(InvalidData, match="must be whole numbers"):
        load_npz(tmp_path / "d.npz")


@pytest.mark.parametrize("labels", [Y + 0.5, np.where(Y, np.nan, 0.0), Y - 1.0, np.where(Y, np.inf, 0.0), Y.astype(str)])
def test_records_whose_labels_are_not_whole_numbers_are_refused(labels):
    with pytest.raises(InvalidData, match="labels must be whole numbers from 0, got"):
        TrainingSet(X, labels, Kind.EXAMPLE)


@pytest.mark.parametrize("kind", [str, complex, object])
def test_records_whose_features_are_not_real_numbers_are_refused(kind):
    with pytest.raises(InvalidData, match="features must be real numbers, got"):
        TrainingSet(X.astype(kind), Y, Kind.EXAMPLE)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int64, np.uint16, bool, ">f4"])
def test_features_of_any_type_become_singles(kind):
    values = np.random.default_rng(3).integers(0, 2, (6, 3))
    for x in (
        values.astype(kind),
        np.asfortranarray(values.astype(kind)),
        np.repeat(values.astype(kind), 2, axis=1)[:, ::2],
    ):
        records = TrainingSet(x, Y, Kind.EXAMPLE)
        assert records.x.dtype == np.dtype(np.float32)
        assert records.x.flags.c_contiguous
        np.testing.assert_array_equal(records.x, values)


def test_singles_and_bytes_are_shared():
    for x in (X, X.astype(np.uint8)):
        records = TrainingSet(x, Y, Kind.EXAMPLE)
        assert records.x is x
        assert records.y is Y


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.uint64, np.float64, bool])
def test_labels_of_any_type_become_whole_numbers_of_64_bits(kind):
    y = TrainingSet(X, Y.astype(kind), Kind.EXAMPLE).y
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize(("x", "y"), [(X, Y[:-1]), (X[:-1], Y), (X[:, 0], Y), (X, Y[:, np.newaxis])])
def test_a_number_of_labels_other_than_of_examples_is_refused(x, y):
    with pytest.raises(InvalidData, match="one label per example, got shapes"):
        TrainingSet(x, y, Kind.EXAMPLE)


def test_labels_beyond_the_classes_of_the_model_are_refused():
    trainer = DPSGD(Network(3, 2), rate=1.0, batch_size=6, steps=1, learning_rate=0.1, sigma=1.0)
    for y in (Y + 1, Y - 1):
        with pytest.raises(InvalidArgument, match="labels must be"):
            trainer.train(TrainingSet(X, y, Kind.EXAMPLE), np.random.default_rng(0))
    planted = TrainingSet(X, Y, Kind.EXAMPLE).with_canaries(np.array([[1.0, 1.0, 1.0, 7.0, 0.0]]))
    with pytest.raises(InvalidArgument, match="labels must be 0 to 1 for this model, got 7 to 7"):
        trainer.train(planted, np.random.default_rng(0))


@pytest.mark.parametrize(("name", "value"), [("clip_norm", 1e-50), ("clip_norm", 1e39), ("sigma", 1e-50), ("sigma", 1e39)])
def test_a_clip_norm_or_noise_outside_the_range_of_float32_is_refused(name, value):
    with pytest.raises(InvalidArgument, match="must be 0 or between 1e-30 and 1e\\+30"):
        DPSGD(Network(3, 2), **{"rate": 1.0, "batch_size": 6, "steps": 1, "learning_rate": 0.1, "sigma": 1.0, name: value})


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("canary", ["random-gradient", "mislabelled", "tail-example"])
def test_training_on_huge_finite_features_gives_finite_models(hidden, canary):
    x = np.array(X)
    x[2] = [3e38, -1e19, 1e30]
    training = Training(hidden=hidden, epochs=2, batch_size=3)
    made = training_target(data(x), Claim(2.0, 1e-3), training=training, canary=canary, canaries=2, pilots=2)
    output = made.trainer(made.target.dataset, np.random.default_rng(0))
    assert np.isfinite(output.value).all()

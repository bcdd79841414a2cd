"""Load a user's data set from an ``.npz`` file with arrays ``x`` and ``y``."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.npz_files import load_arrays
from lidp.arrays import Ints, Singles
from lidp.data.dataset import Dataset
from lidp.data.sources import is_web_page
from lidp.errors import InvalidData

MAX_CLASSES = 10_000
"""Largest number of classes. Larger labels are probably something else, such as customer numbers."""
_NAMES = ("x", "y", "test_x", "test_y")
_EXPECTED = "expected an .npz file with arrays x and y, as np.savez writes it"


def load_npz(path: str | Path, *, test_share: float = 0.2, seed: int = 0) -> Dataset:
    """Return the data set of a file: ``x`` (flattened to rows) and ``y`` (labels from 0), for testing ``test_x`` and ``test_y``.

    Without ``test_x`` and ``test_y``, a random ``test_share`` of the examples is used for testing, which depends on the seed only.
    The number of classes is one more than the largest label; it is at most 10,000, and at most the number of examples.
    """
    path = Path(path)
    share = checks.probability(test_share=test_share)
    arrays = read_arrays(path)
    x, y = examples(path, arrays, "x", "y")
    if "test_x" in arrays:
        test_x, test_y = examples(path, arrays, "test_x", "test_y")
        if x.shape[1] != test_x.shape[1]:
            raise InvalidData(f"{path}: {x.shape[1]:,} features in x and {test_x.shape[1]:,} in test_x")
    else:
        if len(y) < 2:
            raise InvalidData(f"{path}: one example; at least two are needed, one for training and one for testing")
        order = np.random.default_rng(seed).permutation(len(y))
        testing, training = np.split(order, [min(max(1, round(share * len(y))), len(y) - 1)])
        x, y, test_x, test_y = x[training], y[training], x[testing], y[testing]
    return Dataset(path.stem, x, y, test_x, test_y, _classes(path, np.append(y, test_y)))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays x and y of a file, and test_x and test_y if it has them.

    Raises:
        InvalidData: if the file cannot be read, or x, y or one of test_x and test_y is missing.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(100)
            if not zipfile.is_zipfile(stream):
                raise InvalidData(f"{path}: {_EXPECTED}; {_describe_content(start)}")
            present, arrays = load_arrays(stream, _NAMES)
    except FileNotFoundError:
        raise InvalidData(f"{path}: there is no such file") from None
    except InvalidData:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError) as error:
        # RuntimeError: an archive with a password, or with an unsupported compression
        raise InvalidData(f"{path}: {_EXPECTED} ({getattr(error, 'strerror', None) or error})") from None
    for name, other in (("x", "y"), ("y", "x"), ("test_x", "test_y"), ("test_y", "test_x")):
        if name not in arrays and (other in arrays or name in ("x", "y")):
            raise InvalidData(f"{path}: has no array {name!r}; it has {', '.join(present) or 'none'}")
    return arrays


def examples(path: Path, arrays: dict[str, NDArray[Any]], features: str, labels: str) -> tuple[Singles, Ints]:
    """Return the features (one row per example) and the labels (whole numbers from 0) in two arrays of a file."""
    x, y = arrays[features], arrays[labels]
    if x.dtype.kind not in "biuf" or x.ndim < 2:
        raise InvalidData(
            f"{path}: {features} must be an array of numbers whose first axis is examples, got {x.dtype} of shape {x.shape}"
        )
    if y.dtype.kind not in "iu" or y.ndim != 1:
        raise InvalidData(f"{path}: {labels} must be whole numbers, one per example, got {y.dtype} of shape {y.shape}")
    if len(x) != len(y):
        raise InvalidData(
            f"{path}: {len(x):,} examples in {features} and {len(y):,} labels in {labels}; the numbers must be equal"
        )
    if not x.size:
        raise InvalidData(f"{path}: {features} is empty, of shape {x.shape}")
    if y.min() < 0 or y.max() > np.iinfo(np.int64).max:
        raise InvalidData(f"{path}: {labels} must be labels from 0, got {y.min()} to {y.max()}")
    rows = x.reshape(len(x), -1)
    index = checks.first_not_finite(rows)
    if index is not None:
        raise InvalidData(f"{path}: {features}: example {index[0]}, feature {index[1]} is not a finite number (of 32 bits)")
    return rows.astype(np.float32), y.astype(np.int64)


def _classes(path: Path, labels: Ints) -> int:
    limit = min(MAX_CLASSES, len(labels))
    if labels.max() >= limit:
        raise InvalidData(
            f"{path}: labels must be 0 to classes - 1, with at most {MAX_CLASSES:,} classes and no more than the {len(labels):,} "
            f"examples, got {labels.min()} to {labels.max()}; np.unique(y, return_inverse=True)[1] numbers them from 0"
        )
    return int(labels.max()) + 1


def _describe_content(start: bytes) -> str:
    """Describe a file that is not an ``.npz`` file by its first bytes."""
    if not start:
        return "it is empty"
    if is_web_page(start):
        return "it is a web page"
    if start.startswith(b"\x93NUMPY"):
        return "it is a single array (.npy)"
    if start.startswith(b"PK"):
        return "it is truncated or damaged"
    return f"its first bytes are {start[:8]!r}"

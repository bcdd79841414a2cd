"""Data of one's own: an ``.npz`` file with ``x`` and ``y``."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.npz_files import load_arrays
from lidp.data.dataset import Dataset
from lidp.data.places import is_web_page
from lidp.errors import InvalidData

MOST_CLASSES = 10_000
"""More classes than this are taken for labels that are something else: numbers of customers, say."""
_NAMES = ("x", "y", "test_x", "test_y")
_EXPECTED = "expected an .npz file with arrays x and y, as np.savez writes it"


def load_npz(path: str | Path, *, test_share: float = 0.2, seed: int = 0) -> Dataset:
    """Examples from ``x`` (flattened to rows) and ``y`` (labels from 0), and for testing ``test_x`` and ``test_y``.

    Without those two a random ``test_share`` of the examples is set aside, always the same one for the same seed. Labels say how
    many classes there are: one more than the largest, at most 10,000 and no more than examples.
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
            raise InvalidData(f"{path}: one example; at least two are needed, one to train on and one to test with")
        order = np.random.default_rng(seed).permutation(len(y))
        held_out, kept = np.split(order, [min(max(1, round(share * len(y))), len(y) - 1)])
        x, y, test_x, test_y = x[kept], y[kept], x[held_out], y[held_out]
    return Dataset(path.stem, x, y, test_x, test_y, _classes(path, np.append(y, test_y)))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays x and y of a file, and test_x and test_y if it has them: both or neither."""
    try:
        with path.open("rb") as stream:
            start = stream.read(100)
            if not zipfile.is_zipfile(stream):
                raise InvalidData(f"{path}: {_EXPECTED}; {_instead(start)}")
            present, arrays = load_arrays(stream, _NAMES)
    except FileNotFoundError:
        raise InvalidData(f"{path}: there is no such file") from None
    except InvalidData:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError) as error:
        # RuntimeError: an archive with a password, or packed in a way that Python cannot undo
        raise InvalidData(f"{path}: {_EXPECTED} ({getattr(error, 'strerror', None) or error})") from None
    for name, other in (("x", "y"), ("y", "x"), ("test_x", "test_y"), ("test_y", "test_x")):
        if name not in arrays and (other in arrays or name in ("x", "y")):
            raise InvalidData(f"{path}: has no array {name!r}; it has {', '.join(present) or 'none'}")
    return arrays


def examples(
    path: Path, arrays: dict[str, NDArray[Any]], features: str, labels: str
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features, a row an example, and whole numbers from 0 as labels, from two arrays of a file."""
    x, y = arrays[features], arrays[labels]
    if x.dtype.kind not in "biuf" or x.ndim < 2:
        raise InvalidData(
            f"{path}: {features} must be an array of numbers, examples first, got {x.dtype} of shape {x.shape}"
        )
    if y.dtype.kind not in "iu" or y.ndim != 1:
        raise InvalidData(f"{path}: {labels} must be whole numbers, one a label, got {y.dtype} of shape {y.shape}")
    if len(x) != len(y):
        raise InvalidData(
            f"{path}: {len(x):,} examples in {features} and {len(y):,} labels in {labels}; there must be as many of both"
        )
    if not x.size:
        raise InvalidData(f"{path}: {features} is empty, of shape {x.shape}")
    if y.min() < 0 or y.max() > np.iinfo(np.int64).max:
        raise InvalidData(f"{path}: {labels} must be labels from 0, got {y.min()} to {y.max()}")
    rows = x.reshape(len(x), -1)
    place = checks.first_not_finite(rows)
    if place is not None:
        raise InvalidData(f"{path}: {features}: example {place[0]}, feature {place[1]} is not a finite number (of 32 bits)")
    return rows.astype(np.float32), y.astype(np.int64)


def _classes(path: Path, labels: NDArray[np.int64]) -> int:
    most = min(MOST_CLASSES, len(labels))
    if labels.max() >= most:
        raise InvalidData(
            f"{path}: labels must be 0 to classes - 1, with at most {MOST_CLASSES:,} classes and no more than the {len(labels):,} "
            f"examples, got {labels.min()} to {labels.max()}; np.unique(y, return_inverse=True)[1] numbers them from 0"
        )
    return int(labels.max()) + 1


def _instead(start: bytes) -> str:
    """What a file that is no ``.npz`` seems to be."""
    if not start:
        return "it is empty"
    if is_web_page(start):
        return "it is a web page, saved in its place"
    if start.startswith(b"\x93NUMPY"):
        return "it is a single array (.npy)"
    if start.startswith(b"PK"):
        return "it is truncated or damaged"
    return f"its first bytes are {start[:8]!r}"

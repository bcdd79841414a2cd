"""Data of one's own: an ``.npz`` file with ``x`` and ``y``."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from lidp import checks
from lidp.data.dataset import Dataset
from lidp.errors import InvalidData


def load_npz(path: str | Path, *, test_share: float = 0.2, seed: int = 0) -> Dataset:
    """Examples from ``x`` (flattened to rows) and ``y`` (labels from 0), and for testing ``test_x`` and ``test_y``.

    Without those two a random ``test_share`` of the examples is set aside, always the same one for the same seed.
    """
    path = Path(path)
    share = checks.probability(test_share=test_share)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InvalidData(f"{path}: there is no such file") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidData(f"{path}: expected an .npz file with arrays x and y ({error})") from None
    missing = [name for name in ("x", "y") if name not in arrays]
    if missing:
        raise InvalidData(f"{path}: has no array {missing[0]!r}; it has {', '.join(arrays) or 'none'}")
    x, y = _pair(path, arrays["x"], arrays["y"])
    if "test_x" in arrays and "test_y" in arrays:
        test_x, test_y = _pair(path, arrays["test_x"], arrays["test_y"])
    else:
        order = np.random.default_rng(seed).permutation(len(y))
        held_out, kept = np.split(order, [max(1, round(share * len(y)))])
        x, y, test_x, test_y = x[kept], y[kept], x[held_out], y[held_out]
    return Dataset(path.stem, x, y, test_x, test_y, int(max(y.max(initial=0), test_y.max(initial=0))) + 1)


def _pair(path: Path, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not np.issubdtype(x.dtype, np.number) or np.iscomplexobj(x) or x.ndim < 2:
        raise InvalidData(f"{path}: x must be an array of numbers, examples first, got {x.dtype} of shape {x.shape}")
    if not np.issubdtype(y.dtype, np.integer) or y.ndim != 1:
        raise InvalidData(f"{path}: y must be whole numbers, one a label, got {y.dtype} of shape {y.shape}")
    if len(x) != len(y):
        raise InvalidData(f"{path}: {len(x):,} examples and {len(y):,} labels; there must be as many of both")
    return x.reshape(len(x), -1).astype(np.float32), y.astype(np.int64)

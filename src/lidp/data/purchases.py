"""Purchase-100 (Shokri et al. 2017), and synthetic purchases of the same shape that need no file.

Both have 600 binary features (was this bought?) and 100 classes.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.data.dataset import Dataset
from lidp.data.npz import load_npz
from lidp.data.places import cache, fetch, own_folders
from lidp.errors import InvalidData

FEATURES, CLASSES = 600, 100
TRAINING, TEST = 20_000, 5_000
URL = "https://www.comp.nus.edu.sg/~reza/files/dataset_purchase.tgz"
_REMEDY = "name a file dataset_purchase.tgz, .csv or .npz, or put it into $LIDP_DATA, or allow download=True"


def load_purchases(path: str | Path | None = None, *, seed: int = 0, download: bool = False, url: str = URL) -> Dataset:
    """Purchase-100: 20,000 training and 5,000 test examples, a choice that the seed fixes.

    From ``dataset_purchase.tgz`` as published, from the table in it (a line an example: a label from 1 to 100, then 600 zeros and
    ones), or from an ``.npz`` with ``x`` and ``y``.
    """
    found = _find(None if path is None else Path(path), download, url)
    if found.suffix == ".npz":
        return load_npz(found, seed=seed)
    table = _read_table(found)
    if len(table) < TRAINING + TEST:
        raise InvalidData(f"{found}: {len(table):,} examples, at least {TRAINING + TEST:,} are needed")
    chosen = table[np.random.default_rng(seed).permutation(len(table))[: TRAINING + TEST]]
    x, y = chosen[:, 1:].astype(np.uint8), chosen[:, 0].astype(np.int64) - 1
    return _split("purchase-100", x, y, TRAINING, CLASSES)


def synthetic_purchases(
    training: int = TRAINING, test: int = TEST, *, features: int = FEATURES, classes: int = CLASSES, seed: int = 0
) -> Dataset:
    """Purchases made up: each class is a kind of customer who buys every item with a probability of its own.

    Most items are rarely bought by anyone and a few are typical of a class, as in the real data.
    """
    training, test = checks.count(training=training), checks.count(test=test)
    features, classes = checks.count(features=features), checks.count(classes=classes)
    rng = np.random.default_rng([seed, features, classes])
    common = rng.beta(0.3, 2.0, features)
    typical = rng.random((classes, features)) < 0.1
    chances = np.where(typical, 0.2 + 0.6 * rng.random((classes, features)), 0.7 * common)
    y = rng.integers(0, classes, training + test)
    x = (rng.random((training + test, features)) < chances[y]).astype(np.uint8)
    return _split("synthetic-purchases", x, y, training, classes)


def _split(name: str, x: NDArray[np.uint8], y: NDArray[np.int64], training: int, classes: int) -> Dataset:
    return Dataset(name, x[:training], y[:training], x[training:].astype(np.float32), y[training:], classes)


def _find(path: Path | None, download: bool, url: str) -> Path:
    if path is not None:
        if not path.is_file():
            raise InvalidData(f"{path}: there is no such file; {_REMEDY}")
        return path
    folders = [*own_folders("purchase"), cache()]
    names = ("dataset_purchase.tgz", "dataset_purchase", "dataset_purchase.csv", "purchase.npz")
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    if not download:
        raise InvalidData(f"Purchase-100 is not in {', '.join(map(str, folders))}; {_REMEDY}")
    fetch(url, cache() / names[0], _REMEDY)
    return cache() / names[0]


def _read_table(path: Path) -> NDArray[np.int64]:
    """The lines of the table, unpacked if need be."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                member = next((part for part in archive if part.isfile() and "purchase" in part.name), None)
                if member is None:
                    raise InvalidData(f"{path}: expected a file dataset_purchase in the archive")
                text = archive.extractfile(member).read()  # type: ignore[union-attr]  # a file, as was asked for
        else:
            text = path.read_bytes()
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.int64, ndmin=2)
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        raise InvalidData(f"{path}: cannot be read as a table of whole numbers: {error}") from None
    if table.shape[1] != FEATURES + 1:
        raise InvalidData(f"{path}: {table.shape[1]} columns, expected a label and {FEATURES} features")
    labels, bits = table[:, 0], table[:, 1:]
    if labels.min() < 1 or labels.max() > CLASSES:
        raise InvalidData(f"{path}: labels from {labels.min()} to {labels.max()}, expected 1 to {CLASSES}")
    if not np.isin(bits, (0, 1)).all():
        raise InvalidData(f"{path}: features must be 0 or 1")
    return table

"""Purchase-100 (Shokri et al. 2017), and synthetic purchases of the same shape that need no file.

Both have 600 binary features (whether a customer bought an item) and 100 classes.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.arrays import Bytes, Ints
from lidp.data.dataset import Dataset
from lidp.data.idx import unpack
from lidp.data.npz import examples, read_arrays
from lidp.data.sources import DOWNLOAD, cache_folder, fetch, is_web_page, read, user_folders
from lidp.errors import InvalidData

FEATURES, CLASSES = 600, 100
TRAINING, TEST = 20_000, 5_000
PUBLISHED = 197_324
"""Number of examples in the published file. No digest of it is published, so that downloads are checked by this number."""
MAX_BYTES = 2**29
"""Largest unpacked size of an archive; the published one has 238 million bytes."""
URL = "https://www.comp.nus.edu.sg/~reza/files/dataset_purchase.tgz"
FILES = ("dataset_purchase.tgz", "dataset_purchase", "dataset_purchase.csv", "purchase.npz")
_EXPECTED = (
    f"Purchase-100 is a table with a label from 1 to {CLASSES} and {FEATURES} zeros and ones per line ({FILES[0]}, or the file in "
    f"it), or an .npz file with the same data as x and y (from 0 to {CLASSES - 1})"
)
_REMEDY = (
    f"to get it, download {URL} and pass it as path or --data, or put it into $LIDP_DATA, or pass none and allow {DOWNLOAD}"
)
_ADVICE = f"{_EXPECTED}; {_REMEDY}"

Table = tuple[Bytes, Ints]


def load_purchases(path: str | Path | None = None, *, seed: int = 0, download: bool = False, url: str = URL) -> Dataset:
    """Return Purchase-100: 20,000 training and 5,000 test examples, which the seed selects.

    The file is ``dataset_purchase.tgz`` as published, the table in it (one line per example: a label from 1 to 100, then 600 zeros
    and ones), or an ``.npz`` file with ``x`` and ``y`` (labels from 0 to 99). It is read from ``path``. Without that, the folders
    ``$LIDP_DATA``, its subfolder ``purchase`` and the cache (``~/.cache/lidp``) are searched; if none has it and ``download`` is
    true, it is downloaded into the cache. With ``download``, a damaged file in the cache is downloaded again.
    """
    x, y = _load(None if path is None else Path(path), download, url)
    chosen = np.random.default_rng(seed).permutation(len(y))[: TRAINING + TEST]
    return _split("purchase-100", x[chosen], y[chosen], TRAINING, CLASSES)


def synthetic_purchases(
    training: int = TRAINING, test: int = TEST, *, features: int = FEATURES, classes: int = CLASSES, seed: int = 0
) -> Dataset:
    """Return synthetic purchases: each class is a type of customer, who buys each item with a probability of that type.

    As in the real data, most items are rarely bought, and a few are typical of a class.
    """
    training, test = checks.count(training=training), checks.count(test=test)
    features, classes = checks.count(features=features), checks.count(classes=classes)
    rng = np.random.default_rng([seed, features, classes])
    common = rng.beta(0.3, 2.0, features)
    typical = rng.random((classes, features)) < 0.1
    probabilities = np.where(typical, 0.2 + 0.6 * rng.random((classes, features)), 0.7 * common)
    y = rng.integers(0, classes, training + test)
    x = (rng.random((training + test, features)) < probabilities[y]).astype(np.uint8)
    return _split("synthetic-purchases", x, y, training, classes)


def _split(name: str, x: Bytes, y: Ints, training: int, classes: int) -> Dataset:
    return Dataset(name, x[:training], y[:training], x[training:].astype(np.float32), y[training:], classes)


def _load(path: Path | None, download: bool, url: str) -> Table:
    """Return all examples, from an existing or a downloaded file."""
    existing = _find(path, download)
    if existing is not None:
        try:
            return _read(existing)
        except InvalidData:
            if path is not None or not download or existing.parent != cache_folder():
                raise
    return fetch(url, cache_folder() / FILES[0], _ADVICE, _parse_published)


def _find(path: Path | None, download: bool) -> Path | None:
    if path is not None:
        if not path.is_file():
            problem = "is a folder, not a file" if path.is_dir() else "there is no such file"
            raise InvalidData(f"{path}: {problem}; {_ADVICE}")
        return path
    folders = [*user_folders("purchase"), cache_folder()]
    for folder in folders:
        for name in FILES:
            if (folder / name).is_file():
                return folder / name
    if not download:
        raise InvalidData(f"Purchase-100 is not in {', '.join(map(str, folders))}; {_ADVICE}")
    return None


def _read(path: Path) -> Table:
    hint = "; for other data use load_npz, or another --preset" if path.suffix == ".npz" else ""
    try:
        return _read_npz(path) if path.suffix == ".npz" else _parse_table(read(path), str(path))
    except InvalidData as error:
        raise InvalidData(f"{error}; {_ADVICE}{hint}") from None


def _parse_published(content: bytes, source: str) -> Table:
    try:
        x, y = _parse_table(content, source)
        if len(y) != PUBLISHED:
            raise InvalidData(f"{source}: {len(y):,} examples, expected {PUBLISHED:,}")
    except InvalidData as error:
        raise InvalidData(f"{error}; {_ADVICE}") from None
    return x, y


def _read_npz(path: Path) -> Table:
    arrays = read_arrays(path)
    if "test_x" in arrays:
        raise InvalidData(
            f"{path}: expected x and y only, from which the seed selects the test examples, but got test_x as well"
        )
    x, y = examples(path, arrays, "x", "y")
    return _check(x, y, str(path), first=0)


def _parse_table(content: bytes, source: str) -> Table:
    """Return the examples of a table, which may be packed."""
    text = _unpack(content, source)
    if not text.strip():
        raise InvalidData(f"{source}: is empty")
    if is_web_page(text):
        raise InvalidData(f"{source}: expected a table, but this is a web page")
    try:
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.int16, ndmin=2, comments=None)
    except ValueError as error:  # numpy's advice to its callers follows a semicolon
        raise InvalidData(
            f"{source}: cannot be read as a table of whole numbers: {str(error).partition(';')[0]:.200}"
        ) from None
    return _check(table[:, 1:], table[:, 0], source, first=1)


def _unpack(content: bytes, source: str) -> bytes:
    """Return the table, extracted from its archive if it is in one."""
    # Unpacked as a whole first, with a limit: the headers of an archive may state any size.
    unpacked = unpack(content, source, MAX_BYTES)
    damaged = f"{source}: cannot be unpacked, it is truncated or damaged"
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            member = next((part for part in archive if part.isfile() and "purchase" in part.name), None)
            if member is None:
                raise InvalidData(f"{source}: expected a file dataset_purchase in the archive")
            if member.size > MAX_BYTES:  # a sparse file may be larger than the archive
                raise InvalidData(f"{source}: {member.name} has {member.size:,} bytes, at most {MAX_BYTES:,} are expected")
            return archive.extractfile(member).read()  # type: ignore[union-attr]  # isfile() above
    except tarfile.ReadError:
        if unpacked is content:  # no archive
            return content
        raise InvalidData(damaged) from None
    except (OSError, EOFError, tarfile.TarError, zlib.error):  # the messages of tarfile describe its modes of opening
        raise InvalidData(damaged) from None


def _check(x: NDArray[np.generic], labels: NDArray[np.integer], source: str, *, first: int) -> Table:
    """Return features, and labels from 0, after checking that they can be Purchase-100; ``first`` is the smallest label."""
    if x.shape[1] != FEATURES:
        raise InvalidData(f"{source}: {x.shape[1]} features, expected {FEATURES}")
    last = first + CLASSES - 1
    if labels.min() < first or labels.max() > last:
        raise InvalidData(f"{source}: labels from {labels.min()} to {labels.max()}, expected {first} to {last}")
    if not ((x == 0) | (x == 1)).all():
        raise InvalidData(f"{source}: features must be 0 or 1")
    if len(labels) < TRAINING + TEST:
        raise InvalidData(f"{source}: {len(labels):,} examples, at least {TRAINING + TEST:,} are needed")
    return x.astype(np.uint8), labels.astype(np.int64) - first

"""Purchase-100 (Shokri et al. 2017), and synthetic purchases of the same shape that need no file.

Both have 600 binary features (was this bought?) and 100 classes.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp.data.dataset import Dataset
from lidp.data.idx import unpack
from lidp.data.npz import examples, read_arrays
from lidp.data.places import DOWNLOAD, cache, fetch, is_web_page, own_folders, read
from lidp.errors import InvalidData

FEATURES, CLASSES = 600, 100
TRAINING, TEST = 20_000, 5_000
PUBLISHED = 197_324
"""How many examples there are in the file as published. No digest of it is, so a download is checked by what it holds."""
MAX_BYTES = 2**29
"""What an archive may unpack to; the published one has 238 million bytes."""
URL = "https://www.comp.nus.edu.sg/~reza/files/dataset_purchase.tgz"
FILES = ("dataset_purchase.tgz", "dataset_purchase", "dataset_purchase.csv", "purchase.npz")
_EXPECTED = (
    f"Purchase-100 is a table, a label from 1 to {CLASSES} and {FEATURES} zeros and ones a line ({FILES[0]}, or what is in it), "
    f"or an .npz file with the same as x and y (from 0 to {CLASSES - 1})"
)
_REMEDY = (
    f"to get it, fetch {URL} and name it as path or --data, or put it into $LIDP_DATA, or name none and allow {DOWNLOAD}"
)
_ADVICE = f"{_EXPECTED}; {_REMEDY}"

Table = tuple[NDArray[np.uint8], NDArray[np.int64]]


def load_purchases(path: str | Path | None = None, *, seed: int = 0, download: bool = False, url: str = URL) -> Dataset:
    """Purchase-100: 20,000 training and 5,000 test examples, a choice that the seed fixes.

    From ``dataset_purchase.tgz`` as published, from the table in it (a line an example: a label from 1 to 100, then 600 zeros and
    ones), or from an ``.npz`` with ``x`` and ``y`` (labels from 0 to 99). Looked for at ``path``, in ``$LIDP_DATA`` and its folder
    ``purchase``, and in the cache (``~/.cache/lidp``); as a last resort, and only if ``download``, fetched into the cache, where
    what is damaged is fetched anew.
    """
    x, y = _load(None if path is None else Path(path), download, url)
    chosen = np.random.default_rng(seed).permutation(len(y))[: TRAINING + TEST]
    return _split("purchase-100", x[chosen], y[chosen], TRAINING, CLASSES)


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


def _load(path: Path | None, download: bool, url: str) -> Table:
    """All examples, from a file that is there or is fetched."""
    found = _find(path, download)
    if found is not None:
        try:
            return _read(found)
        except InvalidData:
            if path is not None or not download or found.parent != cache():
                raise
    return fetch(url, cache() / FILES[0], _ADVICE, _read_published)


def _find(path: Path | None, download: bool) -> Path | None:
    if path is not None:
        if not path.is_file():
            what = "is a folder, name a file" if path.is_dir() else "there is no such file"
            raise InvalidData(f"{path}: {what}; {_ADVICE}")
        return path
    folders = [*own_folders("purchase"), cache()]
    for folder in folders:
        for name in FILES:
            if (folder / name).is_file():
                return folder / name
    if not download:
        raise InvalidData(f"Purchase-100 is not in {', '.join(map(str, folders))}; {_ADVICE}")
    return None


def _read(path: Path) -> Table:
    own = "; data of your own are for load_npz, or another --preset" if path.suffix == ".npz" else ""
    try:
        return _from_npz(path) if path.suffix == ".npz" else _from_table(read(path), str(path))
    except InvalidData as error:
        raise InvalidData(f"{error}; {_ADVICE}{own}") from None


def _read_published(content: bytes, where: str) -> Table:
    try:
        x, y = _from_table(content, where)
        if len(y) != PUBLISHED:
            raise InvalidData(f"{where}: {len(y):,} examples, expected {PUBLISHED:,}")
    except InvalidData as error:
        raise InvalidData(f"{error}; {_ADVICE}") from None
    return x, y


def _from_npz(path: Path) -> Table:
    arrays = read_arrays(path)
    if "test_x" in arrays:
        raise InvalidData(f"{path}: expected x and y only, of which the seed chooses what to test with, got test_x as well")
    x, y = examples(path, arrays, "x", "y")
    return _checked(x, y, str(path), first=0)


def _from_table(content: bytes, where: str) -> Table:
    """The lines of the table, unpacked if need be."""
    text = _unpacked(content, where)
    if not text.strip():
        raise InvalidData(f"{where}: is empty")
    if is_web_page(text):
        raise InvalidData(f"{where}: expected a table, this is a web page, saved in its place")
    try:
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.int16, ndmin=2, comments=None)
    except ValueError as error:  # what follows a semicolon is advice for those who call numpy
        raise InvalidData(
            f"{where}: cannot be read as a table of whole numbers: {str(error).partition(';')[0]:.200}"
        ) from None
    return _checked(table[:, 1:], table[:, 0], where, first=1)


def _unpacked(content: bytes, where: str) -> bytes:
    """Return the table, out of its archive if it is in one."""
    # Unpacked as a whole first, with a limit: headers of archives, too, may state any size.
    unpacked = unpack(content, where, MAX_BYTES)
    damaged = f"{where}: cannot be unpacked, it is truncated or damaged"
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            member = next((part for part in archive if part.isfile() and "purchase" in part.name), None)
            if member is None:
                raise InvalidData(f"{where}: expected a file dataset_purchase in the archive")
            if member.size > MAX_BYTES:  # a sparse one may be larger than the archive
                raise InvalidData(f"{where}: {member.name} has {member.size:,} bytes, at most {MAX_BYTES:,} are expected")
            return archive.extractfile(member).read()  # type: ignore[union-attr]  # a file, as was asked for
    except tarfile.ReadError:
        if unpacked is content:  # no archive
            return content
        raise InvalidData(damaged) from None
    except (OSError, EOFError, tarfile.TarError, zlib.error):  # tarfile's own words are about its ways of opening
        raise InvalidData(damaged) from None


def _checked(x: NDArray[np.generic], labels: NDArray[np.integer], where: str, *, first: int) -> Table:
    """Features and labels from 0, if they are those of Purchase-100; ``first`` is the smallest label."""
    if x.shape[1] != FEATURES:
        raise InvalidData(f"{where}: {x.shape[1]} features, expected {FEATURES}")
    last = first + CLASSES - 1
    if labels.min() < first or labels.max() > last:
        raise InvalidData(f"{where}: labels from {labels.min()} to {labels.max()}, expected {first} to {last}")
    if not ((x == 0) | (x == 1)).all():
        raise InvalidData(f"{where}: features must be 0 or 1")
    if len(labels) < TRAINING + TEST:
        raise InvalidData(f"{where}: {len(labels):,} examples, at least {TRAINING + TEST:,} are needed")
    return x.astype(np.uint8), labels.astype(np.int64) - first

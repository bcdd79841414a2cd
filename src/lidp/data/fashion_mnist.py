"""Fashion-MNIST (Xiao et al. 2017): 60,000 + 10,000 grey images of clothing, 28 x 28, ten classes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from lidp.data.dataset import Dataset
from lidp.data.idx import parse_idx, read_bytes
from lidp.data.places import cache, fetch, own_folders
from lidp.errors import InvalidData

URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
"""The project's own site."""
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts the files."""
FILES = {  # name: (dimensions, examples, SHA-256 of the unpacked content)
    "train-images-idx3-ubyte": (3, 60_000, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
    "train-labels-idx1-ubyte": (1, 60_000, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    "t10k-images-idx3-ubyte": (3, 10_000, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    "t10k-labels-idx1-ubyte": (1, 10_000, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
}
_REMEDY = (
    "install Debian's package dataset-fashion-mnist, or put the four files of the project's site into a folder and name it with a "
    "path or LIDP_DATA, or allow download=True"
)


def load_fashion_mnist(path: str | Path | None = None, *, download: bool = False, url: str = URL) -> Dataset:
    """Fashion-MNIST with pixels between 0 and 1.

    Looked for at ``path``, in ``$LIDP_DATA`` and its folder ``fashion-mnist``, where Debian puts it, and in the cache
    (``~/.cache/lidp/fashion-mnist``); as a last resort, and only if ``download``, fetched from the project's site into the cache.
    The content is checked against known digests wherever it comes from.
    """
    folder = _find(None if path is None else Path(path), download, url)
    arrays = []
    for name, (dimensions, examples, digest) in FILES.items():
        found = next(candidate for candidate in _names(folder, name) if candidate.is_file())
        content = read_bytes(found)
        array = parse_idx(content, str(found), dimensions)
        if len(array) != examples:
            raise InvalidData(f"{found}: {len(array):,} items, expected {examples:,}; is it another file under this name?")
        if hashlib.sha256(content).hexdigest() != digest:
            raise InvalidData(f"{found}: not the content of Fashion-MNIST's {name}; {_REMEDY}")
        arrays.append(array)
    images, labels, test_images, test_labels = arrays
    test_pixels = test_images.reshape(len(test_images), -1) * np.float32(1 / 255)
    pixels, y, test_y = images.reshape(len(images), -1), labels.astype(np.int64), test_labels.astype(np.int64)
    return Dataset("fashion-mnist", pixels, y, test_pixels, test_y, classes=10, unit=1 / 255)


def _names(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / name, folder / f"{name}.gz"


def _missing(folder: Path) -> list[str]:
    return [name for name in FILES if not any(candidate.is_file() for candidate in _names(folder, name))]


def _find(path: Path | None, download: bool, url: str) -> Path:
    if path is not None:
        missing = _missing(path)
        if missing:
            raise InvalidData(f"{path}: {missing[0]}[.gz] is missing; {_REMEDY}")
        return path
    kept = cache() / "fashion-mnist"
    places = [*own_folders("fashion-mnist"), DEBIAN, kept]
    for place in places:
        if not _missing(place):
            return place
    if not download:
        raise InvalidData(f"Fashion-MNIST is not in {', '.join(map(str, places))}; {_REMEDY}")
    for name in FILES:
        fetch(f"{url}/{name}.gz", kept / f"{name}.gz", _REMEDY)
    return kept

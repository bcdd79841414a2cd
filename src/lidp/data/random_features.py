"""Random convolution features of images: fixed, drawn without data, and computed for each image by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Bytes, Singles

_PATCH, _STRIDE, _POOL = 6, 2, 2
_IMAGES = 500
"""Images that are transformed at once, to bound memory."""


def convolve(images: Bytes | Singles, shape: tuple[int, int, int], *, filters: int = 64, seed: int = 0) -> Singles:
    """Return 8 features per filter for images given as rows of pixels (rows, columns, channels).

    An image is standardised by its own mean and deviation and convolved with Gaussian filters of 6 x 6 pixels at every second
    position. The positive and the negative parts are averaged over each quarter of the image. The features of an image are
    standardised, too.
    """
    weights = np.random.default_rng(seed).standard_normal((_PATCH * _PATCH * shape[2], filters))
    scaled = (weights / np.sqrt(len(weights))).astype(np.float32)
    parts = [_transform(images[first : first + _IMAGES], shape, scaled) for first in range(0, len(images), _IMAGES)]
    return np.concatenate(parts) if parts else np.zeros((0, 8 * filters), dtype=np.float32)


def _transform(images: Bytes | Singles, shape: tuple[int, int, int], weights: Singles) -> Singles:
    pixels = _standardise(images.astype(np.float32)).reshape(-1, *shape)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (_PATCH, _PATCH), axis=(1, 2))[:, ::_STRIDE, ::_STRIDE]
    rows, columns = windows.shape[1:3]
    responses = windows.reshape(-1, len(weights)) @ weights
    responses = responses.reshape(len(images), rows, columns, -1)
    halves = [np.maximum(sign * responses, 0) for sign in (1, -1)]
    middle = rows // _POOL, columns // _POOL
    quarters = [
        half[:, down, across].mean(axis=(1, 2))
        for half in halves
        for down in (slice(None, middle[0]), slice(middle[0], None))
        for across in (slice(None, middle[1]), slice(middle[1], None))
    ]
    return _standardise(np.concatenate(quarters, axis=1))


def _standardise(rows: NDArray[np.float32]) -> Singles:
    """Return rows of mean 0 and deviation 1; constant rows become 0."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    standardised: Singles = centred / np.where(deviation > 0, deviation, np.float32(1))
    return standardised

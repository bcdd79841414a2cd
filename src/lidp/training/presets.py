"""Named settings for training: those of the paper's experiments, and a small one that needs no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from lidp.data import (
    Dataset,
    load_cifar10_features,
    load_complete_journey,
    load_fashion_mnist,
    load_npz,
    load_purchases,
    synthetic_purchases,
)
from lidp.errors import InvalidArgument
from lidp.training.targets import Training


class Load(Protocol):
    """A function that loads a data set from ``path``, or from its default folder if that is None.

    Only with ``download`` is a missing file fetched from its site.
    """

    def __call__(self, path: str | None, /, *, download: bool = False) -> Dataset: ...


@dataclass(frozen=True)
class Preset:
    """A data set, a model and a training schedule.

    The paper tunes the clipping norm but does not state it; all presets use 1. Data canaries are drawn from the last ``tail``
    singular vectors of the data, and have length ``scale``.
    """

    name: str
    load: Load
    hidden: tuple[int, ...]
    epochs: float
    batch_size: float
    learning_rate: float
    tail: int
    clip_norm: float = 1.0
    scale: float = 10.0

    def training(self, **changes: Any) -> Training:
        """Return the training settings of the preset, with some of them changed."""
        names = ("hidden", "epochs", "batch_size", "learning_rate", "clip_norm")
        return Training(**{name: getattr(self, name) for name in names} | changes)


def _load_synthetic(path: str | None, /, *, download: bool = False) -> Dataset:  # noqa: ARG001  # there is nothing to download
    if path is not None:
        raise InvalidArgument(f"the preset purchases generates its data; to use {path} instead, it must be an .npz file")
    return synthetic_purchases(2_000, 1_000, classes=10)


def _load_journey(path: str | None, /, *, download: bool = False) -> Dataset:  # noqa: ARG001  # a package has its files
    return load_complete_journey(path)


def _load_cifar10(path: str | None, /, *, download: bool = False) -> Dataset:  # noqa: ARG001  # npm has the files
    return load_cifar10_features(path)


def _or_npz(load: Load) -> Load:
    """Return a function that loads a given ``.npz`` file with ``load_npz``, and anything else with ``load``."""

    def load_either(path: str | None, /, *, download: bool = False) -> Dataset:
        return load_npz(path) if path is not None and path.endswith(".npz") else load(path, download=download)

    return load_either


_ALL = (
    Preset("fmnist-linear", _or_npz(load_fashion_mnist), (), 30, 100, 0.02, tail=284),
    Preset("fmnist-mlp", _or_npz(load_fashion_mnist), (256, 256), 30, 100, 0.01, tail=284),
    Preset("purchase-mlp", load_purchases, (256, 256), 100, 100, 0.05, tail=300),  # load_purchases reads .npz files itself
    Preset("journey-mlp", _or_npz(_load_journey), (256, 256), 100, 100, 0.05, tail=300),
    Preset("cifar10-features", _load_cifar10, (64,), 10, 100, 0.5, tail=100),
    Preset("purchases", _or_npz(_load_synthetic), (), 10, 100, 0.5, tail=300),
)
PRESETS = {preset.name: preset for preset in _ALL}


def find_preset(name: str) -> Preset:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise InvalidArgument(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]

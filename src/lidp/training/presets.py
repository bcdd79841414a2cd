"""Settings that belong together: the paper's experiments, and a small one that needs no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from lidp.data import Dataset, load_fashion_mnist, load_npz, load_purchases, synthetic_purchases
from lidp.errors import InvalidArgument
from lidp.training.targets import Training


class Load(Protocol):
    """A function that loads data from a place, or from where it usually is; fetched from its site only if ``download``."""

    def __call__(self, path: str | None, /, *, download: bool = False) -> Dataset: ...


@dataclass(frozen=True)
class Preset:
    """Data, model and schedule.

    The paper tunes the clip norm and does not print it; 1 is used throughout. ``tail`` is the number of singular vectors that
    data canaries are drawn from, ``scale`` their length.
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
        """How the preset trains, with some of it changed."""
        names = ("hidden", "epochs", "batch_size", "learning_rate", "clip_norm")
        return Training(**{name: getattr(self, name) for name in names} | changes)


def _made_up(path: str | None, /, *, download: bool = False) -> Dataset:  # noqa: ARG001  # there is no site
    if path is not None:
        raise InvalidArgument(f"the preset purchases makes its data up; {path} must be an .npz file to be used instead")
    return synthetic_purchases(2_000, 1_000, classes=10)


def _or_own(load: Load) -> Load:
    """The same, but an ``.npz`` file is data of one's own."""

    def either(path: str | None, /, *, download: bool = False) -> Dataset:
        return load_npz(path) if path is not None and path.endswith(".npz") else load(path, download=download)

    return either


_ALL = (
    Preset("fmnist-linear", _or_own(load_fashion_mnist), (), 30, 100, 0.02, tail=284),
    Preset("fmnist-mlp", _or_own(load_fashion_mnist), (256, 256), 30, 100, 0.01, tail=284),
    Preset("purchase-mlp", load_purchases, (256, 256), 100, 100, 0.05, tail=300),  # which reads .npz files itself
    Preset("purchases", _or_own(_made_up), (), 10, 100, 0.5, tail=300),
)
PRESETS = {preset.name: preset for preset in _ALL}


def find_preset(name: str) -> Preset:
    """The preset of a name."""
    if name not in PRESETS:
        raise InvalidArgument(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]

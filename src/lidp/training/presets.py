"""Settings that belong together: the paper's experiments, and a small one that needs no data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lidp.data import Dataset, load_fashion_mnist, load_purchases, synthetic_purchases
from lidp.errors import InvalidArgument
from lidp.training.targets import Training


@dataclass(frozen=True)
class Preset:
    """Data, model and schedule.

    The paper tunes the clip norm and does not print it; 1 is used throughout. ``tail`` is the number of singular vectors that
    data canaries are drawn from, ``scale`` their length.
    """

    name: str
    load: Callable[[str | None], Dataset]
    """from a place, or from where it usually is"""
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


def _made_up(place: str | None) -> Dataset:
    if place is not None:
        raise InvalidArgument(f"the preset purchases makes its data up; {place} must be an .npz file to be used instead")
    return synthetic_purchases(2_000, 1_000, classes=10)


_ALL = (
    Preset("fmnist-linear", load_fashion_mnist, (), 30, 100, 0.02, tail=284),
    Preset("fmnist-mlp", load_fashion_mnist, (256, 256), 30, 100, 0.01, tail=284),
    Preset("purchase-mlp", load_purchases, (256, 256), 100, 100, 0.05, tail=300),
    Preset("purchases", _made_up, (), 10, 100, 0.5, tail=300),
)
PRESETS = {preset.name: preset for preset in _ALL}


def find_preset(name: str) -> Preset:
    """The preset of a name."""
    if name not in PRESETS:
        raise InvalidArgument(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]

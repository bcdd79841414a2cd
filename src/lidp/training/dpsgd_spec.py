"""Load a DP-SGD target from the options of its ``TargetSpec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.data import Dataset
from lidp.errors import InvalidArgument
from lidp.target import Target
from lidp.training.presets import Preset, find_preset
from lidp.training.targets import training_target

DEFAULT_PRESET = "purchases"
_TRAINING_OPTIONS = ("epochs", "batch_size", "learning_rate", "clip_norm", "random_start", "sampling", "accountant")
_TARGET_OPTIONS = ("canaries", "canary", "scores", "pilots", "fault", "true_noise")


def load_dpsgd(options: Mapping[str, Any], claim: Claim) -> Target:
    """Return DP-SGD with the noise that the claim requires, on the data of a preset or of a file.

    Raises:
        InvalidArgument: if an option has a value that it cannot have, or the data cannot be read.
    """
    preset, data = _preset(options), load_dpsgd_data(options)
    changes = {name: options[name] for name in _TRAINING_OPTIONS if name in options}
    if "hidden" in options:
        changes["hidden"] = _layer_widths(options["hidden"])
    made = training_target(
        data if "records" not in options else data.first(options["records"]),
        claim,
        training=preset.training(**changes),
        tail=min(preset.tail, data.x.shape[1]),
        scale=preset.scale,
        **{name: options[name] for name in _TARGET_OPTIONS if name in options},
    )
    return made.target


def load_dpsgd_data(options: Mapping[str, Any], *, download: bool = False) -> Dataset:
    """Return all training data that the options name; missing data of a preset are downloaded if ``download``."""
    return _preset(options).load(options.get("data"), download=download)


def _preset(options: Mapping[str, Any]) -> Preset:
    return find_preset(options.get("preset", DEFAULT_PRESET))


def _layer_widths(text: str) -> tuple[int, ...]:
    """Return the widths of hidden layers that a text such as ``256,256`` or ``none`` means."""
    if text == "none":
        return ()
    try:
        return tuple(checks.count(hidden=int(width)) for width in text.split(","))
    except ValueError:
        raise InvalidArgument(
            f"hidden must be widths of layers, as 256,256, or none for a linear model, got {text[:60]!r}"
        ) from None

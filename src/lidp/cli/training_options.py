"""The options of ``lidp audit dpsgd``: from the command line to text that a store can keep, and from that to a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from lidp import checks
from lidp.claim import Claim
from lidp.cli.origin_options import UNDECODABLE, number, options_of
from lidp.errors import InvalidArgument
from lidp.target import Target

NAME = "dpsgd"
WITH_COMMAND = ("data", "canary", "pilots")
"""Options that ``--command`` takes as well."""
DELTA = 1e-5
"""The δ of a claim that does not say one: DP-SGD cannot do without."""

Preset = Annotated[str | None, typer.Option(help="Data, model and schedule.", show_default="purchases, built in")]
Canary = Annotated[
    str | None,
    typer.Option(
        help="random-gradient, dirac-gradient, tail-example, mislabelled or blank.", show_default="random-gradient"
    ),
]
Data = Annotated[
    str | None,
    typer.Option(help="A folder or file with the data; an .npz file has your own.", show_default="where it usually is"),
]
Download = Annotated[bool, typer.Option("--download", help="Fetch the preset's data if they are missing or damaged.")]
Records = Annotated[int | None, typer.Option(help="Only so many training records.", show_default="all")]
Epochs = Annotated[float | None, typer.Option(help="Passes over the data.", show_default="the preset's")]
BatchSize = Annotated[float | None, typer.Option(help="Expected records in a batch.", show_default="the preset's")]
LearningRate = Annotated[float | None, typer.Option(help="The length of steps.", show_default="the preset's")]
Hidden = Annotated[
    str | None,
    typer.Option(help="Widths of hidden layers, as 256,256; none for a linear model.", show_default="the preset's"),
]
ClipNorm = Annotated[float | None, typer.Option(help="The norm gradients are clipped to.", show_default="the preset's")]
RandomStart = Annotated[bool, typer.Option("--random-start", help="Start each model from random parameters of its own.")]
Sampling = Annotated[
    str | None,
    typer.Option(help="poisson, or shuffle, which the accountant does not cover.", show_default="poisson"),
]
Accountant = Annotated[str | None, typer.Option(help="pld or rdp.", show_default="pld")]
Pilots = Annotated[int | None, typer.Option(help="Models trained beforehand to compare with.", show_default="4 or 32")]
Scores = Annotated[
    str | None,
    typer.Option(help="centred, raw (the paper's), self-normalised or decorrelated.", show_default="centred"),
]
Fault = Annotated[str | None, typer.Option(help="Break it: little-noise, no-clipping or wrong-rate.", show_default="none")]

# The command that a report prints has an option with a value for each part of the text. A flag has none: this stands for it.
Start = Annotated[str | None, typer.Option(hidden=True)]
_FLAGS = {"random-start": ("start", "random")}


def as_text(target: str, canaries: int, options: Mapping[str, object]) -> str:
    """The target with its options as one text, which a store keeps; options are for ``dpsgd`` only.

    Whether to download is left out: it does not change what is trained. A place is kept in full, so that an audit can be resumed
    from anywhere.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if target.startswith(f"{NAME}?"):
        raise InvalidArgument(f"the target is {NAME}, and its options are --preset, --canary and so on, got {target!r}")
    if target != NAME:
        for name in given:
            meant = f"the target {NAME} or --command" if name in WITH_COMMAND else f"the target {NAME}"
            raise InvalidArgument(f"--{name} is for {meant}, not for {target}")
        return target
    for name, value in given.items():
        if value == "":
            raise InvalidArgument(f"--{name} is empty; say what it shall be, or leave it out")
    given.pop("download", None)
    if "data" in given:
        given["data"] = Path(str(given["data"])).absolute()  # and no links resolved: the name says what is in a file
    said = dict(_FLAGS.get(name, (name, value)) for name, value in given.items())
    return f"{NAME}?{urlencode({'canaries': canaries, **said}, errors=UNDECODABLE)}"


def training_target_of(text: str, claim: Claim, *, download: bool = False) -> Target:
    """The target that a text made by :func:`as_text` means; its data may be fetched if ``download``."""
    from lidp.training import find_preset, training_target

    read = {name.replace("-", "_"): _READ[name](value) for name, value in options_of(text, _READ).items()}
    preset = find_preset(read.pop("preset", "purchases"))
    place, records = read.pop("data", None), read.pop("records", None)
    changes = {name: read.pop(name) for name in _TRAINING if name in read}
    training = preset.training(**changes, random_start=read.pop("start", False))
    data = preset.load(place, download=download)
    made = training_target(
        data if records is None else data.first(records),
        claim,
        training=training,
        tail=min(preset.tail, data.x.shape[1]),
        scale=preset.scale,
        **read,
    )
    return made.target


def _widths(text: str) -> tuple[int, ...]:
    if text == "none":
        return ()
    try:
        return tuple(checks.count(hidden=int(width)) for width in text.split(","))
    except ValueError:
        raise InvalidArgument(
            f"hidden must be widths of layers, as 256,256, or none for a linear model, got {text!r}"
        ) from None


def _clip_norm(text: str) -> float:
    # 0 would switch clipping off, which is a fault: no option of a training that is to be private
    return checks.positive(clip_norm=number(float, "clip-norm", text))


def _count(name: str) -> Callable[[str], int]:
    return partial(number, int, name)


def _real(name: str) -> Callable[[str], float]:
    return partial(number, float, name)


def _either(name: str, no: str, yes: str) -> Callable[[str], bool]:
    def read(text: str) -> bool:
        if text not in (no, yes):
            raise InvalidArgument(f"{name} must be {no} or {yes}, got {text!r}")
        return text == yes

    return read


_TRAINING = ("hidden", "epochs", "batch_size", "learning_rate", "clip_norm", "sampling", "accountant")
_READ: dict[str, Callable[[str], Any]] = {
    "preset": str,
    "canary": str,
    "canaries": _count("canaries"),
    "data": str,
    "records": _count("records"),
    "epochs": _real("epochs"),
    "batch-size": _real("batch-size"),
    "learning-rate": _real("learning-rate"),
    "hidden": _widths,
    "clip-norm": _clip_norm,
    "start": _either("start", "fixed", "random"),
    "sampling": str,
    "accountant": str,
    "pilots": _count("pilots"),
    "scores": str,
    "fault": str,
}

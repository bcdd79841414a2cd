"""The options of ``lidp audit dpsgd``: from the command line to text that a store can keep, and from that to a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

import typer

from lidp.claim import Claim
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
Data = Annotated[str | None, typer.Option(help="A folder or file with the data.", show_default="where it usually is")]
Records = Annotated[int | None, typer.Option(help="Only so many training records.", show_default="all")]
Epochs = Annotated[float | None, typer.Option(help="Passes over the data.", show_default="the preset's")]
Sampling = Annotated[str | None, typer.Option(help="poisson or shuffle.", show_default="poisson")]
Accountant = Annotated[str | None, typer.Option(help="pld or rdp.", show_default="pld")]
Pilots = Annotated[int | None, typer.Option(help="Models trained beforehand to compare with.", show_default="4 or 32")]
Fault = Annotated[str | None, typer.Option(help="Break it: little-noise, no-clipping or wrong-rate.", show_default="none")]

_READ: dict[str, Callable[[str], Any]] = {"records": int, "epochs": float, "pilots": int, "canaries": int}


def as_text(target: str, canaries: int, options: Mapping[str, object]) -> str:
    """The target with its options as one text, which a store keeps; options are for ``dpsgd`` only."""
    given = {name: value for name, value in options.items() if value is not None}
    if target != NAME:
        for name in given:
            meant = f"the target {NAME} or --command" if name in WITH_COMMAND else f"the target {NAME}"
            raise InvalidArgument(f"--{name} is for {meant}, not for {target}")
        return target
    return f"{NAME}?{urlencode({'canaries': canaries, **given})}"


def training_target_of(text: str, claim: Claim) -> Target:
    """The target that a text made by :func:`as_text` means."""
    from lidp.data import load_npz
    from lidp.training import find_preset, training_target

    given = {name: _READ.get(name, str)(value) for name, value in parse_qsl(text.partition("?")[2])}
    preset = find_preset(given.pop("preset", "purchases"))
    place, records = given.pop("data", None), given.pop("records", None)
    data = load_npz(place) if place is not None and place.endswith(".npz") else preset.load(place)
    training = preset.training(**{name: given.pop(name) for name in ("epochs", "sampling", "accountant") if name in given})
    made = training_target(
        data if records is None else data.first(records),
        claim,
        training=training,
        tail=min(preset.tail, data.x.shape[1]),
        scale=preset.scale,
        **given,
    )
    return made.target

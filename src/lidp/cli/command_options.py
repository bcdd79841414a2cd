"""``lidp audit --command``: from the command line to text that a store can keep, and from that to a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from lidp.claim import Claim
from lidp.cli.origin_options import UNDECODABLE, number, options_of, required
from lidp.cli.training_options import WITH_COMMAND
from lidp.errors import InvalidArgument
from lidp.target import Target

NAME = "command"
CANARIES = ("mislabelled", "blank")
_REQUIRED = ("command", "data", "folder")
_KNOWN = (*_REQUIRED, *(name for name in WITH_COMMAND if name not in _REQUIRED), "time_limit", "logs")

Command = Annotated[
    str | None,
    typer.Option(
        "--command",
        help='A program that trains, as "python train.py --data {data} --out {out} --seed {seed}"; no shell is used. '
        "A sampling rate or a number of steps that it computes from the number of records tells how many canaries are in: "
        "fix them beforehand, or claim --neighbours replace-one.",
        show_default=False,
    ),
]


def as_text(command: str, store: Path | None, time_limit: float | None, options: Mapping[str, object]) -> str:
    """The command with its options as one text, which a store keeps."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in WITH_COMMAND:
            raise InvalidArgument(f"--{name} is for the target dpsgd, not for --command")
    if "data" not in given:
        raise InvalidArgument("--command needs --data: an .npz file with x and y, which canaries are added to")
    # In full, so that the audit can be resumed from anywhere.
    given |= {"data": Path(str(given["data"])).resolve(), "folder": Path.cwd()}
    given |= {"time_limit": time_limit} if time_limit is not None else {}
    given |= {"logs": store.resolve().with_name(f"{store.name}.logs")} if store is not None else {}
    return f"{NAME}?{urlencode({'command': command, **given}, errors=UNDECODABLE)}"


def options_in(text: str) -> dict[str, str]:
    """Return the options of a text made by :func:`as_text`, among them the command, its data and its folder.

    Raises:
        InvalidArgument: if the text cannot have been made by it.
    """
    given = options_of(text, _KNOWN)
    required(text, given, *_REQUIRED)
    return given


def command_target_of(text: str, _claim: Claim) -> Target:
    """The target that a text made by :func:`as_text` means."""
    from lidp.canaries.examples import blank, mislabelled
    from lidp.data import load_npz
    from lidp.integrations.commands import command_target
    from lidp.streams import Purpose, stream

    given = options_in(text)
    canary = given.get("canary", CANARIES[0])
    if canary not in CANARIES:
        raise InvalidArgument(f"--canary must be {' or '.join(CANARIES)} for --command, got {canary!r}")
    data = load_npz(given["data"])
    if canary == "blank":
        features, labels = blank(data.x.shape[1], data.classes)
    else:
        rng = stream(0, trial=0, purpose=Purpose.CANARIES)  # a fixed pool, part of the target
        features, labels = mislabelled(data.test_x, data.test_y, data.classes, rng)
    return command_target(
        given["command"],
        (data.x, data.y),
        (features.astype(data.x.dtype), labels),
        pilots=number(int, "pilots", given.get("pilots", "8")),
        time_limit=number(float, "time_limit", given["time_limit"]) if "time_limit" in given else None,
        logs=given.get("logs"),
        folder=given["folder"],
    )

"""Load a program as a target from the options of its ``TargetSpec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.canaries.examples import blank, mislabelled
from lidp.claim import Claim
from lidp.data import load_npz
from lidp.errors import InvalidArgument
from lidp.integrations.commands import command_target
from lidp.streams import Purpose, stream
from lidp.target import Target

CANARIES = ("mislabelled", "blank")
DEFAULT_PILOTS = 8


def load_program(options: Mapping[str, Any], _claim: Claim) -> Target:
    """Return a target that runs the program of the option ``command`` on the data of the option ``data``.

    Raises:
        InvalidArgument: if an option has a value that it cannot have, or the data cannot be read.
    """
    canary = options.get("canary", CANARIES[0])
    if canary not in CANARIES:
        raise InvalidArgument(f"canary must be {' or '.join(CANARIES)} for a program, got {canary!r}")
    data = load_npz(options["data"])
    if canary == "blank":
        features, labels = blank(data.x.shape[1], data.classes)
    else:
        rng = stream(0, trial=0, purpose=Purpose.CANARIES)  # the same pool in every audit: it is part of the target
        features, labels = mislabelled(data.test_x, data.test_y, data.classes, rng)
    return command_target(
        options["command"],
        (data.x, data.y),
        (features.astype(data.x.dtype), labels),
        pilots=options.get("pilots", DEFAULT_PILOTS),
        time_limit=options.get("time_limit"),
        logs=options.get("logs"),
        folder=options["folder"],
    )

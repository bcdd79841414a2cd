"""Designs: the layout of a trial and the meaning of its records. One design per file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.designs.coin_flip import DEFAULT_CANARIES, CoinFlip
from lidp.designs.design import Design, check_canary_design
from lidp.designs.leave_one_out import LeaveOneOut
from lidp.designs.pair_runs import PairRuns
from lidp.designs.replace_one import ReplaceOne
from lidp.errors import InvalidArgument

__all__ = [
    "DEFAULT_CANARIES",
    "DESIGNS",
    "CoinFlip",
    "Design",
    "LeaveOneOut",
    "PairRuns",
    "ReplaceOne",
    "check_canary_design",
    "design_from_json",
]

DESIGNS: dict[str, type[Design]] = {design.__name__: design for design in (LeaveOneOut, ReplaceOne, CoinFlip, PairRuns)}


def design_from_json(value: Mapping[str, Any]) -> Design:
    """Return the design from the plain data of :meth:`Design.to_json`."""
    parameters = dict(value)
    kind = parameters.pop("kind")
    if kind not in DESIGNS:
        raise InvalidArgument(f"unknown design {kind!r}; the designs are {', '.join(DESIGNS)}")
    return DESIGNS[kind](**parameters)

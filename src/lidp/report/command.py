"""The command that repeats an audit, from the configuration that its result carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.stats.registry import METHODS
from lidp.stats.storable import to_plain
from lidp.target_spec import TargetSpec

_DESIGN_NAMES = {"CoinFlip": "coin-flip", "LeaveOneOut": "leave-one-out", "ReplaceOne": "replace-one"}


def command_of(configuration: Mapping[str, Any]) -> str | None:
    """Return the shell command that repeats an audit; None for an audit that only Python can repeat.

    Guarantee: run in a folder where the target is found, the command makes an audit of the same configuration.
    """
    if not configuration.get("target_spec"):
        return None
    spec = TargetSpec.from_dict(configuration["target_spec"])
    claim = configuration["claim"]
    options = {
        "epsilon": claim["epsilon"],
        "delta": claim["delta"],
        "failure-probability": configuration["failure_probability"],
        "seed": configuration["seed"],
        "stop-when": configuration["stop_when"],
    }
    if configuration["design"]["kind"] == "PairRuns":
        chosen = configuration.get("options", {})
        if set(chosen) - {"bits"}:
            return None
        runs = configuration["design"]["runs"]
        return spec.to_command({**options, "neighbours": claim["neighbours"], "runs": runs, **chosen})
    design, method = configuration["design"], _method_name(configuration["method"])
    if method is None or design.get("held_out", design["canaries"]) != design["canaries"]:
        return None
    options |= {
        "design": _DESIGN_NAMES[design["kind"]],
        "canaries": design["canaries"],
        "trials": configuration["trials"],
        "method": method,
    }
    if design["kind"] == "CoinFlip":
        options["neighbours"] = design["neighbours"]
    return spec.to_command(options)


def _method_name(plain: Any) -> str | None:
    """Return the name of a method with its default parameters; None with others, which no command can set."""
    return next((name for name, kind in METHODS.items() if to_plain(kind()) == plain), None)

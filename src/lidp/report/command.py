"""The command that repeats an audit, from the configuration that its result carries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from lidp.stats.registry import METHODS
from lidp.stats.storable import to_plain

_DESIGNS = {"CoinFlip": "coin-flip", "LeaveOneOut": "leave-one-out", "ReplaceOne": "replace-one"}


def command_of(configuration: Mapping[str, Any]) -> str | None:
    """The ``lidp audit`` command of a configuration, None if no command can say it: then it was called from Python.

    Guarantee: run where the target can be found, it makes an audit of the same configuration.
    """
    origin = configuration.get("origin")
    if not origin:
        return None
    claim = configuration["claim"]
    common = {
        "epsilon": claim["epsilon"],
        "delta": claim["delta"],
        "failure-probability": configuration["failure_probability"],
        "seed": configuration["seed"],
        "stop-when": configuration["stop_when"],
    }
    if configuration["design"]["kind"] == "PairRuns":
        if set(configuration.get("options", {})) - {"bits"}:
            return None
        flags = ["--pair", *(["--bits"] if configuration.get("options") else [])]
        runs = configuration["design"]["runs"]
        return _line(origin, flags, {**common, "neighbours": claim["neighbours"], "runs": runs})
    design, method = configuration["design"], _method_name(configuration["method"])
    if method is None or design.get("held_out", design["canaries"]) != design["canaries"]:
        return None
    if origin.startswith("command?"):
        target, options = "", _program(origin)
    else:
        target, options = _target(origin)
    named: dict[str, Any] = {
        **common,
        "design": _DESIGNS[design["kind"]],
        "canaries": design["canaries"],
        "trials": configuration["trials"],
        "method": method,
        **options,
    }
    if design["kind"] == "CoinFlip":
        named["neighbours"] = design["neighbours"]
    return _line(target, [], named)


def _method_name(plain: Any) -> str | None:
    """The name of a method with its default parameters; others cannot be given on the command line."""
    return next((name for name, kind in METHODS.items() if to_plain(kind()) == plain), None)


def _target(origin: str) -> tuple[str, dict[str, str]]:
    """A target and the options that are part of its text, as in ``dpsgd?canaries=64&preset=purchases``."""
    name, mark, options = origin.partition("?")
    if not mark or name != "dpsgd":  # a file may have a question mark in its name
        return origin, {}
    return name, {key: value for key, value in parse_qsl(options) if key != "canaries"}


def _program(origin: str) -> dict[str, str]:
    """The options of ``lidp audit --command``; folder and logs follow from where it is run and what the store is called."""
    given = dict(parse_qsl(origin.partition("?")[2], keep_blank_values=True))
    return {name.replace("_", "-"): value for name, value in given.items() if name not in ("folder", "logs")}


def _line(target: str, flags: list[str], options: Mapping[str, Any]) -> str:
    words = ["lidp", "audit"]
    for name, value in options.items():
        text = repr(value) if isinstance(value, float) else str(value)
        words += [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
    # A target that begins with a dash would be read as an option.
    words += [*flags, "--", target] if target.startswith("-") else [*flags, *([target] if target else [])]
    return shlex.join(words)

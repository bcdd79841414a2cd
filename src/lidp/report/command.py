"""The command that repeats an audit, from the configuration that its result carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.claim import Claim
from lidp.designs import Design, design_from_json
from lidp.errors import MethodNotApplicable
from lidp.stats.registry import METHODS, canary_by_canary, default_method, make_method
from lidp.stats.storable import to_plain
from lidp.target_spec import TargetSpec

_DESIGN_NAMES = {"CoinFlip": "coin-flip", "LeaveOneOut": "leave-one-out", "ReplaceOne": "replace-one"}
_CURVE_OPTIONS = {
    "gaussian": ("gaussian-mu", "mu"),
    "laplace": ("laplace-scale", "noise_scale"),
    "zcdp": ("zcdp-rho", "rho"),
}
"""Kinds of curves that have one parameter: the option that claims one, and its parameter in JSON."""


def command_of(configuration: Mapping[str, Any]) -> str | None:
    """Return the shell command that repeats an audit; None for an audit that only Python can repeat.

    Guarantee: run in a folder where the target is found, the command makes an audit of the same configuration.
    """
    if not configuration.get("target_spec"):
        return None
    spec = TargetSpec.from_dict(configuration["target_spec"])
    claim = Claim(**configuration["claim"])
    claim_options = _claim_options(claim, spec)
    if claim_options is None:
        return None
    options = {
        **claim_options,
        "failure-probability": configuration["failure_probability"],
        "seed": configuration["seed"],
        "stop-when": configuration["stop_when"],
    }
    plain_design = configuration["design"]
    if plain_design["kind"] == "PairRuns":
        chosen = configuration.get("options", {})
        if set(chosen) - {"bits"}:
            return None
        return spec.to_command({**options, "neighbours": str(claim.neighbours), "runs": plain_design["runs"], **chosen})
    if plain_design.get("held_out", plain_design["canaries"]) != plain_design["canaries"]:
        return None
    method = _method_option(configuration["method"], design_from_json(plain_design), claim)
    if method is None:
        return None
    options |= {
        "design": _DESIGN_NAMES[plain_design["kind"]],
        "canaries": plain_design["canaries"],
        "trials": configuration["trials"],
        **method,
    }
    if plain_design["kind"] == "CoinFlip":
        options["neighbours"] = plain_design["neighbours"]
    return spec.to_command(options)


def _claim_options(claim: Claim, spec: TargetSpec) -> dict[str, Any] | None:
    """Return the options that state a claim; None if no options state it."""
    point = {"epsilon": claim.epsilon, "delta": claim.delta}
    if claim.curve is None or spec.kind == "dpsgd" or claim.curve.epsilon(claim.delta) != claim.epsilon:
        return point  # a curve whose ε is another one comes with the target: with it, the point is claimed
    plain = claim.curve.to_json()
    if plain["kind"] in _CURVE_OPTIONS:
        option, parameter = _CURVE_OPTIONS[plain["kind"]]
        return {option: plain[parameter], "delta": claim.delta}
    training = _dpsgd_options(plain.get("event", {}))
    if not training or plain["neighbours"] != claim.neighbours:
        return None
    return {**training, "delta": claim.delta}


def _dpsgd_options(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that claim DP-SGD, if the event is one; otherwise none."""
    if event.get("event") != "SelfComposedDpEvent":
        return {}
    step, rate = event["of"], 1.0
    if step["event"] == "PoissonSampledDpEvent":
        step, rate = step["of"], step["sampling_probability"]
    if step["event"] != "GaussianDpEvent":
        return {}
    return {"noise-multiplier": step["noise_multiplier"], "sampling-rate": rate, "steps": event["count"]}


def _method_option(plain: Any, design: Design, claim: Claim) -> dict[str, Any] | None:
    """Return the option that chooses a method; None for parameters that no option can set.

    The default method for a claimed curve needs none. The curve may come with the target, which adds it to the claim only if
    the command leaves the choice of the method to the audit.
    """
    if claim.curve is not None:
        usual = default_method(design, claim)
        if to_plain(usual) == plain:
            return {}
        if design.has_coins and to_plain(canary_by_canary(usual)) == plain:
            return {"independent-canaries": True}
    for name, kind in METHODS.items():
        try:
            method = make_method(kind, claim)
        except MethodNotApplicable:  # it tests a curve, and none is claimed
            continue
        if to_plain(method) == plain:
            return {"method": name}
    return None

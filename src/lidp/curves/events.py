"""Events of ``dp-accounting`` as plain data: read, check, scale and describe them.

Only events that lidp knows by name are made from plain data, so that a store from a stranger cannot name any other class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from reprlib import repr as short
from typing import Any, NamedTuple

from lidp import checks
from lidp.errors import InvalidArgument
from lidp.rounding import counted

_DEEPEST = 16
_MOST_EVENTS = 1000
_MOST_DISTINCT = 100  # different parts, each of which is computed
_MOST_IN_FAMILY = 8  # different parts of an event whose whole family is computed
_MOST_SENSITIVITIES = 20
_MOST_STEPS = 10_000_000
_LARGEST_LOSS = 1000.0


class _Kind(NamedTuple):
    fields: tuple[str, ...]
    noise: str | None = None
    """the field that is proportional to the noise"""
    inverse_noise: str | None = None
    """the field that is inversely proportional to it"""


_KINDS: Mapping[str, _Kind] = {
    "GaussianDpEvent": _Kind(("noise_multiplier",), noise="noise_multiplier"),
    "LaplaceDpEvent": _Kind(("noise_multiplier",), noise="noise_multiplier"),
    "DiscreteLaplaceDpEvent": _Kind(("noise_parameter", "sensitivity"), inverse_noise="noise_parameter"),
    "RandomizedResponseDpEvent": _Kind(("noise_parameter", "num_buckets")),
    "MixtureOfGaussiansDpEvent": _Kind(
        ("standard_deviation", "sensitivities", "sampling_probs"), noise="standard_deviation"
    ),
    "TruncatedSubsampledGaussianDpEvent": _Kind(
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"), noise="noise_multiplier"
    ),
    "PoissonSampledDpEvent": _Kind(("sampling_probability", "event")),
    "SelfComposedDpEvent": _Kind(("event", "count")),
    "ComposedDpEvent": _Kind(("events",)),
    "NoOpDpEvent": _Kind(()),
}
_CHECKS: Mapping[str, Callable[..., Any]] = {
    "noise_multiplier": checks.positive,
    "noise_parameter": checks.positive,
    "standard_deviation": checks.positive,
    "sampling_probability": checks.share,
    "count": checks.count,
    "sensitivity": checks.count,
    "num_buckets": checks.count,
    "dataset_size": checks.count,
    "truncated_batch_size": checks.count,
}
_LISTS = ("sensitivities", "sampling_probs")

Plain = dict[str, Any]


def event_to_plain(event: Any) -> Plain:
    """Return an event of ``dp-accounting`` as plain data.

    Raises:
        InvalidArgument: if it is not an event whose privacy curve the PLD accountant can compute.
    """
    return check_event(_read(event))


def _read(event: Any, depth: int = 0) -> Any:
    name = type(event).__name__
    if depth > _DEEPEST:
        raise InvalidArgument(f"the event is nested more than {_DEEPEST} levels deep; flatten it")
    if type(event).__module__.split(".")[0] != "dp_accounting":
        raise InvalidArgument(f"event must be an event of dp_accounting, such as GaussianDpEvent(1.0), got {short(event)}")
    if name not in _KINDS:
        from lidp.curves.unsupported_events import remedy_for

        remedy = remedy_for(event) or f"use one of {', '.join(sorted(_KINDS))}"
        raise InvalidArgument(f"the PLD accountant has no privacy curve for {name}; {remedy}")
    plain: Plain = {"event": name}
    for field in _KINDS[name].fields:
        value = getattr(event, field)
        if field == "event":
            plain["of"] = _read(value, depth + 1)
        elif field == "events":
            plain["events"] = [_read(part, depth + 1) for part in _values(events=value)]
        else:
            plain[field] = _values(**{field: value}) if field in _LISTS else value
    return plain


def check_event(plain: Any, depth: int = 0) -> Plain:
    """Return plain data of an event, if every value is one that an event can have."""
    if depth > _DEEPEST:
        raise InvalidArgument(f"the event is nested more than {_DEEPEST} levels deep; flatten it")
    name = plain.get("event") if isinstance(plain, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        raise InvalidArgument(f"{short(plain)} describes no event; the events are {', '.join(sorted(_KINDS))}")
    kind = _KINDS[name]
    expected = {"event", *("of" if field == "event" else field for field in kind.fields)}
    if set(plain) != expected:
        raise InvalidArgument(f"{name} has {', '.join(sorted(expected))}, got {short(sorted(map(str, plain)))}")
    checked: Plain = {"event": name}
    for field in kind.fields:
        if field == "event":
            checked["of"] = check_event(plain["of"], depth + 1)
        elif field == "events":
            checked["events"] = [check_event(part, depth + 1) for part in _values(events=plain["events"])]
        elif field in _CHECKS:
            checked[field] = _CHECKS[field](**{field: plain[field]})
        else:
            checked[field] = [checks.non_negative(**{field: value}) for value in _values(**{field: plain[field]})]
    if checked["event"] == "PoissonSampledDpEvent" and checked["of"]["event"] not in ("GaussianDpEvent", "LaplaceDpEvent"):
        raise InvalidArgument(
            "the PLD accountant samples GaussianDpEvent and LaplaceDpEvent only; "
            f"PoissonSampledDpEvent of {checked['of']['event']} has no privacy curve"
        )
    if depth == 0:
        _check_size(checked)
    return checked


def _check_size(plain: Plain) -> None:
    """Refuse events that the accountant gets wrong, or whose privacy losses take too long or too much memory to compute."""
    _refuse_repeated_responses(plain)
    distinct = len(_distinct_parts(plain))
    if distinct > _MOST_DISTINCT:
        raise InvalidArgument(
            f"an event must have at most {_MOST_DISTINCT} different parts, got {distinct:,}; claim the point"
        )
    steps = count_steps(plain)
    if steps > _MOST_STEPS:
        raise InvalidArgument(f"an event must have at most {_MOST_STEPS:,} steps, got {steps:.6g}")
    loss = _expected_loss(plain)
    if loss > _LARGEST_LOSS:
        raise InvalidArgument(
            f"{describe_event(plain)} has an expected privacy loss of up to {loss:.3g}, which promises nothing; "
            "claim more noise or fewer steps"
        )


def _refuse_repeated_responses(plain: Plain, repeated: bool = False) -> None:
    """Refuse randomised response in a self-composition: the accountant counts it once, however often it is repeated."""
    if plain["event"] == "RandomizedResponseDpEvent" and repeated:
        raise InvalidArgument(
            "dp-accounting counts a RandomizedResponseDpEvent in a SelfComposedDpEvent only once; repeat it in a ComposedDpEvent"
        )
    repeated = repeated or (plain["event"] == "SelfComposedDpEvent" and plain["count"] > 1)
    for part in [plain["of"]] if "of" in plain else plain.get("events", ()):
        _refuse_repeated_responses(part, repeated)


def _distinct_parts(plain: Plain) -> set[str]:
    """Return the different mechanisms that an event composes, as texts."""
    if "events" in plain:
        return set().union(*(_distinct_parts(part) for part in plain["events"]))
    if plain["event"] == "SelfComposedDpEvent":
        return _distinct_parts(plain["of"])
    return {json.dumps(plain, sort_keys=True)}


def _values(**named: Any) -> list[Any]:
    """Return the items of a list, which must be neither empty nor too long."""
    ((name, values),) = named.items()
    try:
        items = [] if isinstance(values, (str, bytes, Mapping)) else list(values)
    except TypeError:
        items = []
    most = _MOST_EVENTS if name == "events" else _MOST_SENSITIVITIES
    if not 0 < len(items) <= most:
        raise InvalidArgument(f"{name} must be a list of 1 to {most:,} items, got {short(values)}")
    return items


def _expected_loss(plain: Plain) -> float:
    """Return an upper bound, up to constants, on the expected privacy loss, from which the size of its distribution follows."""
    if "events" in plain:
        return sum(_expected_loss(part) for part in plain["events"])
    if plain["event"] == "SelfComposedDpEvent":
        return float(plain["count"]) * _expected_loss(plain["of"])
    rate = plain.get("sampling_probability", 1.0)
    kernel = plain.get("of", plain)
    kind = _KINDS[kernel["event"]]
    if kind.inverse_noise is not None:
        return float(kernel[kind.inverse_noise] * kernel["sensitivity"])
    if kind.noise is None:
        return 0.0
    sensitivity = max(kernel.get("sensitivities", (1.0,)))
    noise = kernel[kind.noise] / sensitivity if sensitivity else math.inf
    if noise < 1e-100:
        return math.inf
    loss = 1 / noise if kernel["event"] == "LaplaceDpEvent" else 0.5 / noise / noise
    # The Kullback-Leibler divergence is convex, and it is at most the chi-squared divergence.
    return float(min(rate * loss, rate**2 * math.expm1(min(2 * loss, 700.0))))


def event_from_plain(plain: Plain) -> Any:
    """Return the event of ``dp-accounting`` that plain data describe."""
    from dp_accounting import dp_event

    values = {key: value for key, value in plain.items() if key != "event"}
    if "of" in values:
        values["event"] = event_from_plain(values.pop("of"))
    if "events" in values:
        values["events"] = [event_from_plain(part) for part in values["events"]]
    return getattr(dp_event, plain["event"])(**values)


def has_scalable_noise(plain: Plain) -> bool:
    """Return whether every part of an event that adds noise has an amount of noise to scale, and the parts are few."""
    if len(_distinct_parts(plain)) > _MOST_IN_FAMILY:
        return False
    parts = [plain["of"]] if "of" in plain else plain.get("events")
    if parts is not None:
        return all(has_scalable_noise(part) for part in parts)
    kind = _KINDS[plain["event"]]
    return plain["event"] == "NoOpDpEvent" or kind.noise is not None or kind.inverse_noise is not None


def scale_noise(plain: Plain, ratio: float) -> Plain:
    """Return the event with ``ratio`` times the noise in each of its parts."""
    kind = _KINDS[plain["event"]]
    scaled = dict(plain)
    if kind.noise is not None:
        scaled[kind.noise] = plain[kind.noise] * ratio
    if kind.inverse_noise is not None:
        scaled[kind.inverse_noise] = plain[kind.inverse_noise] / ratio
    if "of" in plain:
        scaled["of"] = scale_noise(plain["of"], ratio)
    if "events" in plain:
        scaled["events"] = [scale_noise(part, ratio) for part in plain["events"]]
    return scaled


def noise_of(plain: Plain) -> float | None:
    """Return the noise of an event if all its parts have the same, otherwise None."""
    parts = [plain["of"]] if "of" in plain else plain.get("events")
    if parts is not None:
        amounts = {noise_of(part) for part in parts if part["event"] != "NoOpDpEvent"}
        return amounts.pop() if len(amounts) == 1 else None
    noise = _KINDS[plain["event"]].noise
    return None if noise is None else float(plain[noise])


def count_steps(plain: Plain) -> int:
    """Return how many releases an event consists of."""
    if "events" in plain:
        return sum(count_steps(part) for part in plain["events"])
    if "of" not in plain:
        return 1
    return int(plain.get("count", 1)) * count_steps(plain["of"])


def describe_event(plain: Plain) -> str:
    """Return an event in words."""
    name = plain["event"].removesuffix("DpEvent")
    if name == "SelfComposed":
        inner = plain["of"]
        steps = counted(plain["count"], "steps")
        if inner["event"] == "PoissonSampledDpEvent" and inner["of"]["event"] == "GaussianDpEvent":
            return (
                f"DP-SGD with noise multiplier {inner['of']['noise_multiplier']:.6g}, sampling rate "
                f"{inner['sampling_probability']:.6g} and {steps}"
            )
        if inner["event"] == "GaussianDpEvent":
            return f"{steps} of Gaussian noise with multiplier {inner['noise_multiplier']:.6g}"
        if plain["count"] == 1:
            return describe_event(inner)
        return f"{plain['count']:,} times ({describe_event(inner)})"
    if name == "PoissonSampled":
        return f"{describe_event(plain['of'])} on Poisson samples at rate {plain['sampling_probability']:.6g}"
    if name == "Composed":
        shown = [describe_event(part) for part in plain["events"][:3]]
        more = len(plain["events"]) - len(shown)
        return ", then ".join([*shown, f"{more:,} more"] if more else shown)
    values = ", ".join(f"{key} {_describe_value(value)}" for key, value in plain.items() if key != "event")
    return f"{name} ({values})" if values else name


def _describe_value(value: Any) -> str:
    if isinstance(value, list):
        return f"of {len(value):,} values"
    return f"{value:.6g}"

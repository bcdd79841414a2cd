"""The tables of the report: settings, the numbers behind the bound, facts stated by the target, versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lidp.epsilon_bound import Guarantee
from lidp.report.figure_data import claimed_epsilon
from lidp.report.wording import design, number, shown, unit
from lidp.result import AuditResult
from lidp.rounding import exact
from lidp.target_spec import TargetSpec

_MOST_FACTS = 60


@dataclass(frozen=True)
class Entry:
    """A row of a table.

    Attributes:
        name: what the row is about.
        value: the exact value.
        words: the value as shown.
        json_key: the path of the value in the JSON result; empty if it is not there.
        meaning: an explanation of the value.
    """

    name: str
    value: Any
    words: str
    json_key: str = ""
    meaning: str = ""


def settings_of(result: AuditResult) -> list[Entry]:
    """Return the settings of the audit."""
    plain, method = result.configuration, result.bound
    credible = method.guarantee is Guarantee.CREDIBLE
    certainty = "1 - credibility" if credible else f"{method.certainty.name} β"
    settings: list[tuple[str, Any, str]] = [
        ("target", result.target, "target"),
        *_curve_settings(result),
        ("claimed ε", result.claim.epsilon, "claim.epsilon"),
        ("claimed δ", result.claim.delta, "claim.delta"),
        ("neighbours", str(result.claim.neighbours), "claim.neighbours"),
        ("design", design(result), ""),
        (f"planned {unit(result)}", result.planned_trials, "planned_trials"),
        ("method", method.method, "bound.method"),
        *((f"method: {name}", value, f"bound.parameters.{name}") for name, value in method.parameters.items()),
        *([] if method.point is None else [("method for the point", method.point.method, "bound.point.method")]),
        ("direction", str(method.direction), "bound.direction"),
        (certainty, method.failure_probability, "bound.failure_probability"),
        *([] if result.sealed else [("seed", result.seed, "seed")]),
    ]
    for name, key in (
        ("stop when", "stop_when"),
        ("fingerprint of the target", "fingerprint"),
    ):
        if plain.get(key):
            settings.append((name, plain[key], ""))
    if plain.get("target_spec"):
        settings.append(("target loaded from", str(TargetSpec.from_dict(plain["target_spec"])), ""))
    if plain.get("sequential"):
        settings.append(("scores", "use the coins of canaries with a lower index in the same trial", ""))
    words = {"claim.epsilon": claimed_epsilon(result)}
    return [Entry(name, value, words.get(key, _as_given(name, value)), key) for name, value, key in settings]


def _curve_settings(result: AuditResult) -> list[tuple[str, Any, str]]:
    """Return the claimed curve and what was tested of it; nothing for a claim about a point."""
    if result.claim.curve is None:
        return []
    return [
        ("claimed privacy curve", str(result.claim.curve), ""),
        ("tested hypothesis", str(result.bound.hypothesis), "hypothesis"),
    ]


def _as_given(name: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and name != "seed":  # a seed is meant to be copied
        return f"{value:,}"
    return exact(value) if isinstance(value, float) else str(value)


def numbers_behind(result: AuditResult) -> list[Entry]:
    """Return the thresholds and rates of the bound, each with its meaning."""
    bound, method = result.bound, result.method
    thresholds, rates = method.describe_thresholds(bound), method.describe_rates(bound)
    entries = [
        Entry(f"threshold, {name}", value, number(value), f"bound.thresholds.{name}", thresholds.get(name, ""))
        for name, value in bound.thresholds.items()
    ]
    for name, value in bound.rates.items():
        words = f"{int(value):,}" if name in method.counts else number(value)
        entries.append(Entry(name.replace("_", " "), value, words, f"bound.rates.{name}", rates.get(name, "")))
    return entries


def facts_of(result: AuditResult) -> list[Entry]:
    """Return the facts that the target states about itself."""
    facts = list(result.facts.items())[:_MOST_FACTS]
    return [Entry(name, value, shown(value), f"facts.{name}") for name, value in facts]


def versions_of(result: AuditResult) -> list[tuple[str, str, str]]:
    """Return each package with its version when the audit started and when the bound was computed; empty if unknown."""
    started, computed = result.versions, result.computed_with
    return [(name, started.get(name, ""), computed.get(name, "")) for name in dict.fromkeys([*started, *computed])]

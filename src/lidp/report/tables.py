"""The tables of the page: what was asked for, the numbers behind the bound, what the target says, versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lidp.epsilon_bound import Guarantee
from lidp.report.wording import design, number, shown, unit
from lidp.result import AuditResult
from lidp.rounding import exact
from lidp.target_spec import TargetSpec

_MOST_FACTS = 60


@dataclass(frozen=True)
class Entry:
    """A row of a table: what is told, its value, the words for it, and where it is in the JSON, if there."""

    name: str
    value: Any
    words: str
    place: str = ""
    meaning: str = ""


def settings_of(result: AuditResult) -> list[Entry]:
    """The configuration."""
    plain, method = result.configuration, result.bound
    credible = method.guarantee is Guarantee.CREDIBLE
    certainty = "1 - credibility" if credible else f"{method.certainty.name} β"
    found: list[tuple[str, Any, str]] = [
        ("target", result.target, "target"),
        ("claimed ε", result.claim.epsilon, "claim.epsilon"),
        ("claimed δ", result.claim.delta, "claim.delta"),
        ("neighbours", str(result.claim.neighbours), "claim.neighbours"),
        ("design", design(result), ""),
        (f"planned {unit(result)}", result.planned_trials, "planned_trials"),
        ("method", method.method, "bound.method"),
        *((f"method: {name}", value, f"bound.parameters.{name}") for name, value in method.parameters.items()),
        ("direction", str(method.direction), "bound.direction"),
        (certainty, method.failure_probability, "bound.failure_probability"),
        ("seed", result.seed, "seed"),
    ]
    for name, key in (
        ("stops when", "stop_when"),
        ("fingerprint of the target", "fingerprint"),
    ):
        if plain.get(key):
            found.append((name, plain[key], ""))
    if plain.get("target_spec"):
        found.append(("target loaded from", str(TargetSpec.from_dict(plain["target_spec"])), ""))
    if plain.get("sequential"):
        found.append(("scores", "use coins of lower-index canaries of their trial", ""))
    return [Entry(name, value, _as_given(name, value), place) for name, value, place in found]


def _as_given(name: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and name != "seed":  # which is for copying
        return f"{value:,}"
    return exact(value) if isinstance(value, float) else str(value)


def numbers_behind(result: AuditResult) -> list[Entry]:
    """Thresholds and rates of the bound, and what each of them is."""
    bound, method = result.bound, result.method
    thresholds, rates = method.describe_thresholds(bound), method.describe_rates(bound)
    found = [
        Entry(f"threshold, {name}", value, number(value), f"bound.thresholds.{name}", thresholds.get(name, ""))
        for name, value in bound.thresholds.items()
    ]
    for name, value in bound.rates.items():
        words = f"{int(value):,}" if name in method.counts else number(value)
        found.append(Entry(name.replace("_", " "), value, words, f"bound.rates.{name}", rates.get(name, "")))
    return found


def facts_of(result: AuditResult) -> list[Entry]:
    """What the target says of itself."""
    facts = list(result.facts.items())[:_MOST_FACTS]
    return [Entry(name, value, shown(value), f"facts.{name}") for name, value in facts]


def versions_of(result: AuditResult) -> list[tuple[str, str, str]]:
    """Packages with their versions when the audit was begun and when the bound was computed, where those are known."""
    begun, computed = result.versions, result.computed_with
    return [(name, begun.get(name, ""), computed.get(name, "")) for name in dict.fromkeys([*begun, *computed])]

"""Turn measurements into sentences, the worst deviation first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lidp.diagnosis.diagnosis import Claimed, Finding, Measurement, Part, Quantity, describe_limits
from lidp.rounding import at_least, at_most

_WORST = 1e9
_ROUNDING_RESIDUE = 1e-12
"""Shares of noise below this are rounding errors."""


def findings_of(
    measurements: Sequence[Measurement], *, claimed: Claimed, steps: tuple[int, int], runs_share_noise: bool | None
) -> tuple[Finding, ...]:
    """Return what deviates from the claim, worst first; what costs no privacy comes last."""
    findings = [
        *_reuse_findings(measurements, runs_share_noise),
        *_noise_findings([one for one in measurements if one.quantity is Quantity.NOISE]),
        *_participation_findings({one.quantity: one for one in measurements if one.part is Part.ALL}),
        *_step_findings(steps, claimed.steps),
    ]
    return tuple(sorted(findings, key=lambda finding: -finding.factor))


def _reuse_findings(measurements: Iterable[Measurement], runs_share_noise: bool | None) -> list[Finding]:
    findings = []
    if runs_share_noise:
        findings.append(Finding("two runs have the same noise along the same parameter: runs share a seed", _WORST))
    correlated = [one for one in measurements if one.quantity is Quantity.CORRELATION and not one.as_claimed]
    groups = [one for one in correlated if one.part is Part.GROUP]
    known = [one for one in measurements if one.quantity is Quantity.CORRELATION and one.part is Part.GROUP]
    shown = groups if groups and len(groups) < len(known) else [one for one in correlated if one.part is Part.ALL] or groups
    for one in shown:
        where = "" if one.part is Part.ALL else f"{one.where}: "
        if one.above:
            limit = f"at least {at_least(one.lower or 0.0, 3)}"
            findings.append(
                Finding(
                    f"{where}noise of successive steps is correlated ({limit}): it is reused", _WORST * (one.lower or 0.0)
                )
            )
        else:
            limit = f"at least {at_least(-(one.upper or 0.0), 3)}"
            findings.append(
                Finding(f"{where}noise of successive steps is negatively correlated ({limit}): part of it cancels", 2.0)
            )
    return findings


def _noise_findings(noise: Sequence[Measurement]) -> list[Finding]:
    """Return sentences about the noise: about groups or stretches if it differs between them, otherwise about all of it."""
    if all(one.as_claimed for one in noise):
        return []
    groups, stretches = ([one for one in noise if one.part is part] for part in (Part.GROUP, Part.STRETCH))
    findings = []
    if differ(groups):
        findings += _part_findings(groups, "no deviation found in the other groups")
    if differ(stretches):
        findings += _part_findings(_merged_stretches(stretches), "no deviation found at the other steps")
    if findings:
        return findings
    whole = [one for one in noise if one.part is Part.ALL and not one.as_claimed]
    return [_noise_finding(one) for one in whole or [one for one in noise if not one.as_claimed]]


def differ(parts: Sequence[Measurement]) -> bool:
    """Return whether parts have different amounts of noise: no amount lies within the limits of all of them."""
    if len(parts) < 2:
        return False
    if all(one.lower is None for one in parts):  # without lower limits: one is short of noise, and another may have enough
        return any(one.below for one in parts) and any(not one.below for one in parts)
    largest = max(one.lower or 0.0 for one in parts)
    return any(one.upper is not None and one.upper < largest for one in parts)


def _part_findings(parts: Sequence[Measurement], rest: str) -> list[Finding]:
    findings = [_noise_finding(one) for one in parts if not one.as_claimed]
    findings.sort(key=lambda finding: -finding.factor)
    if findings and any(one.as_claimed for one in parts):
        findings[-1] = Finding(f"{findings[-1].text}; {rest}", findings[-1].factor)
    return findings


def _noise_finding(one: Measurement) -> Finding:
    where = "" if one.part is Part.ALL else f"{one.where}: "
    upper = one.upper if one.upper is not None else 0.0
    if one.below and upper < _ROUNDING_RESIDUE:
        return Finding(f"{where}no noise at all", _WORST)
    if one.below:
        little = one.lower is None or one.lower < 0.2 * upper or upper < 0.005
        limits = f"at most {at_most(upper, 3)}" if little else one.describe()
        return Finding(f"{where}noise {limits} of what is claimed", min(1 / max(upper, 1e-6), _WORST))
    limits = describe_limits(one.lower, one.upper)
    return Finding(f"{where}noise {limits} of what is claimed: more than needed", 0.5)


def _merged_stretches(stretches: Sequence[Measurement]) -> list[Measurement]:
    """Return the stretches with neighbours joined that deviate in the same direction and have limits in common."""
    merged: list[Measurement] = []
    for one in stretches:
        last = merged[-1] if merged else None
        if last is None or not _alike(last, one):
            merged.append(one)
            continue
        first_step, last_step = last.where.split(" to ")[0], one.where.split(" to ")[-1].removeprefix("step ")
        first_step = first_step.replace("step ", "steps ") if first_step.startswith("step ") else first_step
        lower = None if last.lower is None or one.lower is None else min(last.lower, one.lower)
        upper = None if last.upper is None or one.upper is None else max(last.upper, one.upper)
        where = f"{first_step} to {last_step}"
        merged[-1] = Measurement(one.quantity, one.part, where, lower, upper, one.claimed)
    return merged


def _alike(first: Measurement, second: Measurement) -> bool:
    same = (first.below, first.above) == (second.below, second.above)
    limits = [(one.lower or 0.0, float("inf") if one.upper is None else one.upper) for one in (first, second)]
    return same and max(low for low, _ in limits) <= min(high for _, high in limits)


def _participation_findings(measured: dict[Quantity, Measurement]) -> list[Finding]:
    """Return sentences about how often canaries take part and what they add, separately where the evidence allows."""
    if Quantity.PRODUCT not in measured:
        return []
    product, rate, contribution = (measured[name] for name in (Quantity.PRODUCT, Quantity.RATE, Quantity.CONTRIBUTION))
    findings = []
    if rate.above or (rate.below and contribution.as_claimed):  # contributions that vary lower the estimate of the rate
        findings.append(_rate_finding(rate))
    if contribution.above:
        least = at_least(contribution.lower or 0.0, 3)
        text = f"a canary adds at least {least} times its clipped gradient when it takes part: clipping does not hold"
        findings.append(Finding(text, contribution.lower or 1.0))
    if findings or product.as_claimed:
        return findings
    if product.above:
        factor = (product.lower or 0.0) / product.claimed
        text = (
            f"sampling rate times contribution is at least {at_least(factor, 3)} times what is claimed; "
            f"if contributions are as claimed, canaries took part in {_percent_range(product)} of the steps"
        )
        return [Finding(text, factor)]
    most = at_most((product.upper or 0.0) / product.claimed, 3)
    return [Finding(f"sampling rate times contribution is at most {most} times what is claimed", 0.5)]


def _rate_finding(rate: Measurement) -> Finding:
    claim = f"the claimed sampling rate of {_percent(rate.claimed)}"
    took_part = f"canaries took part in {_percent_range(rate)} of the steps"
    if rate.above:
        factor = (rate.lower or 0.0) / rate.claimed
        return Finding(f"{took_part}, at least {at_least(factor, 3)} times {claim}", factor)
    most = at_most((rate.upper or 0.0) / rate.claimed, 3)
    return Finding(f"{took_part}, at most {most} times {claim}", 0.5)


def _percent_range(one: Measurement) -> str:
    lower = at_least(100 * (one.lower or 0.0), 3)
    return f"at least {lower} %" if one.upper is None else f"{lower} % to {at_most(100 * one.upper, 3)} %"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _step_findings(steps: tuple[int, int], claimed: int) -> list[Finding]:
    least, most = steps
    if most > claimed:
        factor = most / claimed
        return [Finding(f"{most:,} steps were recorded, {factor:.3g} times the {claimed:,} that are claimed", factor)]
    if least < claimed:
        return [Finding(f"{least:,} steps were recorded, fewer than the {claimed:,} that are claimed", 0.5)]
    return []

"""``diagnose``: find out from the evidence of an audit which part of a training deviates from its claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lidp import checks
from lidp.arrays import Floats, Ints
from lidp.claim import Claim, Neighbours
from lidp.diagnosis.claimed import claimed_training
from lidp.diagnosis.diagnosis import Claimed, Diagnosis, Measurement, Part, Quantity, finite_or_none
from lidp.diagnosis.evidence import Evidence, first_trials
from lidp.diagnosis.findings import differ, findings_of
from lidp.diagnosis.intervals import dependent_variance_limits, tail_exponent_of, variance_limits
from lidp.diagnosis.participation import LIMITS, Limits, Participation, participation
from lidp.diagnosis.reuse import correlation_limits, runs_share_noise
from lidp.engine.audit import trials_of
from lidp.errors import InvalidArgument
from lidp.result import AuditResult
from lidp.rounding import counted
from lidp.stats.method import Method
from lidp.stats.storable import Storable

MOST_GROUPS = 400
"""More parameter groups are measured together only."""
_OVERLAP = (
    "gradients of canaries may overlap, so only upper limits on noise are given; "
    "dirac-gradient canaries tell more (or --separate-canaries, if they do not overlap)"
)
_CORRELATED = (
    "noise is correlated from step to step, so limits on noise count each canary once, and participation is not measured"
)
_SHARED = "runs share noise, so the limits, which take runs for independent, are narrower than they should be"
_UNEVEN = "noise differs between steps, between parameters of one group, or between runs, so participation is not measured"
_UNLIKELY_SPREAD = 1e-3
"""Probability below which a spread of noise between canaries of one group means that their noise differs."""
_UNKNOWN_PARTICIPATION = (
    "participation is not measured, since gradients of canaries differ in length, or no held-out canary shows the noise"
)
_Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def diagnose(
    store: str | Path,
    *,
    failure_probability: float = 0.05,
    separate_canaries: bool | None = None,
    noise_multiplier: float | None = None,
    sampling_rate: float | None = None,
    steps: int | None = None,
    methods: Iterable[type[Storable]] = (),
) -> Diagnosis:
    """Return where the training in a store deviates from its claim; no mechanism is run and no code of the target is loaded.

    Args:
        store: the store of an audit with transcript scores.
        failure_probability: the largest probability with which any of the limits may be wrong.
        separate_canaries: whether the gradients of canaries do not overlap, as those along different coordinates. If left out,
            they are known not to for dirac-gradient canaries, and if a training was audited canary by canary.
        noise_multiplier: the claimed noise multiplier, if the claim does not say it; likewise ``sampling_rate`` and ``steps``.
        methods: see :func:`lidp.result_of`.

    Raises:
        InvalidArgument: if the audit recorded no transcripts, or the claim does not say what the training should be.
        StoreError: if there is no such store, or it is damaged.
    """
    plan, records = trials_of(store, methods=methods)
    if not plan.design.has_coins or not plan.design.has_canaries:
        raise InvalidArgument(f"{store} has no transcript: only audits with coin-flip canaries record one")
    evidence = Evidence.of(first_trials(records), str(store))
    if separate_canaries is None:
        separate_canaries = canaries_are_separate(plan.method, plan.claim, evidence)
    claimed = claimed_training(plan.claim, noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps)
    return diagnose_evidence(
        evidence, claimed, target=plan.name, separate_canaries=separate_canaries, failure_probability=failure_probability
    )


def diagnose_result(result: AuditResult, *, failure_probability: float = 0.05) -> Diagnosis | None:
    """Return the diagnosis of an audit; None if it recorded no transcripts, or its claim does not say what to compare with."""
    if not result.transcripts:
        return None
    try:
        claimed = claimed_training(result.claim)
        evidence = Evidence.of(result.transcripts)
    except InvalidArgument:
        return None
    separate = canaries_are_separate(result.method, result.claim, evidence)
    return diagnose_evidence(
        evidence, claimed, target=result.target, separate_canaries=separate, failure_probability=failure_probability
    )


def canaries_are_separate(method: Method, claim: Claim, evidence: Evidence) -> bool:
    """Return whether the canaries of an audit are known to have gradients along different coordinates.

    They are if every canary belongs to one group of parameters: see :class:`lidp.training.transcript.Transcript`. An audit canary
    by canary has this as its hypothesis, so its diagnosis has it too.
    """
    if method.assumes_independent_canaries:
        return True
    return claim.neighbours is Neighbours.ADD_REMOVE and len(evidence.groups) > 0


def diagnose_evidence(
    evidence: Evidence, claimed: Claimed, *, target: str, separate_canaries: bool, failure_probability: float = 0.05
) -> Diagnosis:
    """Return the diagnosis of evidence; a single canary per run overlaps no other.

    Guarantee: see :class:`Diagnosis`.
    """
    failure_probability = checks.probability(failure_probability=failure_probability)
    separate_canaries = separate_canaries or all(len(run.inserted) == 1 for run in evidence.runs)
    parts = list(_parts(evidence))
    whole = [part for part in parts if part.kind is not Part.STRETCH]
    number_of_limits = len(parts) + 1 + (len(parts) + 2 * len(whole) + LIMITS if separate_canaries else 0)
    tail_exponent = tail_exponent_of(failure_probability, number_of_limits, evidence.trials)
    correlations = _correlations(evidence, whole, tail_exponent) if separate_canaries else []
    correlated = any(not one.as_claimed for one in correlations)
    variances = [
        _variance(evidence, part, tail_exponent, separate=separate_canaries, correlated=correlated) for part in parts
    ]
    measurements = [
        *(_noise(part, limits, claimed, separate_canaries) for part, limits in zip(parts, variances, strict=True)),
        *correlations,
    ]
    notes = [*evidence.notes, *_layout_notes(evidence)]
    if not separate_canaries:
        notes.append(_OVERLAP)
    elif correlated:
        notes.append(_CORRELATED)
    elif _noise_varies(evidence, [part for part in whole if part.kind is Part.GROUP] or whole) or differ(
        [one for one in measurements if one.quantity is Quantity.NOISE and one.part is Part.STRETCH]
    ):
        notes.append(_UNEVEN)
    else:
        measured = _participation(evidence, dict(zip(parts, variances, strict=True)), tail_exponent)
        if measured is None:
            notes.append(_UNKNOWN_PARTICIPATION)
        else:
            measurements += _participation_measurements(measured, claimed)
    recorded = [run.steps for run in evidence.runs]
    steps = min(recorded), max(recorded)
    shared = runs_share_noise(evidence, tail_exponent)
    if shared:
        notes.append(_SHARED)
    return Diagnosis(
        target=target,
        claimed=claimed,
        trials=evidence.trials,
        steps=steps,
        separate_canaries=separate_canaries,
        runs_share_noise=shared,
        failure_probability=failure_probability,
        measurements=tuple(measurements),
        findings=findings_of(measurements, claimed=claimed, steps=steps, runs_share_noise=shared),
        notes=tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class _TrainingPart:
    """All of a training, one parameter group of it, or one stretch of steps; ``mask`` says which canaries are in it."""

    kind: Part
    where: str
    mask: _Mask
    squares: Floats
    counts: Floats
    planned_steps: Floats
    """for each run, the number of steps"""


def _parts(evidence: Evidence) -> Iterator[_TrainingPart]:
    """Yield the whole training, its parameter groups if there are several, and its stretches if there are several."""
    everything = np.ones(len(evidence.inserted), dtype=bool)
    squares, counts = evidence.total("square"), evidence.total("count")
    steps = np.array([float(run.steps) for run in evidence.runs])
    yield _TrainingPart(Part.ALL, "all", everything, squares, counts, steps)
    used = np.unique(evidence.groups)
    for group in used if 1 < len(used) <= MOST_GROUPS else ():
        yield _TrainingPart(Part.GROUP, evidence.group_names[group], evidence.groups == group, squares, counts, steps)
    first = 1
    for number, size in enumerate(evidence.layout if len(evidence.layout) > 1 else ()):
        where = f"step {first:,}" if size == 1 else f"steps {first:,} to {first + size - 1:,}"
        planned = np.array([float(size) if run.layout == evidence.layout else 0.0 for run in evidence.runs])
        squares, counts = evidence.stretches("square")[:, number], evidence.stretches("count")[:, number]
        yield _TrainingPart(Part.STRETCH, where, everything, squares, counts, planned)
        first += size


def _variance(evidence: Evidence, part: _TrainingPart, tail_exponent: float, *, separate: bool, correlated: bool) -> Limits:
    """Return limits on the variance of the noise in a part, from held-out canaries."""
    held_out = part.mask & ~evidence.inserted & (part.counts > 0)
    squares, counts, runs = part.squares[held_out], part.counts[held_out], evidence.run_numbers[held_out]
    if correlated:  # the steps of one canary may all have the same noise: its mean square counts as one
        canaries = float(len(squares))
        return dependent_variance_limits(float((squares / counts).sum()), canaries, canaries, tail_exponent)
    if separate:
        planned = part.planned_steps[runs]
        if (counts == planned).all():
            return variance_limits(float(squares.sum()), float(counts.sum()), tail_exponent)
        # Some gradients were 0, at steps that may depend on the noise: only the upper limit allows for that.
        sums = float(squares.sum()), float(counts.sum()), float(planned.sum())
        return 0.0, dependent_variance_limits(*sums, tail_exponent)[1]
    canaries_per_run = np.bincount(runs, minlength=len(evidence.runs))
    seen = canaries_per_run > 0
    means = [
        np.bincount(runs, weights=values, minlength=len(evidence.runs))[seen] / canaries_per_run[seen]
        for values in (squares, counts)
    ]
    total_steps = float(part.planned_steps[seen].sum())
    return dependent_variance_limits(float(means[0].sum()), float(means[1].sum()), total_steps, tail_exponent)


def _noise(part: _TrainingPart, variance: Limits, claimed: Claimed, separate: bool) -> Measurement:
    lower, upper = (finite_or_none(math.sqrt(limit) / claimed.noise_multiplier) for limit in variance)
    return Measurement(Quantity.NOISE, part.kind, part.where, lower if separate else None, upper, 1.0)


def _noise_varies(evidence: Evidence, parts: list[_TrainingPart]) -> bool:
    """Return whether held-out canaries of one part have different amounts of noise, by the spread of their mean squares.

    Then the noise of inserted canaries is not known from that of held-out ones. The mean of n squares of equal Gaussian noise has
    a relative variance of 2/n.
    """
    from scipy import special

    for part in parts:
        mask = part.mask & ~evidence.inserted & (part.counts > 0)
        if mask.sum() < 2 or not part.squares[mask].any():
            continue
        means, counts = part.squares[mask] / part.counts[mask], part.counts[mask]
        overall = float(np.average(means, weights=counts))
        spread = float((counts / 2 * (means / overall - 1) ** 2).sum())
        if special.gammaincc((mask.sum() - 1) / 2, spread / 2) < _UNLIKELY_SPREAD:
            return True
    return False


def _correlations(evidence: Evidence, parts: list[_TrainingPart], tail_exponent: float) -> list[Measurement]:
    """Return limits on the correlation of successive steps, wide enough to hold without the noisiest stretch too.

    A few steps with far more noise than the others would dominate the sums, and their products look like a correlation.
    """
    measurements = []
    for part in parts:
        mask = part.mask & ~evidence.inserted
        squares = evidence.stretches("square")[mask].sum(axis=0)
        counts = evidence.stretches("count")[mask].sum(axis=0)
        noisiest = int(np.argmax(squares / np.maximum(counts, 1.0))) if len(squares) else 0
        all_stretches = np.ones(len(squares), dtype=bool)
        limits = [_correlation(evidence, mask, all_stretches, tail_exponent)]
        if len(squares) > 1:
            others = all_stretches & (np.arange(len(squares)) != noisiest)
            limits.append(_correlation(evidence, mask, others, tail_exponent))
        lower, upper = min(low for low, _ in limits), max(high for _, high in limits)
        measurements.append(Measurement(Quantity.CORRELATION, part.kind, part.where, lower, upper, 0.0))
    return measurements


def _correlation(evidence: Evidence, mask: _Mask, stretches: _Mask, tail_exponent: float) -> tuple[float, float]:
    """Return limits on the correlation of successive steps of some held-out canaries, from some of the stretches."""
    if stretches.all():
        sums = {name: float(evidence.total(name)[mask].sum()) for name in ("lagged", "square", "count")}
        last = float(evidence.last("square")[mask].sum())
    else:
        sums = {name: float(evidence.stretches(name)[mask][:, stretches].sum()) for name in ("lagged", "square", "count")}
        sums["lagged"], last = max(-sums["square"], min(sums["square"], sums["lagged"])), 0.0
    return correlation_limits(
        lagged=sums["lagged"],
        squares=sums["square"],
        last=last,
        count=sums["count"],
        tail_exponent=tail_exponent,
        unevenness=_unevenness(evidence, mask),
    )


def _unevenness(evidence: Evidence, mask: _Mask) -> float:
    """Return the largest mean square of noise, over parameter groups and stretches, in units of the mean over all of them."""
    groups = evidence.groups if len(evidence.groups) else np.zeros(len(mask), np.int64)
    sums = [_sums_by_group(groups[mask], evidence.stretches(name)[mask]) for name in ("square", "count")]
    means = sums[0][sums[1] > 0] / sums[1][sums[1] > 0]
    squares, count = evidence.total("square")[mask].sum(), evidence.total("count")[mask].sum()
    return max(1.0, float(means.max() * count / squares)) if squares > 0 and len(means) else 1.0


def _sums_by_group(groups: Ints, values: Floats) -> Floats:
    """Return the sums of the rows of each group, an array (groups, stretches)."""
    sums = np.zeros((int(groups.max(initial=0)) + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums


def _participation(
    evidence: Evidence, variances: dict[_TrainingPart, Limits], tail_exponent: float
) -> Participation | None:
    inserted = evidence.inserted
    groups = {part: limits for part, limits in variances.items() if part.kind is Part.GROUP} or {
        part: limits for part, limits in variances.items() if part.kind is Part.ALL
    }
    return participation(
        products=evidence.total("product")[inserted],
        squares=evidence.total("square")[inserted],
        lengths=evidence.total("length")[inserted],
        counts=evidence.total("count")[inserted],
        variances=[(np.flatnonzero(part.mask[inserted]), limits) for part, limits in groups.items()],
        tail_exponent=tail_exponent,
    )


def _participation_measurements(measured: Participation, claimed: Claimed) -> list[Measurement]:
    values = (
        (Quantity.PRODUCT, measured.product, claimed.sampling_rate),
        (Quantity.RATE, measured.rate, claimed.sampling_rate),
        (Quantity.CONTRIBUTION, measured.contribution, 1.0),
    )
    return [
        Measurement(quantity, Part.ALL, "all", limits[0], finite_or_none(limits[1]), value)
        for quantity, limits, value in values
    ]


def _layout_notes(evidence: Evidence) -> list[str]:
    notes = []
    groups = len(np.unique(evidence.groups))
    if groups > MOST_GROUPS:
        notes.append(f"parameter groups are not measured one by one: {groups:,} are more than {MOST_GROUPS}")
    others = sum(run.layout != evidence.layout for run in evidence.runs)
    if not others:
        return notes
    return [
        *notes,
        "stretches of steps are those of most runs; "
        f"{counted(others, 'runs')} with another number of steps {'is' if others == 1 else 'are'} left out of them",
    ]

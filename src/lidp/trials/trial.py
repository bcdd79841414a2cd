"""One trial: draw canaries, run the mechanism once per arm, score.

A trial depends only on (target, design, seed, index). An arm that raises has failed. Failing is an outcome: it is recorded with its
reason, never run again with other randomness, and nothing is bet on it. Only :class:`~lidp.errors.AuditFailed`, for errors of the
auditor, and interrupts end the audit: see :mod:`lidp._runtime.user_code`. The two arms of leave-one-out run in random order, and
those of replace-one are scored in random order: memory in a mechanism or a score must not distinguish the arms.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.tracebacks import format_failure
from lidp._runtime.user_code import fail_audit_on_error, must_propagate, user_code
from lidp.arrays import Floats
from lidp.canaries import CanaryDistribution
from lidp.designs import Design
from lidp.designs.layout import Arm, Layout
from lidp.designs.trial_record import WHOLE_TRIAL, TrialRecord
from lidp.errors import InvalidScores
from lidp.streams import Purpose, stream
from lidp.target import Output, Target, with_canaries
from lidp.trials.scoring import ScoringContext, as_trial_score, watches


@dataclass(frozen=True)
class TrialSetup:
    """Everything that the trials of an audit share."""

    target: Target
    design: Design
    seed: int
    prepared: Mapping[str, NDArray[Any]] | None = None

    @property
    def canaries(self) -> CanaryDistribution:
        """The distribution of canaries: the target's, after the preparation step."""
        prepared = getattr(self.target.canaries, "prepared", None)
        if prepared is None or self.prepared is None:
            return self.target.canaries
        distribution: CanaryDistribution = prepared(self.prepared)
        return distribution

    @property
    def has_preparation(self) -> bool:
        """Whether a preparation step has run before the first trial."""
        return self.target.prepare is not None

    def run(self, indices: Sequence[int]) -> list[TrialRecord]:
        """Run some trials, through the mechanism's ``run_many`` where it has one."""
        return run_trials(self, indices)

    def lost_record(self, index: int, reason: str, *, seconds: float, attempts: int = 1) -> TrialRecord:
        """Return the record of a trial whose process did not come back."""
        return failed_record(self, index, reason, seconds=seconds, attempts=attempts)

    @property
    def extra(self) -> tuple[Any, ...]:
        """The arguments of score functions after output and canary."""
        return () if self.prepared is None else (self.prepared,)


def run_trial(setup: TrialSetup, index: int) -> TrialRecord:
    """Run one trial. Failures of the mechanism or score are recorded, not raised."""
    return run_trials(setup, [index])[0]


def run_trials(setup: TrialSetup, indices: Sequence[int]) -> list[TrialRecord]:
    """Run several trials, through the mechanism's ``run_many`` where it has one."""
    layouts = {index: lay_out(setup, index) for index in indices}
    outputs, seconds = _run_many(setup, layouts)
    return [_finish(setup, index, layouts[index], outputs, seconds) for index in indices]


Outputs = dict[tuple[int, int], Any]


def _run_many(setup: TrialSetup, layouts: Mapping[int, Layout]) -> tuple[Outputs, float]:
    """Return outputs by (trial, arm number) from one call of ``run_many``, and seconds per trial; empty without ``run_many``."""
    many = getattr(setup.target.mechanism, "run_many", None)
    if many is None or len(layouts) == 1:
        return {}, 0.0
    jobs = {(index, arm.number): arm for index, (_, arms) in layouts.items() for arm in _in_order(setup, index, arms)}
    start = time.perf_counter()
    _seed_global_generators(setup, *next(iter(jobs)))
    try:
        with user_code():
            results = list(many([_data(setup, arm) for arm in jobs.values()], [_noise(setup, *job) for job in jobs]))
    except BaseException as error:  # a mechanism may raise anything
        if must_propagate(error):
            raise
        # Run each data set alone, with the same stream, to find which one raises: the same computation, not a retry.
        return {}, 0.0
    if len(results) != len(jobs):
        return {}, 0.0
    return dict(zip(jobs, results, strict=True)), (time.perf_counter() - start) / len(layouts)


def failed_record(setup: TrialSetup, index: int, reason: str, *, seconds: float, attempts: int = 1) -> TrialRecord:
    """Return the record of a trial whose process did not come back; the design says what it counts as."""
    layout = lay_out(setup, index)
    arrays, wholly = setup.design.lost_arrays(layout)
    failures = {WHOLE_TRIAL: reason} if wholly else {arm.name: reason for arm in layout.arms}
    return TrialRecord(index, arrays, failures, seconds, {}, attempts)


def lay_out(setup: TrialSetup, index: int) -> Layout:
    """Return the layout of a trial: its coins, and the canaries of each run.

    Raises:
        AuditFailed: if canaries cannot be drawn; that is an error of the auditor, not an outcome of the mechanism.
    """
    with fail_audit_on_error(f"drawing the canaries of trial {index}"):
        return setup.design.lay_out(setup.canaries.draw, setup.seed, index)


def _in_order(setup: TrialSetup, index: int, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms of a trial in the random order in which they are run and scored."""
    if len(arms) == 1:
        return list(arms)
    order = stream(setup.seed, trial=index, purpose=Purpose.ARM_ORDER).permutation(len(arms))
    return [arms[k] for k in order]


def _plain(value: Any) -> Any:
    """Return a metadata value that JSON can hold."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # Exactly these types: subclasses may not be picklable.
    return next((kind(value) for kind in (bool, int, float) if isinstance(value, kind)), str(value))


def _copies(canaries: Any) -> Any:
    """Return copies of canaries; an object that occurs twice is copied twice."""
    if isinstance(canaries, np.ndarray) and canaries.dtype != object:
        return canaries.copy()
    if isinstance(canaries, np.ndarray):
        copies = canaries.copy()
        for index in np.ndindex(copies.shape):
            copies[index] = copy.deepcopy(copies[index])
        return copies
    return [copy.deepcopy(canary) for canary in canaries]


def _seed_global_generators(setup: TrialSetup, index: int, number: int) -> None:
    """Seed the global generators, so that mechanisms that draw from them get different noise in every trial.

    Worker processes start with copies of one state, so their trials would share noise otherwise.
    """
    seed_global_generators(stream(setup.seed, trial=index, arm=number, purpose=Purpose.GLOBAL))


def _data(setup: TrialSetup, arm: Arm) -> Any:
    with fail_audit_on_error(f"planting {len(arm.inserted)} canaries"):
        data = with_canaries(setup.target.dataset, arm.inserted)
        return data.watching(arm.tested) if watches(setup.target.score) else data


def _noise(setup: TrialSetup, index: int, number: int) -> np.random.Generator:
    return stream(setup.seed, trial=index, arm=number, purpose=Purpose.NOISE)


def _finish(setup: TrialSetup, index: int, layout: Layout, outputs: Outputs, seconds: float) -> TrialRecord:
    """Run the arms that have no output yet, score all arms, and return the record."""
    start = time.perf_counter()
    coins, arms = layout
    arrays = {arm.name: np.full(len(arm.tested), np.nan) for arm in arms}
    failures: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    evidence: dict[str, Floats] = {}
    new_outputs: Outputs = {}
    for arm in _in_order(setup, index, arms):
        job = (index, arm.number)
        try:
            # Replace-one scores inserted and held-out canaries on one output.
            if job not in outputs and job not in new_outputs:
                _seed_global_generators(setup, *job)
                data = _data(setup, arm)
                with user_code():
                    new_outputs[job] = setup.target.mechanism(data, _noise(setup, *job))
            output = outputs[job] if job in outputs else new_outputs[job]
            if isinstance(output, Output):
                metadata.update({f"{arm.name}_{key}": _plain(value) for key, value in output.metadata.items()})
                output = output.value
            arrays[arm.name] = _score(setup, index, arm, output, metadata, evidence)
        except BaseException as error:  # any exception of a mechanism or score is an outcome
            # Errors of the auditor, such as canaries that cannot be inserted, may depend on the coins: they are no outcome.
            if must_propagate(error):
                raise
            failures[arm.name] = format_failure(error, frames=8)
    arrays, failures = setup.design.merge_failures(arrays, failures)
    if coins is not None:
        arrays["coins"] = coins
    return TrialRecord(index, arrays, failures, seconds + time.perf_counter() - start, metadata, evidence=evidence)


def _score(
    setup: TrialSetup, index: int, arm: Arm, output: Any, metadata: dict[str, Any], evidence: dict[str, Floats]
) -> Floats:
    scoring = as_trial_score(setup.target.score)
    auxiliary: Any = []
    if scoring.auxiliary:
        rng = stream(setup.seed, trial=index, arm=arm.number, purpose=Purpose.AUXILIARY)
        with user_code():
            auxiliary = setup.canaries.draw(rng, scoring.auxiliary)
    together = setup.design.has_coins
    tested, inserted = arm.tested, arm.inserted
    if not together:
        # A score that changes canaries in place must change neither the data of the other arm nor other scores.
        with fail_audit_on_error("copying the canaries that are scored"):
            tested, inserted, auxiliary = (_copies(canaries) for canaries in (tested, inserted, auxiliary))
    context = ScoringContext(output, tested, inserted, arm.others, auxiliary, together)
    with user_code():
        scores = np.array(scoring.score_trial(context, *setup.extra), dtype=np.float64)
    if scores.shape != (len(arm.tested),):
        raise InvalidScores(f"the score gave an array of shape {scores.shape} for {len(arm.tested)} canaries")
    metadata |= {f"{arm.name}_{name}": _plain(value) for name, value in context.notes.items()}
    evidence |= context.evidence
    unscored = ~np.isfinite(scores)
    if unscored.any():
        # A constant is a valid score. The whole run must not fail because of one canary: see raw_scores.
        scores[unscored] = 0.0
        reason = context.problems[0] if context.problems else "the score is not a finite number"
        metadata |= {f"{arm.name}_unscored": int(unscored.sum()), f"{arm.name}_unscored_because": reason}
    return scores

"""One trial: draw canaries, run the mechanism once per arm, score.

A trial is a function of (target, design, seed, index) and nothing else. An arm that fails, by raising or by scores that are
not finite, is an output like any other: it is recorded with its reason, never run again with other randomness, and nobody
bets on it. Only :class:`~lidp.errors.AuditFailed`, the auditor's own trouble, and interrupts end the audit: see
:mod:`lidp._runtime.user_code`. The two arms of leave-one-out are run in random order, and those of replace-one are scored in
random order: what a mechanism or a score keeps from one call to the next must not tell the arms apart.
"""

from __future__ import annotations

import copy
import math
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.global_generators import seed_global_generators
from lidp._runtime.user_code import fail_audit_on_error, must_propagate, user_code
from lidp.canaries import CanaryDistribution
from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidScores
from lidp.streams import Purpose, draw_coins, stream
from lidp.target import Output, Target, with_canaries
from lidp.trials.scoring import AllButOne, FirstOthers, Scene, as_trial_score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE_TRIAL = "trial"
"""In ``failures``: that a trial was lost with both its runs."""
_FAR = 1e100  # beyond every score


@dataclass(frozen=True)
class TrialSetup:
    """All that the trials of an audit share."""

    target: Target
    design: Design
    seed: int
    prepared: Mapping[str, NDArray[Any]] | None = None

    @property
    def canaries(self) -> CanaryDistribution:
        """What to draw canaries from: the target's distribution, as the preparation step leaves it."""
        prepared = getattr(self.target.canaries, "prepared", None)
        if prepared is None or self.prepared is None:
            return self.target.canaries
        found: CanaryDistribution = prepared(self.prepared)
        return found

    @property
    def extra(self) -> tuple[Any, ...]:
        """What score functions get besides output and canary."""
        return () if self.prepared is None else (self.prepared,)


@dataclass(frozen=True)
class TrialRecord:
    """What a trial hands on.

    ``arrays`` are named as in ``Scores``: scores and coins, or inserted and held_out; a failed arm's scores are NaN.
    ``failures`` says why each failed arm failed; or, as ``WHOLE_TRIAL``, why a trial of two runs was lost: see
    :func:`failed_record`.
    """

    index: int
    arrays: Mapping[str, Floats]
    failures: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1

    @property
    def lost(self) -> bool:
        """Whether nothing is known of any of its runs."""
        return WHOLE_TRIAL in self.failures or all(name in self.failures for name in self.arrays if name != "coins")

    def is_sound(self) -> bool:
        """Return whether its notes are of the kinds that a trial makes."""
        runs = {name for name in self.arrays if name != "coins"} | {WHOLE_TRIAL}
        reasons = all(name in runs and isinstance(reason, str) for name, reason in self.failures.items())
        numbers = [value for name, value in self.metadata.items() if name.endswith("_unscored")] + [self.seconds]
        known = all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers)
        return reasons and known and self.attempts >= 1


@dataclass(frozen=True)
class _Arm:
    """One run of the mechanism and what is to be scored on it."""

    name: str
    number: int
    inserted: Any
    tested: Any
    others: Sequence[Ints]


def run_trial(setup: TrialSetup, index: int) -> TrialRecord:
    """Run one trial. Failures of the mechanism or score are recorded, not raised."""
    return run_trials(setup, [index])[0]


def run_trials(setup: TrialSetup, indices: Sequence[int]) -> list[TrialRecord]:
    """Run several trials, through the mechanism's ``run_many`` where it has one."""
    layouts = {index: lay_out(setup, index) for index in indices}
    outputs, seconds = _run_many(setup, layouts)
    return [_finish(setup, index, layouts[index], outputs, seconds) for index in indices]


Layout = tuple[Floats | None, list["_Arm"]]
Outputs = dict[tuple[int, int], Any]


def _run_many(setup: TrialSetup, layouts: Mapping[int, Layout]) -> tuple[Outputs, float]:
    """Outputs by (trial, arm number) from one call of ``run_many``, and the seconds a trial; empty if there is none."""
    many = getattr(setup.target.mechanism, "run_many", None)
    if many is None or len(layouts) == 1:
        return {}, 0.0
    jobs = {(index, arm.number): arm for index, (_, arms) in layouts.items() for arm in _in_order(setup, index, arms)}
    start = time.perf_counter()
    _seed_global_generators(setup, *next(iter(jobs)))
    try:
        with user_code():
            found = list(many([_data(setup, arm) for arm in jobs.values()], [_noise(setup, *job) for job in jobs]))
    except BaseException as error:  # whatever a mechanism may raise
        if must_propagate(error):
            raise
        # Which data set did it? Each is run alone, with the very stream it had: the same computation, not another try.
        return {}, 0.0
    if len(found) != len(jobs):
        return {}, 0.0
    return dict(zip(jobs, found, strict=True)), (time.perf_counter() - start) / len(layouts)


def failed_record(setup: TrialSetup, index: int, reason: str, *, seconds: float, attempts: int = 1) -> TrialRecord:
    """The record of a trial whose process did not come back: its coins are known, its scores are not.

    Of two runs one has failed, and it is not known which. Taking both for failed would drop the other's output whenever the first
    fails, which may depend on the canary: a true claim would be refuted. Scores that speak against inserting in both arms, below
    and above every threshold, are never more telling than those that were lost, in either direction.
    """
    coins, arms = lay_out(setup, index)
    if isinstance(setup.design, LeaveOneOut):
        worst = {arm.name: np.full(len(arm.tested), -_FAR if arm.name == "inserted" else _FAR) for arm in arms}
        return TrialRecord(index, worst, {WHOLE_TRIAL: reason}, seconds, {}, attempts)
    arrays = {arm.name: np.full(len(arm.tested), np.nan) for arm in arms}
    if coins is not None:
        arrays["coins"] = coins
    return TrialRecord(index, arrays, {arm.name: reason for arm in arms}, seconds, {}, attempts)


def lay_out(setup: TrialSetup, index: int) -> Layout:
    """Draw canaries and coins, and say what each run of the mechanism gets.

    Raises:
        AuditFailed: if canaries cannot be drawn; they are the auditor's, so that is no outcome of the mechanism.
    """
    with fail_audit_on_error(f"drawing the canaries of trial {index}"):
        return _lay_out(setup, index)


def _lay_out(setup: TrialSetup, index: int) -> Layout:
    design = setup.design
    draw: Any = setup.canaries.draw
    canaries = stream(setup.seed, trial=index, purpose=Purpose.CANARIES)
    if isinstance(design, CoinFlip):
        size = design.canaries
        coins = draw_coins(setup.seed, trial=index, size=size)
        tested = draw(canaries, size)
        places = np.flatnonzero(coins)
        before = np.concatenate([[0], np.cumsum(coins)[:-1]])
        if design.neighbours is Neighbours.REPLACE_ONE:
            rivals = draw(canaries, size)
            inserted = _pick([tested[k] if coins[k] else rivals[k] for k in range(size)], tested)
            # Each of the two of a pair is inserted for certain or not at all, so all lower-index ones are known.
            others = FirstOthers(np.arange(size))
        else:
            inserted = tested[places] if isinstance(tested, np.ndarray) else [tested[k] for k in places]
            others = FirstOthers(before)
        return coins.astype(np.float64), [_Arm("scores", 1, inserted, tested, others)]
    inserted = draw(canaries, design.canaries)
    fresh = draw(stream(setup.seed, trial=index, purpose=Purpose.HELD_OUT), design.held_out)
    first = _Arm("inserted", 1, inserted, inserted, AllButOne(design.canaries, np.arange(design.canaries)))
    # Exactly K-1 others for a held-out canary too: those of D0; or all of D1 but one, as an inserted canary leaves itself out:
    # any of them with equal chance, as mechanisms may treat records by their place.
    if isinstance(design, LeaveOneOut):
        everyone = FirstOthers(np.full(design.held_out, design.canaries - 1))
        return None, [first, _Arm("held_out", 0, inserted[:-1], fresh, everyone)]
    assert isinstance(design, ReplaceOne)  # noqa: S101  # for the type checker: there are three designs
    left_out = stream(setup.seed, trial=index, purpose=Purpose.LEFT_OUT).integers(0, design.canaries, design.held_out)
    return None, [first, _Arm("held_out", 1, inserted, fresh, AllButOne(design.canaries, left_out))]


def _in_order(setup: TrialSetup, index: int, arms: Sequence[_Arm]) -> list[_Arm]:
    """Return the arms of a trial in the random order in which they are run and scored."""
    order = stream(setup.seed, trial=index, purpose=Purpose.ARM_ORDER).permutation(len(arms))
    return [arms[k] for k in order]


def _plain(value: Any) -> Any:
    """A metadata value as JSON can hold it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # Of exactly these kinds: others may not be sent between processes.
    return next((kind(value) for kind in (bool, int, float) if isinstance(value, kind)), str(value))


def _pick(chosen: list[Any], like: Any) -> Any:
    return np.array(chosen) if isinstance(like, np.ndarray) else chosen


def _copies(canaries: Any) -> Any:
    """Return copies of canaries, each its own: the same object given twice becomes two."""
    if isinstance(canaries, np.ndarray) and canaries.dtype != object:
        return canaries.copy()
    if isinstance(canaries, np.ndarray):
        found = canaries.copy()
        for place in np.ndindex(found.shape):
            found[place] = copy.deepcopy(found[place])
        return found
    return [copy.deepcopy(canary) for canary in canaries]


def _seed_global_generators(setup: TrialSetup, index: int, number: int) -> None:
    """Give mechanisms that draw from the global generators, against the rules, noise of their own in every trial.

    Worker processes begin with copies of one state, so that their trials would share noise otherwise.
    """
    seed_global_generators(stream(setup.seed, trial=index, arm=number, purpose=Purpose.GLOBAL))


def _data(setup: TrialSetup, arm: _Arm) -> Any:
    with fail_audit_on_error(f"planting {len(arm.inserted)} canaries"):
        return with_canaries(setup.target.dataset, arm.inserted)


def _noise(setup: TrialSetup, index: int, number: int) -> np.random.Generator:
    return stream(setup.seed, trial=index, arm=number, purpose=Purpose.NOISE)


def _finish(setup: TrialSetup, index: int, layout: Layout, outputs: Outputs, seconds: float) -> TrialRecord:
    """Run what was not run yet, score, and pack."""
    start = time.perf_counter()
    coins, arms = layout
    arrays = {arm.name: np.full(len(arm.tested), np.nan) for arm in arms}
    failures: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    own: Outputs = {}
    for arm in _in_order(setup, index, arms):
        job = (index, arm.number)
        try:
            # Replace-one scores both kinds of canary on one output.
            if job not in outputs and job not in own:
                _seed_global_generators(setup, *job)
                data = _data(setup, arm)
                with user_code():
                    own[job] = setup.target.mechanism(data, _noise(setup, *job))
            output = outputs[job] if job in outputs else own[job]
            if isinstance(output, Output):
                metadata.update({f"{arm.name}_{key}": _plain(value) for key, value in output.metadata.items()})
                output = output.value
            arrays[arm.name] = _score(setup, index, arm, output, metadata)
        except BaseException as error:  # whatever a mechanism or score may raise is its outcome
            # The auditor's own trouble, such as canaries that could not be planted, may follow the coins: it is no outcome.
            if must_propagate(error):
                raise
            failures[arm.name] = traceback.format_exc(limit=-8)
    if isinstance(setup.design, ReplaceOne) and failures:
        # One output: if it cannot be scored for one kind of canary, nobody bets on the other either.
        arrays = {name: np.full(len(values), np.nan) for name, values in arrays.items()}
        failures = dict.fromkeys(arrays, next(iter(failures.values())))
    if coins is not None:
        arrays["coins"] = coins
    return TrialRecord(index, arrays, failures, seconds + time.perf_counter() - start, metadata)


def _score(setup: TrialSetup, index: int, arm: _Arm, output: Any, metadata: dict[str, Any]) -> Floats:
    scoring = as_trial_score(setup.target.score)
    auxiliary: Any = []
    if scoring.auxiliary:
        rng = stream(setup.seed, trial=index, arm=arm.number, purpose=Purpose.AUXILIARY)
        with user_code():
            auxiliary = setup.canaries.draw(rng, scoring.auxiliary)
    together = isinstance(setup.design, CoinFlip)
    tested, inserted = arm.tested, arm.inserted
    if not together:
        # What a score does to canaries in place must reach neither the data of the other arm nor the other scores.
        with fail_audit_on_error("copying the canaries that are scored"):
            tested, inserted, auxiliary = (_copies(canaries) for canaries in (tested, inserted, auxiliary))
    scene = Scene(output, tested, inserted, arm.others, auxiliary, together)
    with user_code():
        scores = np.array(scoring.score_trial(scene, *setup.extra), dtype=np.float64)
    if scores.shape != (len(arm.tested),):
        raise InvalidScores(f"the score gave an array of shape {scores.shape} for {len(arm.tested)} canaries")
    unscored = ~np.isfinite(scores)
    if unscored.any():
        # A constant is a function of output and canary too. The whole run must not fail for one canary: see raw_scores.
        scores[unscored] = 0.0
        reason = scene.trouble[0] if scene.trouble else "the score is not a finite number"
        metadata |= {f"{arm.name}_unscored": int(unscored.sum()), f"{arm.name}_unscored_because": reason}
    return scores

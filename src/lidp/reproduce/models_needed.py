"""Models to train until the mean bound reaches a target, for every method, tuning counted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import lidp
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.setting import NO_CANDIDATES, SINGLE
from lidp.reproduce.simulation import Simulation
from lidp.reproduce.tables import Row, average, group

NOMINAL = 2.0
TARGETS = (0.67, 0.85)
LARGEST_K = 64
ORDERS = ("1st-order Wilson", "2nd-order Wilson", "4th-order Wilson")
_METHOD = ("method", "candidates", "guarantee", "directions")
_SHIFTS = {"": 0, "_low": 1, "_high": -1}
"""Suffixes of columns, and by how many standard errors all means are shifted."""


def _root(trials: int) -> lidp.LeaveOneOut:
    """Return K = √n canaries, at most 64; n is half of the trials, the other half being for tuning."""
    canaries = min(LARGEST_K, max(4, round((trials / 2) ** 0.5)))
    return lidp.LeaveOneOut(canaries, canaries)


def _paper(name: str, candidates: str) -> lidp.Wilson:
    """Return a method of the paper: one direction, half of the trials for tuning."""
    threshold = lidp.SplitThreshold(0.5, setting.CANDIDATES[candidates])
    return replace(setting.WILSONS[name], threshold=threshold, direction=lidp.Direction.FORWARD)


@dataclass(frozen=True)
class Way:
    """A way to audit: a design for a number of trials, the methods that use its scores, and the numbers of trials to try."""

    design: Callable[[int], lidp.Design]
    methods: dict[tuple[str, str], lidp.Method]
    """by name and set of candidate thresholds"""
    octaves: tuple[float, ...]
    """log2 of the numbers of trials, tuning included"""


def _steps(low: float, high: float, step: float = 0.5) -> tuple[float, ...]:
    return tuple(np.arange(low, high + step / 2, step).tolist())


WAYS = {
    "one canary": Way(
        lambda _: lidp.LeaveOneOut(1, 1),
        {(SINGLE, name): _paper("1st-order Wilson", name) for name in setting.CANDIDATES}
        | {
            ("Clopper-Pearson", "tail"): lidp.ClopperPearson(),
            ("Jeffreys", "tail"): lidp.Jeffreys(),
            ("joint beta", "tail"): lidp.JointBeta(),
        },
        _steps(9, 18, 1),
    ),
    "many canaries": Way(
        _root,
        {key: _paper(*key) for key in itertools.product(ORDERS, setting.CANDIDATES)}
        | {("2nd-order Bernstein", "tail"): lidp.Bernstein(2), ("Gaussian DP", "tail"): lidp.GaussianDP()},
        _steps(9, 15),
    ),
    "lifted betting": Way(
        lambda _: lidp.LeaveOneOut(LARGEST_K, LARGEST_K), {("lifted betting", NO_CANDIDATES): lidp.LiftedBetting()}, (11,)
    ),
    "coin flips": Way(
        lambda _: lidp.CoinFlip(LARGEST_K),
        {("one run, pooled", NO_CANDIDATES): lidp.OneRun(), ("one run, f-DP", NO_CANDIDATES): lidp.OneRunFDP()},
        _steps(4, 9.5),
    ),
    "coin wager": Way(lambda _: lidp.CoinFlip(LARGEST_K), {("coin wager", NO_CANDIDATES): lidp.CoinWager()}, (9,)),
    "coin wager, few canaries": Way(
        lambda _: lidp.CoinFlip(16), {("coin wager, K = 16", NO_CANDIDATES): lidp.CoinWager()}, (11,)
    ),
}


def _cells(scale: Scale) -> list[Row]:
    paper = scale is Scale.PAPER
    cells: list[Row] = [
        {"way": name, "trials": round(2**octave), "repetition": repetition}
        for repetition in range(setting.REPETITIONS if paper else 2)
        for name, way in WAYS.items()
        for octave in (way.octaves if paper else [min(octave, 10) for octave in way.octaves[:3]])
    ]
    return sorted(cells, key=lambda cell: -cell["trials"])


def run_way(cell: Row) -> list[Row]:
    """Return ε̂ of the methods of a way, for anytime-valid ones also at smaller numbers of trials."""
    way, trials = WAYS[cell["way"]], cell["trials"]
    design = way.design(trials)
    scores = setting.draw(design, **cell).scores(setting.noise(NOMINAL))
    rows = []
    for (name, candidates), method in way.methods.items():
        bound = method.bound(scores, delta=setting.DELTA, failure_probability=setting.BETA)
        path = [(trials, bound.epsilon)]
        if method.anytime:
            seen = [round(2**octave) for octave in _steps(2, math.log2(trials))]
            path = [(n, max((epsilon for at, epsilon in bound.path if at <= n), default=0.0)) for n in seen]
        directions = len(getattr(method, "direction", lidp.Direction.BOTH).parts)
        settings = (name, candidates, str(bound.guarantee), directions, design.canaries)
        common = dict(zip((*_METHOD, "canaries"), settings, strict=True))
        rows += [common | {"models": n * design.models_per_trial, "epsilon": epsilon} for n, epsilon in path]
    return rows


def _table(rows: Sequence[Row]) -> list[Row]:
    """Return ε̂ against models trained for every method, and where it crosses the targets."""
    table = []
    for curve in group(average(rows, *_METHOD, "canaries", "models"), *_METHOD).values():
        needed = {f"needed_for_{target}{name}": n for target in TARGETS for name, n in _needed(curve, target).items()}
        table += [row | needed for row in curve]
    return table


@experiment(
    "models-needed",
    "models trained to reach ε̂ = 0.67 and 0.85 at nominal ε = 2, at most 64 canaries, tuning counted",
    _table,
    Simulation("models-needed", _cells, run_way),
)
def models_needed(table: Sequence[Row]) -> Iterator[Finding]:
    """State the models that each method needs, and compare the coin wager with the paper's method."""
    needed: dict[tuple[str, str], Row] = {(row["method"], row["candidates"]): row for row in table}
    for (method, candidates), row in needed.items():
        name = method if candidates == NO_CANDIDATES else f"{method}, {candidates} candidates"
        kind = f"{row['guarantee']}, {'both directions' if row['directions'] == 2 else 'one direction'}"
        for target in TARGETS:
            statement = f"{name}: models until ε̂ = {target}"
            models, low, high = (row[f"needed_for_{target}{suffix}"] for suffix in _SHIFTS)
            if models == "":
                yield Finding(statement, None, note=f"not within {row['models']:,} models; {kind}")
            else:
                between = f"{low or '?'} to {high or '?'} at one standard error"
                yield Finding(statement, float(models), note=f"{between}; {kind}")
    wager = needed["coin wager", NO_CANDIDATES]["needed_for_0.85"]
    for candidates, how, times in (("paper", "as published", 100.0), ("tail", "with the best thresholds", 40.0)):
        theirs = needed["2nd-order Wilson", candidates]["needed_for_0.85"]
        statement = f"the paper's method {how} against the coin wager, ε̂ = 0.85: times the models"
        if wager == "" or theirs == "":
            yield Finding(statement, None, note="one of the two does not reach it", wanted=True)
        else:
            yield Finding(statement, theirs / wager, at_least=times)


def _needed(curve: Sequence[Row], target: float) -> dict[str, int | str]:
    """Return the models needed for a target, also if all means were a standard error higher or lower; empty if not reached."""
    return {
        name: models_to_reach({row["models"]: row["epsilon_hat"] + shift * row["standard_error"] for row in curve}, target)
        or ""
        for name, shift in _SHIFTS.items()
    }


def models_to_reach(means: dict[int, float], target: float) -> int | None:
    """Return where a curve of mean bounds first reaches the target, interpolated in log models; None if it does not.

    For a curve that begins above the target this is its first number of models, an upper limit.
    """
    ordered = sorted(means.items())
    if ordered[0][1] >= target:
        return ordered[0][0]
    for (fewer, below), (more, above) in itertools.pairwise(ordered):
        if below < target <= above:
            share = (target - below) / (above - below)
            return round(math.exp((1 - share) * math.log(fewer) + share * math.log(more)))
    return None

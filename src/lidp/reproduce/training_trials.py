"""ε̂ of trained models against the number of trials: the paper's Section 6 and Table 1, and betting on as many models."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

from lidp.reproduce import setting
from lidp.reproduce.experiment import Experiment, Finding, Scale, experiment
from lidp.reproduce.models_needed import models_to_reach
from lidp.reproduce.setting import SINGLE
from lidp.reproduce.tables import Row, average, group, select
from lidp.reproduce.training_runs import CANARIES, STEPS, Run, TrainedModels
from lidp.reproduce.training_schedules import SCHEDULES
from lidp.scores import Scores

NOMINAL = (2.0, 4.0, 8.0, 16.0)
MANY = 16
"""Canaries of the paper's Table 1."""
TRIALS = (4, 8, 25, 50, 125, 250, 500, 1000)
"""Numbers of trials at which ε̂ is computed: those of all scales, and smaller ones for runs that the deadline cut short."""
_MODELS_RATIO = 8.0
"""How many times fewer models the coin wager should need."""
ORDERS = ("2nd-order Wilson", "4th-order Wilson")
JUDGED = {"score": "centred", "candidates": "tail"}
"""Scores and candidate thresholds that findings are about."""

_FACTORS = {  # (pair, canary): factors at ε = 2, 4, 8, 16, by order; Table 1 of the paper
    ("fmnist-linear", "tail-example"): {ORDERS[0]: (0.68, 3.31, 2.55, 4.38), ORDERS[1]: (0.42, 2.68, 2.29, 3.76)},
    ("fmnist-linear", "random-gradient"): {ORDERS[0]: (2.69, 3.34, 5.98, 5.06), ORDERS[1]: (2.66, 2.70, 7.75, 4.19)},
    ("fmnist-mlp", "tail-example"): {ORDERS[0]: (4.80, 1.46, 2.95, 1.60), ORDERS[1]: (4.42, 2.49, 2.37, 1.30)},
    ("fmnist-mlp", "random-gradient"): {ORDERS[0]: (4.62, 2.88, 2.33, 5.46), ORDERS[1]: (3.95, 2.81, 2.02, 4.60)},
    ("purchases-mlp", "tail-example"): {ORDERS[0]: (3.14, 1.06, 1.41, 9.28), ORDERS[1]: (2.84, 1.09, 1.36, 6.99)},
    ("purchases-mlp", "random-gradient"): {ORDERS[0]: (1.41, 0.71, 4.30, 2.84), ORDERS[1]: (1.29, 0.42, 4.35, 2.38)},
}
PAPER_FACTORS = _FACTORS | {("journey-mlp", canary): _FACTORS["purchases-mlp", canary] for canary in CANARIES}
"""Factors of the paper's Table 1. Those of Purchase-100 stand beside ours on other purchases."""


def nominal_epsilons(scale: Scale) -> list[float]:
    """Return the nominal ε of a scale, those near 8 first, in case time runs out."""
    return sorted(NOMINAL if scale is not Scale.SMOKE else NOMINAL[2:], key=lambda epsilon: abs(epsilon - 8))


def bounds_table(runs: Sequence[Row], trials: Sequence[int]) -> list[Row]:
    """Return ε̂ of every method on both kinds of scores, for each number of trials.

    Disjoint parts of a run are repetitions; the largest number of trials has one repetition per seed. A method that tunes a
    threshold does so on a part of the tuning run, whose models are counted. Unfinished runs contribute what they have.
    """
    kind = ("pair", "canary", "nominal_epsilon", "canaries", "score")
    rows = []
    for steps, n in itertools.product(group(runs, *kind, "seed").values(), trials):
        run = steps[0]
        pilots = run["pilots"] if run["score"] == "centred" or run["canary"] == "tail-example" else 0
        for bound in _bounds({step["step"]: _parts(step["scores"], n) for step in steps}):
            row = run | {"trials": n} | bound
            row |= setting.method_and_models(row)
            rows.append(row | {"models": row["models"] + pilots})
    return average(rows, *kind, "method", "candidates", "trials", "models")


def _parts(scores: Scores, size: int) -> list[Scores]:
    return [scores[first : first + size] for first in range(0, scores.trials - size + 1, size)]


def _bounds(parts: dict[str, list[Scores]]) -> Iterator[Row]:
    """Yield ε̂ of every method for each part of the trials of a step."""
    for part in parts.get("measure", []):
        yield setting.bet("lifted betting", part)
    for part, tuning in zip(parts.get("measure", []), parts.get("tune", []), strict=False):
        yield from setting.measure(part, setting.tune(tuning))
    for part in parts.get("flip", []):
        yield setting.bet("coin wager", part)


def factors(table: Sequence[Row]) -> list[Row]:
    """Return trials of one canary over trials of K canaries for the same ε̂, by linear interpolation.

    A factor is empty where the bound of one canary is 0, or where K canaries do not reach it.
    """
    result = []
    groups = group(table, "pair", "canary", "nominal_epsilon", "score", "candidates")
    for (pair, canary, nominal, score, candidates), rows in sorted(groups.items()):
        bounds = {(row["method"], row["trials"]): row["epsilon_hat"] for row in rows}
        counts = sorted(n for method, n in bounds if method == SINGLE)
        if not counts:
            continue
        largest, goal = counts[-1], bounds[SINGLE, counts[-1]]
        for order in ORDERS:
            curve = [(n, bounds[order, n]) for n in counts if (order, n) in bounds]
            needed = trials_to_reach(curve, goal) if goal > 0 and curve else None
            line: Row = {"pair": pair, "canary": canary, "nominal_epsilon": nominal, "method": order, "score": score}
            line |= {"candidates": candidates, "trials": largest}
            line |= {"epsilon_one_canary": goal, "epsilon_many": dict(curve).get(largest, "")}
            line |= {"factor": "" if needed is None else largest / needed}
            result.append(line | {"paper": PAPER_FACTORS[pair, canary][order][NOMINAL.index(nominal)]})
    return result


def trials_to_reach(curve: Sequence[tuple[int, float]], goal: float) -> float | None:
    """Return where a curve of bounds reaches a goal, by linear inter- and extrapolation; None if nowhere."""
    for (fewer, below), (more, above) in itertools.pairwise(curve):
        if below < goal <= above:
            return fewer + (more - fewer) * (goal - below) / (above - below)
    if len(curve) < 2:
        return None
    (fewer, below), (more, above) = curve[:2] if curve[0][1] >= goal else curve[-2:]
    if above <= below:
        return None
    trials = fewer + (more - fewer) * (goal - below) / (above - below)
    return trials if trials >= 1 else float(curve[0][0])  # the line would reach the goal before the first trial


def _ranking_findings(which: str, rows: Sequence[Row]) -> Iterator[Finding]:
    largest = max((row["trials"] for row in select(rows, method=SINGLE)), default=0)
    one, many = (select(rows, method=method, trials=largest) for method in (SINGLE, ORDERS[0]))
    if one and many:
        ours, theirs = many[0]["epsilon_hat"], one[0]["epsilon_hat"]
        statement = f"{which}, n = {largest:,}: ε̂ of K = {MANY} minus ε̂ of K = 1, 2nd-order Wilson"
        least = 0.0 if max(ours, theirs) > 0 else None  # two bounds of 0 are no ranking
        yield Finding(statement, ours - theirs, at_least=least, note=f"{ours:.2f} against {theirs:.2f}")


def _wager_findings(which: str, rows: Sequence[Row]) -> Iterator[Finding]:
    """Compare the models of 2nd-order Wilson with those the coin wager needs for the same ε̂, tuning and pilots counted."""
    curve = {row["models"]: row["epsilon_hat"] for row in select(rows, method="coin wager")}
    for candidates in setting.CANDIDATES:
        wilson = select(rows, method=ORDERS[0], candidates=candidates)
        most = max(wilson, key=lambda row: row["models"], default={"epsilon_hat": 0.0})
        if most["epsilon_hat"] <= 0 or not curve:
            continue
        needed = models_to_reach(curve, most["epsilon_hat"])
        statement = f"{which}: models of 2nd-order Wilson, {candidates} candidates, over the coin wager's"
        note = f"{most['models']:,} models for ε̂ = {most['epsilon_hat']:.2f}; the wager "
        if needed is None:
            wanted = _MODELS_RATIO * max(curve) >= most["models"]
            yield Finding(statement, None, note=f"{note}does not reach it with {max(curve):,}", wanted=wanted)
        else:
            yield Finding(statement, most["models"] / needed, at_least=_MODELS_RATIO, note=f"{note}{needed:,}")


def _trials_findings(table: Sequence[Row]) -> Iterator[Finding]:
    """Rank K = 16 and K = 1 at the same number of trials, and compare the models of both with those of the coin wager."""
    groups = group(table, "canary", "nominal_epsilon").items()
    for (canary, nominal), rows in groups:
        yield from _ranking_findings(f"{canary}, ε = {nominal:g}", select(rows, **JUDGED))
    yield from table_1.findings(factors(table))
    for (canary, nominal), rows in groups:
        yield from _wager_findings(f"{canary}, ε = {nominal:g}", select(rows, score="centred"))


def _trials_experiment(name: str, pair: str, *, reduced: int, seeds: int = 1) -> Experiment:
    """Return the experiment on one data set and model: K = 16 and K = 1, both kinds of canary.

    ``reduced`` and ``seeds`` are the number of trials and the repetitions at that scale.
    """
    trials = {Scale.SMOKE: 8, Scale.REDUCED: reduced, Scale.PAPER: 1000}

    def runs(scale: Scale) -> dict[Run, int]:
        return {
            Run(pair, SCHEDULES[pair][scale], canary, epsilon, canaries, step, seed): trials[scale]
            for seed in range(seeds if scale is Scale.REDUCED else 1)
            for epsilon in nominal_epsilons(scale)
            for canary in reversed(CANARIES)
            for canaries in (MANY, 1)
            for step in (STEPS if canaries == MANY else STEPS[:2])
        }

    about = f"ε̂ against the number of trials n for trained models, K = 16 against K = 1: {pair}"
    table = partial(bounds_table, trials=TRIALS)
    return Experiment(name, about, table, (TrainedModels(name, runs),), _trials_findings)


SECTION_6_TRIALS = (
    _trials_experiment("fmnist-trials", "fmnist-linear", reduced=1000, seeds=5),
    _trials_experiment("fmnist-mlp-trials", "fmnist-mlp", reduced=500),
    _trials_experiment("purchases-trials", "purchases-mlp", reduced=250),
)
journey_trials = _trials_experiment("journey-trials", "journey-mlp", reduced=250)
"""As ``purchases-trials``, with purchases of the Complete Journey; not in the paper, and so not in its Table 1."""


@experiment(
    "table-1",
    "times fewer trials with K = 16 canaries than with one, for all data sets and models (Table 1)",
    lambda runs: factors(bounds_table(runs, TRIALS)),
    *(source for trials in SECTION_6_TRIALS for source in trials.sources),
)
def table_1(table: Sequence[Row]) -> Iterator[Finding]:
    """Compare a table of factors with the paper's Table 1."""
    for row in select(table, **JUDGED):
        statement = f"{row['pair']}, {row['canary']}, ε = {row['nominal_epsilon']:g}, {row['method']}: "
        statement += f"times fewer trials than one canary at n = {row['trials']:,}"
        ours = None if row["factor"] == "" else float(row["factor"])
        note = f"one canary {row['epsilon_one_canary']:.2f}, K = {MANY} {row['epsilon_many'] or 0:.2f}"
        yield Finding(statement, ours, row["paper"], note=note)

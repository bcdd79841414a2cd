"""ε̂ of trained models against the number of trials: the paper's Section 6, its Table 1, and betting on as many models."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Experiment, Finding, Row, Scale, Source
from lidp.reproduce.models_needed import models_to_reach
from lidp.reproduce.sweeps import SINGLE, look_up, method_of
from lidp.reproduce.training_pairs import FMNIST_LINEAR, FMNIST_MLP, PURCHASES_MLP, Pair
from lidp.reproduce.training_runs import CANARIES, SCORES, STEPS, Run, TrainedModels, run_of, scores_of
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.lifted_betting import LiftedBetting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOMINAL = (2.0, 4.0, 8.0, 16.0)
MANY = 16
"""Canaries of the paper's Table 1."""
_FEWER = 8.0
"""Times fewer models that the coin wager should need."""
ORDERS = ("2nd-order Wilson", "4th-order Wilson")
TOGETHER = {Scale.SMOKE: 4, Scale.REDUCED: 40, Scale.PAPER: 25}
"""Trials in a cell: as many as one would not mind to lose."""

PAPER_FACTORS = {  # (pair, canary): factors at ε = 2, 4, 8, 16, by order; Table 1 of the paper
    ("fmnist-linear", "tail-example"): {ORDERS[0]: (0.68, 3.31, 2.55, 4.38), ORDERS[1]: (0.42, 2.68, 2.29, 3.76)},
    ("fmnist-linear", "random-gradient"): {ORDERS[0]: (2.69, 3.34, 5.98, 5.06), ORDERS[1]: (2.66, 2.70, 7.75, 4.19)},
    ("fmnist-mlp", "tail-example"): {ORDERS[0]: (4.80, 1.46, 2.95, 1.60), ORDERS[1]: (4.42, 2.49, 2.37, 1.30)},
    ("fmnist-mlp", "random-gradient"): {ORDERS[0]: (4.62, 2.88, 2.33, 5.46), ORDERS[1]: (3.95, 2.81, 2.02, 4.60)},
    ("purchases-mlp", "tail-example"): {ORDERS[0]: (3.14, 1.06, 1.41, 9.28), ORDERS[1]: (2.84, 1.09, 1.36, 6.99)},
    ("purchases-mlp", "random-gradient"): {ORDERS[0]: (1.41, 0.71, 4.30, 2.84), ORDERS[1]: (1.29, 0.42, 4.35, 2.38)},
}


def nominal_epsilons(scale: Scale) -> list[float]:
    """The nominal ε of a scale, the middle first, if time is short."""
    return sorted(NOMINAL if scale is not Scale.SMOKE else NOMINAL[2:], key=lambda epsilon: abs(epsilon - 8))


def bounds_table(rows: Sequence[Row], trials: Sequence[int]) -> list[Row]:
    """ε̂ of every method on scores of every kind, for parts of so many trials each.

    A method that tunes a threshold does so on a part of other trials, equally many, which count as models. Disjoint parts are
    repetitions; the largest number has one a seed. Runs of which not all is computed yet give what they can.
    """
    runs: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        key = (row["pair"], row["canary"], row["nominal"], row["canaries"], row["seed"])
        runs[key][row["step"]].append(row)
    found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    facts: dict[tuple[Any, ...], Row] = {}
    for (pair, canary, nominal, canaries, _), steps in runs.items():
        for score in SCORES:
            scores = {step: scores_of(steps[step], score) for step in STEPS if steps[step]}
            for method, candidates, n, models, epsilon in _bounds(scores, trials):
                place = (pair, canary, nominal, canaries, score, method, candidates, n)
                pilots = run_of(steps[next(iter(steps))][0]).pilots
                facts[place] = {"models": models + (pilots if score == "centred" or canary == "tail-example" else 0)}
                found[place].append(epsilon)
    names = ("pair", "canary", "nominal_epsilon", "canaries", "score", "method", "candidates", "trials")
    table = []
    for key, values in sorted(found.items()):
        mean, error = setting.mean_and_error(values)
        table.append(
            dict(zip(names, key, strict=True))
            | facts[key]
            | {"epsilon_hat": mean, "standard_error": error, "repetitions": len(values)}
        )
    return table


def _bounds(scores: dict[str, Scores], trials: Sequence[int]) -> Iterator[tuple[str, str, int, int, float]]:
    """Method, candidates, trials, models and ε̂ for each disjoint part."""
    options = {"delta": setting.DELTA, "failure_probability": setting.BETA}
    none = setting.NO_CANDIDATES
    for n in trials:
        measured, tuned = scores.get("measure"), scores.get("tune")
        for part in _parts(measured, n):
            yield "lifted betting", none, n, 2 * n, LiftedBetting().bound(part, **options).epsilon
        for part, other in zip(_parts(measured, n), _parts(tuned, n), strict=False):
            for row in setting.measure(part, setting.tune(other)):
                name = method_of(row | {"canaries": part.canaries})
                yield name, row["candidates"], n, 4 * n, row["epsilon"]
        for part in _parts(scores.get("flip"), n):
            yield "coin wager", none, n, n, CoinWager().bound(part, **options).epsilon


def _parts(scores: Scores | None, size: int) -> list[Scores]:
    if scores is None:
        return []
    return [scores[first : first + size] for first in range(0, scores.trials - size + 1, size)]


class TrainingTrials(TrainedModels):
    """ε̂ against the number of trials for one data set and model, K = 16 and K = 1, both kinds of canary."""

    def __init__(self, pair: Pair, name: str, *, reduced: tuple[int, ...], seeds: int = 1) -> None:
        """``reduced`` and ``seeds`` are the numbers of trials and of repetitions at that scale."""
        self.pair = pair
        # The largest number of trials n is trained, smaller ones are parts of it.
        self.trials = {Scale.SMOKE: (4, 8), Scale.REDUCED: reduced, Scale.PAPER: (125, 250, 500, 1000)}
        self.seeds = {Scale.SMOKE: 1, Scale.REDUCED: seeds, Scale.PAPER: 1}
        self.name = name
        self.about = f"ε̂ against the number of trials n for trained models, K = 16 against K = 1: {pair.name}"

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:  # nothing depends on other cells
        largest = self.trials[scale][-1]
        runs = [
            Run(self.pair.name, self.pair.schedules[scale], canary, epsilon, canaries, step, seed)
            for seed in range(self.seeds[scale])
            for epsilon in nominal_epsilons(scale)
            for canary in reversed(CANARIES)
            for canaries in (MANY, 1)
            for step in (STEPS if canaries == MANY else STEPS[:2])
        ]
        cells = {run: run.cells(largest, TOGETHER[scale]) for run in runs}
        if scale is not Scale.PAPER:
            return [cell for run in runs for cell in cells[run]]
        # By stages, so that what there was time for can be compared.
        return [
            cell
            for fewer, more in itertools.pairwise((0, *self.trials[scale]))
            for run in runs
            for cell in cells[run]
            if fewer <= cell.settings["first"] < more
        ]

    def table(self, rows: Sequence[Row]) -> list[Row]:
        # Smaller numbers than the paper's too, for runs that time has cut short.
        return bounds_table(rows, sorted({25, 50, *(n for sizes in self.trials.values() for n in sizes)}))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        return [*_rankings(table), *factor_findings(table), *_wagers(table)]

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.training_figures import trials_figure

        return trials_figure(table)


class Table1(Experiment):
    """The paper's Table 1: how many times fewer trials K = 16 canaries need than one, by linear interpolation."""

    name = "table-1"
    about = "times fewer trials with K = 16 canaries than with one, for all data sets and models (Table 1)"
    scales = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)

    @property
    def sources(self) -> tuple[Source, ...]:
        return SECTION_6_TRIALS

    def table(self, rows: Sequence[Row]) -> list[Row]:
        by_pair = {source.pair.name: source for source in SECTION_6_TRIALS}
        table = []
        for pair, source in by_pair.items():
            own = [row for row in rows if row["pair"] == pair]
            if own:
                table += factors(source.table(own))
        return table

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        return [_factor_finding(row) for row in table if row["score"] == "centred" and row["candidates"] == "tail"]

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.training_figures import factors_figure

        return factors_figure(table)


SECTION_6_TRIALS = (
    TrainingTrials(FMNIST_LINEAR, "fmnist-trials", reduced=(125, 250, 500, 1000), seeds=5),
    TrainingTrials(FMNIST_MLP, "fmnist-mlp-trials", reduced=(125, 250, 500)),
    TrainingTrials(PURCHASES_MLP, "purchases-trials", reduced=(125, 250)),
)


def factors(table: Sequence[Row]) -> list[Row]:
    """For each setting: the trials of one canary over those that K canaries need for the same ε̂, as in the paper's Table 1.

    Empty where one canary finds nothing at all, or K canaries nowhere come near.
    """
    groups: dict[tuple[Any, ...], dict[tuple[str, int], float]] = defaultdict(dict)
    for row in table:
        key = tuple(row[name] for name in ("pair", "canary", "nominal_epsilon", "score", "candidates"))
        groups[key][row["method"], row["trials"]] = row["epsilon_hat"]
    found = []
    for (pair, canary, nominal, score, candidates), values in sorted(groups.items()):
        counts = sorted(n for method, n in values if method == SINGLE)
        if not counts:
            continue
        largest, goal = counts[-1], values[SINGLE, counts[-1]]
        for order in ORDERS:
            curve = [(n, values[order, n]) for n in counts if (order, n) in values]
            needed = trials_to_reach(curve, goal) if goal > 0 and curve else None
            index = NOMINAL.index(nominal)
            found.append(
                {
                    "pair": pair,
                    "canary": canary,
                    "nominal_epsilon": nominal,
                    "method": order,
                    "score": score,
                    "candidates": candidates,
                    "trials": largest,
                    "epsilon_one_canary": goal,
                    "epsilon_many": dict(curve).get(largest, ""),
                    "factor": "" if needed is None else largest / needed,
                    "paper": PAPER_FACTORS[pair, canary][order][index],
                }
            )
    return found


def trials_to_reach(curve: Sequence[tuple[int, float]], goal: float) -> float | None:
    """Where a curve of bounds reaches a goal, by straight lines between its points, the outer ones drawn out; None if nowhere."""
    for (fewer, below), (more, above) in itertools.pairwise(curve):
        if below < goal <= above:
            return fewer + (more - fewer) * (goal - below) / (above - below)
    if len(curve) < 2:
        return None
    (fewer, below), (more, above) = curve[:2] if curve[0][1] >= goal else curve[-2:]
    if above <= below:
        return None
    found = fewer + (more - fewer) * (goal - below) / (above - below)
    return found if found >= 1 else float(curve[0][0])  # a straight line would reach it before the first trial


def factor_findings(table: Sequence[Row]) -> list[Finding]:
    """The factors of the paper's Table 1 that a table of bounds gives."""
    return [_factor_finding(row) for row in factors(table) if row["score"] == "centred" and row["candidates"] == "tail"]


def _factor_finding(row: Row) -> Finding:
    statement = (
        f"{row['pair']}, {row['canary']}, ε = {row['nominal_epsilon']:g}, {row['method']}: "
        f"times fewer trials than one canary at n = {row['trials']:,}"
    )
    ours = None if row["factor"] == "" else float(row["factor"])
    note = f"one canary {row['epsilon_one_canary']:.2f}, K = {MANY} {row['epsilon_many'] or 0:.2f}"
    return Finding(statement, ours, row["paper"], note=note)


def _rankings(table: Sequence[Row]) -> list[Finding]:
    """K = 16 above K = 1 at the same number of trials."""
    found = []
    for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
        common = {"canary": canary, "nominal_epsilon": nominal, "score": "centred", "candidates": "tail"}
        counts = {
            row["trials"]
            for row in table
            if row["method"] == SINGLE and row["canary"] == canary and row["nominal_epsilon"] == nominal
        }
        if not counts:
            continue
        one = look_up(table, **common, method=SINGLE, trials=max(counts))
        many = look_up(table, **common, method=ORDERS[0], trials=max(counts))
        if one is not None and many is not None:
            statement = (
                f"{canary}, ε = {nominal:g}, n = {max(counts):,}: ε̂ of K = {MANY} minus ε̂ of K = 1, 2nd-order Wilson"
            )
            note = f"{many['epsilon_hat']:.2f} against {one['epsilon_hat']:.2f}"
            # Two bounds of 0 are no ranking.
            least = 0.0 if max(many["epsilon_hat"], one["epsilon_hat"]) > 0 else None
            found.append(Finding(statement, many["epsilon_hat"] - one["epsilon_hat"], at_least=least, note=note))
    return found


def _wagers(table: Sequence[Row]) -> list[Finding]:
    """Models that the coin wager needs for what 2nd-order Wilson reaches with all its trials, tuning and pilots counted."""
    found = []
    for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
        here = [
            row for row in table if (row["canary"], row["nominal_epsilon"], row["score"]) == (canary, nominal, "centred")
        ]
        curve = {row["models"]: row["epsilon_hat"] for row in here if row["method"] == "coin wager"}
        for candidates in setting.CANDIDATES:
            theirs = [row for row in here if (row["method"], row["candidates"]) == (ORDERS[0], candidates)]
            if not theirs or not curve:
                continue
            most = max(theirs, key=lambda row: row["models"])
            needed = models_to_reach(curve, most["epsilon_hat"])
            if most["epsilon_hat"] <= 0:
                continue
            statement = (
                f"{canary}, ε = {nominal:g}: models of 2nd-order Wilson, {candidates} candidates, over the coin wager's"
            )
            note = f"{most['models']:,} models for ε̂ = {most['epsilon_hat']:.2f}"
            if needed is None:
                beyond = f"{note}; the wager does not reach it with {max(curve):,}"
                found.append(Finding(statement, None, note=beyond, wanted=_FEWER * max(curve) >= most["models"]))
            else:
                found.append(
                    Finding(statement, most["models"] / needed, at_least=_FEWER, note=f"{note}; the wager {needed:,}")
                )
    return found

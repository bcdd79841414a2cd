"""ε̂ of trained models against the number of trials: the paper's Section 6 and Table 1, and betting on as many models."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from lidp.reproduce import setting
from lidp.reproduce.experiment import Experiment, Finding, Row, Scale, Source
from lidp.reproduce.models_needed import models_to_reach
from lidp.reproduce.sweeps import SINGLE, method_of, select
from lidp.reproduce.training_pairs import FMNIST_LINEAR, FMNIST_MLP, PURCHASES_MLP, Pair
from lidp.reproduce.training_runs import CANARIES, SCORES, STEPS, FinishedRun, Run, TrainedModels
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.lifted_betting import LiftedBetting

NOMINAL = (2.0, 4.0, 8.0, 16.0)
MANY = 16
"""Canaries of the paper's Table 1."""
_MODELS_RATIO = 8.0
"""How many times fewer models the coin wager should need."""
ORDERS = ("2nd-order Wilson", "4th-order Wilson")
JUDGED = {"score": "centred", "candidates": "tail"}
"""Scores and candidate thresholds that findings are about."""

PAPER_FACTORS = {  # (pair, canary): factors at ε = 2, 4, 8, 16, by order; Table 1 of the paper
    ("fmnist-linear", "tail-example"): {ORDERS[0]: (0.68, 3.31, 2.55, 4.38), ORDERS[1]: (0.42, 2.68, 2.29, 3.76)},
    ("fmnist-linear", "random-gradient"): {ORDERS[0]: (2.69, 3.34, 5.98, 5.06), ORDERS[1]: (2.66, 2.70, 7.75, 4.19)},
    ("fmnist-mlp", "tail-example"): {ORDERS[0]: (4.80, 1.46, 2.95, 1.60), ORDERS[1]: (4.42, 2.49, 2.37, 1.30)},
    ("fmnist-mlp", "random-gradient"): {ORDERS[0]: (4.62, 2.88, 2.33, 5.46), ORDERS[1]: (3.95, 2.81, 2.02, 4.60)},
    ("purchases-mlp", "tail-example"): {ORDERS[0]: (3.14, 1.06, 1.41, 9.28), ORDERS[1]: (2.84, 1.09, 1.36, 6.99)},
    ("purchases-mlp", "random-gradient"): {ORDERS[0]: (1.41, 0.71, 4.30, 2.84), ORDERS[1]: (1.29, 0.42, 4.35, 2.38)},
}


def nominal_epsilons(scale: Scale) -> list[float]:
    """Return the nominal ε of a scale, those near 8 first, in case time runs out."""
    return sorted(NOMINAL if scale is not Scale.SMOKE else NOMINAL[2:], key=lambda epsilon: abs(epsilon - 8))


def bounds_table(runs: Sequence[FinishedRun], trials: Sequence[int]) -> list[Row]:
    """Return ε̂ of every method on both kinds of scores, for each number of trials.

    Disjoint parts of a run are repetitions; the largest number of trials has one repetition per seed. A method that tunes a
    threshold does so on a part of the tuning run, whose models are counted. Unfinished runs contribute what they have.
    """
    steps: dict[tuple[Any, ...], dict[str, FinishedRun]] = defaultdict(dict)
    for one in runs:
        run = one.run
        steps[run.pair, run.canary, run.nominal, run.canaries, run.seed][run.step] = one
    bounds: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    models: dict[tuple[Any, ...], int] = {}
    for (*kind, _seed), finished in steps.items():
        run = next(iter(finished.values())).run
        for score in SCORES:
            pilots = run.pilots if score == "centred" or run.canary == "tail-example" else 0
            scores = {step: one.scores[score] for step, one in finished.items()}
            for method, candidates, n, trained, epsilon in _bounds(scores, trials):
                key = (*kind, score, method, candidates, n)
                models[key] = trained + pilots
                bounds[key].append(epsilon)
    names = ("pair", "canary", "nominal_epsilon", "canaries", "score", "method", "candidates", "trials")
    return [
        dict(zip(names, key, strict=True)) | {"models": models[key]} | setting.mean_columns(values)
        for key, values in sorted(bounds.items())
    ]


def _bounds(scores: dict[str, Scores], trials: Sequence[int]) -> Iterator[tuple[str, str, int, int, float]]:
    """Yield method, candidates, trials, models and ε̂ for each disjoint part."""
    options = {"delta": setting.DELTA, "failure_probability": setting.BETA}
    none = setting.NO_CANDIDATES
    for n in trials:
        for part in _parts(scores.get("measure"), n):
            yield "lifted betting", none, n, 2 * n, LiftedBetting().bound(part, **options).epsilon
        for part, other in zip(_parts(scores.get("measure"), n), _parts(scores.get("tune"), n), strict=False):
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
        """``reduced`` and ``seeds`` are the numbers of trials and the repetitions at that scale."""
        self.pair = pair
        # The largest number of trials is run; smaller ones are parts of it.
        self.trials = {Scale.SMOKE: (4, 8), Scale.REDUCED: reduced, Scale.PAPER: (125, 250, 500, 1000)}
        self.seeds = {Scale.SMOKE: 1, Scale.REDUCED: seeds, Scale.PAPER: 1}
        self.name = name
        self.about = f"ε̂ against the number of trials n for trained models, K = 16 against K = 1: {pair.name}"

    def runs(self, scale: Scale) -> dict[Run, int]:
        return {
            Run(self.pair.name, self.pair.schedules[scale], canary, epsilon, canaries, step, seed): self.trials[scale][-1]
            for seed in range(self.seeds[scale])
            for epsilon in nominal_epsilons(scale)
            for canary in reversed(CANARIES)
            for canaries in (MANY, 1)
            for step in (STEPS if canaries == MANY else STEPS[:2])
        }

    def stages(self, scale: Scale) -> Sequence[int]:
        # At the paper's size runs can be compared however far time allows.
        return self.trials[scale] if scale is Scale.PAPER else self.trials[scale][-1:]

    def table(self, rows: Sequence[FinishedRun]) -> list[Row]:
        # Also smaller numbers than the paper's, for runs that the deadline cut short.
        return bounds_table(rows, sorted({25, 50, *(n for sizes in self.trials.values() for n in sizes)}))

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        return [*_ranking_findings(table), *factor_findings(factors(table)), *_wager_findings(table)]


class Table1(Experiment):
    """The paper's Table 1: how many times fewer trials K = 16 canaries need than one, by linear interpolation."""

    name = "table-1"
    about = "times fewer trials with K = 16 canaries than with one, for all data sets and models (Table 1)"
    scales = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)

    @property
    def sources(self) -> tuple[Source, ...]:
        return SECTION_6_TRIALS

    def table(self, rows: Sequence[FinishedRun]) -> list[Row]:
        tables = [source.table([row for row in rows if row.run.pair == source.pair.name]) for source in SECTION_6_TRIALS]
        return [row for table in tables for row in factors(table)]

    def findings(self, table: Sequence[Row]) -> list[Finding]:
        return factor_findings(table)


SECTION_6_TRIALS = (
    TrainingTrials(FMNIST_LINEAR, "fmnist-trials", reduced=(125, 250, 500, 1000), seeds=5),
    TrainingTrials(FMNIST_MLP, "fmnist-mlp-trials", reduced=(125, 250, 500)),
    TrainingTrials(PURCHASES_MLP, "purchases-trials", reduced=(125, 250)),
)


def factors(table: Sequence[Row]) -> list[Row]:
    """Return the factors of the paper's Table 1: trials of one canary over trials of K canaries for the same ε̂.

    A factor is empty where the bound of one canary is 0, or where K canaries do not reach it.
    """
    names = ("pair", "canary", "nominal_epsilon", "score", "candidates")
    groups: dict[tuple[Any, ...], dict[tuple[str, int], float]] = defaultdict(dict)
    for row in table:
        groups[tuple(row[name] for name in names)][row["method"], row["trials"]] = row["epsilon_hat"]
    result = []
    for (pair, canary, nominal, score, candidates), bounds in sorted(groups.items()):
        counts = sorted(n for method, n in bounds if method == SINGLE)
        if not counts:
            continue
        largest, goal = counts[-1], bounds[SINGLE, counts[-1]]
        for order in ORDERS:
            curve = [(n, bounds[order, n]) for n in counts if (order, n) in bounds]
            needed = trials_to_reach(curve, goal) if goal > 0 and curve else None
            result.append(
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
                    "paper": PAPER_FACTORS[pair, canary][order][NOMINAL.index(nominal)],
                }
            )
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


def factor_findings(table: Sequence[Row]) -> list[Finding]:
    """Compare a table of factors with the paper's Table 1."""
    return [
        Finding(
            f"{row['pair']}, {row['canary']}, ε = {row['nominal_epsilon']:g}, {row['method']}: "
            f"times fewer trials than one canary at n = {row['trials']:,}",
            None if row["factor"] == "" else float(row["factor"]),
            row["paper"],
            note=f"one canary {row['epsilon_one_canary']:.2f}, K = {MANY} {row['epsilon_many'] or 0:.2f}",
        )
        for row in select(table, **JUDGED)
    ]


def _ranking_findings(table: Sequence[Row]) -> list[Finding]:
    """Compare ε̂ of K = 16 with that of K = 1 at the same number of trials."""
    findings = []
    for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
        rows = select(table, canary=canary, nominal_epsilon=nominal, **JUDGED)
        largest = max((row["trials"] for row in rows if row["method"] == SINGLE), default=0)
        one, many = (select(rows, method=method, trials=largest) for method in (SINGLE, ORDERS[0]))
        if one and many:
            ours, theirs = many[0]["epsilon_hat"], one[0]["epsilon_hat"]
            statement = f"{canary}, ε = {nominal:g}, n = {largest:,}: ε̂ of K = {MANY} minus ε̂ of K = 1, 2nd-order Wilson"
            least = 0.0 if max(ours, theirs) > 0 else None  # two bounds of 0 are no ranking
            findings.append(Finding(statement, ours - theirs, at_least=least, note=f"{ours:.2f} against {theirs:.2f}"))
    return findings


def _wager_findings(table: Sequence[Row]) -> list[Finding]:
    """Compare the models of 2nd-order Wilson with those the coin wager needs for the same ε̂, tuning and pilots counted."""
    findings = []
    for canary, nominal in dict.fromkeys((row["canary"], row["nominal_epsilon"]) for row in table):
        rows = select(table, canary=canary, nominal_epsilon=nominal, score="centred")
        curve = {row["models"]: row["epsilon_hat"] for row in select(rows, method="coin wager")}
        for candidates in setting.CANDIDATES:
            wilson = select(rows, method=ORDERS[0], candidates=candidates)
            most = max(wilson, key=lambda row: row["models"], default={"epsilon_hat": 0.0})
            if most["epsilon_hat"] <= 0 or not curve:
                continue
            needed = models_to_reach(curve, most["epsilon_hat"])
            statement = (
                f"{canary}, ε = {nominal:g}: models of 2nd-order Wilson, {candidates} candidates, over the coin wager's"
            )
            note = f"{most['models']:,} models for ε̂ = {most['epsilon_hat']:.2f}"
            if needed is None:
                note += f"; the wager does not reach it with {max(curve):,}"
                wanted = _MODELS_RATIO * max(curve) >= most["models"]
                findings.append(Finding(statement, None, note=note, wanted=wanted))
            else:
                note += f"; the wager {needed:,}"
                findings.append(Finding(statement, most["models"] / needed, at_least=_MODELS_RATIO, note=note))
    return findings

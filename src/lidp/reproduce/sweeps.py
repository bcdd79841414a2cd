"""ε̂ against trials, canaries or dimension: the paper's Figure 2, the three like it in Appendix E, and Figure 3, left."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lidp.designs import CoinFlip, LeaveOneOut
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale, experiment
from lidp.reproduce.setting import SINGLE
from lidp.reproduce.simulation import Simulation
from lidp.reproduce.tables import Row, average, group, mean_and_error, select, sorted_groups

_SINGLE_FACTOR = 16
"""How many times more repetitions and tunings one canary gets: it is noisier, cheaper, and compared with K canaries."""
FIRST, SECOND, FOURTH = "1st-order Wilson", "2nd-order Wilson", "4th-order Wilson"
_MANY = 32
_TOO_SMALL = "not judged: K/d = .1 of interference against a variance of 4.6 is a hundredth of ε̂, less than the noise"


class Point(NamedTuple):
    """One point of a sweep."""

    trials: int
    canaries: int
    dimension: int = setting.DIMENSION


def _cells(points: dict[Scale, list[Point]], scale: Scale) -> list[Row]:
    """Return one cell per point and tuning: it tunes thresholds, and measures ε̂ on the repetitions that use them."""
    many = setting.REPETITIONS if scale is Scale.PAPER else 3
    baselines = [Point(point.trials, 1, point.dimension) for point in points[scale]]
    cells = []
    for point in dict.fromkeys([*points[scale], *baselines]):
        factor = _SINGLE_FACTOR if point.canaries == 1 else 1
        tunings = min(factor * setting.TUNINGS, factor * many)
        # Bets on one canary are as noisy, but nothing is compared with them: no more repetitions than for many.
        bets = many if point in points[scale] else 0
        for tuning in range(tunings):
            repetitions = list(range(tuning, factor * many, tunings))
            cells.append(point._asdict() | {"tuning": tuning, "repetitions": repetitions, "bets": bets})
    # The longest first, so that workers finish together.
    return sorted(cells, key=lambda cell: -cell["trials"] * cell["canaries"] ** 2)


def _run(cell: Row) -> list[Row]:
    """Tune thresholds, and measure ε̂ of every method on fresh draws for each repetition and every nominal ε."""
    point = {name: cell[name] for name in Point._fields}
    design = LeaveOneOut(cell["canaries"], cell["canaries"])
    draws = setting.draw(design, **point, step="tune", repetition=cell["tuning"])
    tuned = {nominal: setting.tune(draws.scores(setting.noise(nominal))) for nominal in setting.NOMINAL}
    rows = []
    for repetition in cell["repetitions"]:
        bet = repetition < cell["bets"]
        draws = setting.draw(design, **point, step="measure", repetition=repetition, bet=bet)
        flips = setting.draw(CoinFlip(cell["canaries"]), **point, step="flip", repetition=repetition) if bet else None
        for nominal in setting.NOMINAL:
            sigma = setting.noise(nominal)
            scores = draws.scores(sigma)
            bounds = setting.measure(scores, tuned[nominal])
            if flips is not None:
                bounds += [setting.bet("lifted betting", scores), setting.bet("coin wager", flips.scores(sigma))]
            rows += [point | {"repetition": repetition, "nominal_epsilon": nominal} | bound for bound in bounds]
    return rows


def _table(rows: Sequence[Row]) -> list[Row]:
    """Return the mean ε̂ of every method at every point."""
    measured = (
        row | setting.method_and_models(row) | {"exact_epsilon": setting.exact_epsilon(row["nominal_epsilon"])}
        for row in sorted(rows, key=lambda row: row["repetition"])
    )
    kind = ("nominal_epsilon", "exact_epsilon", "method", "candidates")
    return average(measured, *kind, "trials", "canaries", "dimension", "models")


def _source(name: str, smoke: list[Point], paper: list[Point]) -> Simulation:
    return Simulation(name, partial(_cells, {Scale.SMOKE: smoke, Scale.PAPER: paper}), _run)


_BY_TRIALS = _source(
    "gaussian-trials",
    smoke=[Point(2**power, math.isqrt(2**power)) for power in (8, 10)],
    paper=[Point(2**power, math.isqrt(2**power)) for power in (8, 10, 12, 14, 16)],
)
_BY_CANARIES = _source(
    "gaussian-canaries",
    smoke=[Point(256, canaries) for canaries in (1, 4, 32)],
    paper=[Point(1024, 2**power) for power in range(11)],
)
_BY_DIMENSION = _source(
    "gaussian-dimension",
    smoke=[Point(256, 16, 10**power) for power in (2, 4)],
    paper=[Point(1024, 32, 10**power) for power in (2, 3, 4, 5, 6)],
)


@experiment("gaussian-trials", "ε̂ against the number of trials n, K = √n canaries", _table, _BY_TRIALS)
def gaussian_trials(table: Sequence[Row]) -> Iterator[Finding]:
    """Many canaries need fewer trials than one, and betting fewer than intervals."""
    for method, trials, paper in ((SECOND, 1024, 0.67), (SECOND, 4096, 0.85), (SINGLE, 4096, 0.67), (SINGLE, 65536, 0.85)):
        for candidates in ("paper", "tail"):
            tolerance = 0.03 if candidates == "paper" else None  # the paper has no numbers for other candidates
            for row in select(table, nominal_epsilon=2.0, method=method, trials=trials, candidates=candidates)[:1]:
                statement = f"{method}, n = {trials:,}, ε = 2, {candidates} candidates: ε̂"
                note = f"standard error {row['standard_error']:.3f}"
                yield Finding(statement, row["epsilon_hat"], paper, tolerance, note=note)
    for method in setting.BETS:
        for row in select(table, nominal_epsilon=2.0, method=method):
            if row["trials"] in (1024, 4096, 65536):
                statement = f"{method}, {row['trials']:,} trials ({row['models']:,} models), ε = 2: ε̂"
                yield Finding(statement, row["epsilon_hat"], note=f"standard error {row['standard_error']:.3f}")


@experiment("gaussian-canaries", "ε̂ against the number of canaries K", _table, _BY_CANARIES)
def gaussian_canaries(table: Sequence[Row]) -> Iterator[Finding]:
    """With more canaries intervals get narrower, until the canaries interfere with one another."""
    rows = select(table, nominal_epsilon=2.0, method=SECOND, candidates="paper")
    best = max(rows, key=lambda row: row["epsilon_hat"])
    which = f"{SECOND}, n = {best['trials']:,}, ε = 2"
    note = "the paper: K between 32 and 256 performs well"
    yield Finding(f"{which}: the best K", best["canaries"], at_least=32, at_most=256, note=note)
    yield Finding(f"{which}: ε̂ at the best K", best["epsilon_hat"])


@experiment("gaussian-dimension", "ε̂ against the dimension d", _table, _BY_DIMENSION)
def gaussian_dimension(table: Sequence[Row]) -> Iterator[Finding]:
    """In more dimensions canaries interfere less, and bounds get larger."""
    rows = select(table, nominal_epsilon=2.0, method=SECOND, candidates="paper")
    rows.sort(key=lambda row: row["dimension"])
    lowest, highest = rows[0], rows[-1]
    statement = f"{SECOND}, ε = 2: gain in ε̂ from d = {lowest['dimension']:,} to {highest['dimension']:,}"
    gain = highest["epsilon_hat"] - lowest["epsilon_hat"]
    yield Finding(statement, gain, at_least=0.0, note="the paper: tighter monotonically")
    drops = [
        (a["epsilon_hat"] - b["epsilon_hat"]) / (a["standard_error"] ** 2 + b["standard_error"] ** 2) ** 0.5
        for a, b in itertools.pairwise(rows)
        if a["standard_error"] or b["standard_error"]
    ]
    statement = f"{SECOND}, ε = 2: largest drop from one d to the next, in standard errors"
    note = "standard errors over repetitions and tunings"
    yield Finding(statement, max(drops, default=0.0), at_most=3.0, note=note)


def _bias_variance_table(rows: Sequence[Row]) -> list[Row]:
    """Split ε̂ at each K into the cost of other canaries (bias) and the gain of higher orders (variance)."""
    measured = [row for row in rows if row["candidates"] in setting.CANDIDATES]
    measured.sort(key=lambda row: row["repetition"])
    columns = ("nominal_epsilon", "candidates", "canaries")
    bounds = {
        key: {row["repetition"]: row["epsilon"] for row in repetitions}
        for key, repetitions in group(measured, *columns, "method").items()
    }
    table = []
    for line, _ in sorted_groups(measured, *columns):
        nominal, candidates, canaries = line.values()
        first, alone = bounds[nominal, candidates, canaries, FIRST], bounds.get((nominal, candidates, 1, FIRST))
        if alone is None:  # the deadline left out one canary
            continue
        mean, error = mean_and_error(list(first.values()))
        base, base_error = mean_and_error(list(alone.values()))
        line |= {"bias": mean - base, "bias_error": 0.0 if canaries == 1 else math.hypot(error, base_error)}
        for order, method in ((2, SECOND), (4, FOURTH)):
            # Both orders see the same trials, hence differences repetition by repetition.
            higher = bounds.get((nominal, candidates, canaries, method), {})
            gains = [epsilon - first[repetition] for repetition, epsilon in higher.items()]
            gain, gain_error = mean_and_error(gains) if gains else ("", "")
            line |= {f"variance_gain_{order}": gain, f"variance_gain_{order}_error": gain_error}
        table.append(line)
    return table


@experiment(
    "gaussian-bias-variance",
    "ΔBias(K) = ε̂(K, 1) - ε̂(1, 1) and ΔVar(K, ℓ) = ε̂(K, ℓ) - ε̂(K, 1)",
    _bias_variance_table,
    _BY_CANARIES,
)
def gaussian_bias_variance(table: Sequence[Row]) -> Iterator[Finding]:
    """Other canaries cost little, and higher orders gain."""
    for nominal, expectation in ((8.0, "the paper: negative, and worse with K"), (2.0, _TOO_SMALL)):
        limit = 0.0 if nominal == 8.0 else None
        many = [row for row in select(table, nominal_epsilon=nominal, candidates="paper") if row["canaries"] >= _MANY]
        if many:
            least, most = many[0], many[-1]
            statement = f"ΔBias at K = {most['canaries']:,}"
            note = f"{expectation}; standard error {most['bias_error']:.3f}"
            yield Finding(f"{statement}, ε = {nominal:g}", most["bias"], at_most=limit, note=note)
            statement += f" minus that at K = {least['canaries']:,}, ε = {nominal:g}"
            yield Finding(statement, most["bias"] - least["bias"], at_most=limit, note=expectation)
    rows = [row for row in select(table, candidates="paper") if row["canaries"] > 1]
    smallest = min(row["variance_gain_2"] for row in rows)
    yield Finding("ΔVar(K, 2), the smallest over K and ε", smallest, at_least=0.0, note="the paper: positive")
    gains = [row["variance_gain_2"] for row in select(rows, nominal_epsilon=2.0)]
    yield Finding("ΔVar(K, 2) at the largest K, ε = 2", gains[-1], at_least=0.0)

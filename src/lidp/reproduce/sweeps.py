"""ε̂ against trials, canaries or dimension: the paper's Figure 2 and the three like it in Appendix E."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.mechanisms.gaussian import GaussianDraws, draw_gaussian
from lidp.reproduce import setting
from lidp.reproduce.experiment import Finding, Scale
from lidp.reproduce.setting import SINGLE
from lidp.reproduce.simulation import Cell, Simulation
from lidp.reproduce.tables import Row, average, group, select

_SINGLE_FACTOR = 16
"""How many times more repetitions and tunings one canary gets: it is noisier, cheaper, and compared with K canaries."""


@dataclass(frozen=True)
class Point:
    """One point of a sweep."""

    trials: int
    canaries: int
    dimension: int = setting.DIMENSION

    def draw(self, seed: int, design: Design | None = None) -> GaussianDraws:
        """Draw the canaries and noise of an audit, for every ε. Cells run in parallel, so each uses one thread."""
        design = design or LeaveOneOut(self.canaries, self.canaries)
        return draw_gaussian(design, trials=self.trials, dimension=self.dimension, seed=seed, threads=1)


def sweep_cells(points: dict[Scale, list[Point]], scale: Scale, done: Sequence[Row]) -> list[Cell]:
    """Return the cells that tune thresholds, those that measure ε̂ with tuned thresholds, and those that flip coins."""
    baselines = [Point(point.trials, 1, point.dimension) for point in points[scale]]
    many = setting.REPETITIONS if scale is Scale.PAPER else 3
    tuned = group((row for row in done if row["step"] == "tune"), "trials", "canaries", "dimension", "repetition")
    cells = []
    for point in dict.fromkeys([*points[scale], *baselines]):
        factor = _SINGLE_FACTOR if point.canaries == 1 else 1
        tunings = min(factor * setting.TUNINGS, factor * many)
        cells += [Cell({"step": "tune", **asdict(point), "repetition": r}) for r in range(tunings)]
        for r in range(factor * many):
            given = tuned.get((point.trials, point.canaries, point.dimension, r % tunings))
            if given is not None:
                # Bets on one canary are as noisy, but nothing is compared with them: no more repetitions than for many.
                bet = point in points[scale] and r < many
                thresholds = [
                    {name: row[name] for name in ("nominal_epsilon", "method", "candidates", "threshold")} for row in given
                ]
                cells.append(Cell({"step": "measure", **asdict(point), "repetition": r, "bet": bet}, thresholds))
    cells += [Cell({"step": "flip", **asdict(point), "repetition": r}) for point in points[scale] for r in range(many)]
    # The longest first, so that workers finish together.
    return sorted(cells, key=lambda cell: -cell.settings["trials"] * cell.settings["canaries"] ** 2)


def run_sweep(cell: Cell) -> list[Row]:
    """Tune, measure or flip coins at one point, for every nominal ε."""
    settings = dict(cell.settings)
    bet = settings.pop("bet", False)
    point = Point(settings["trials"], settings["canaries"], settings["dimension"])
    draws = point.draw(cell.seed, CoinFlip(point.canaries) if settings["step"] == "flip" else None)
    rows = []
    for nominal in setting.NOMINAL:
        scores = draws.scores(setting.noise(nominal))
        if settings["step"] == "tune":
            results = setting.tune(scores)
        elif settings["step"] == "measure":
            results = setting.measure(scores, select(cell.given, nominal_epsilon=nominal))
            results += [setting.bet("lifted betting", scores)] if bet else []
        else:
            results = [setting.bet("coin wager", scores)]
        rows += [settings | {"nominal_epsilon": nominal} | row for row in results]
    return rows


def sweep_table(rows: Sequence[Row]) -> list[Row]:
    """Return the mean ε̂ of every method at every point."""
    measured = (
        row | setting.method_and_models(row) | {"exact_epsilon": setting.exact_epsilon(row["nominal_epsilon"])}
        for row in rows
        if row["step"] != "tune"
    )
    kind = ("nominal_epsilon", "exact_epsilon", "method", "candidates")
    return average(measured, *kind, "trials", "canaries", "dimension", "models")


def _judged(table: Sequence[Row]) -> list[Row]:
    return select(table, nominal_epsilon=2.0, method="2nd-order Wilson", candidates="paper")


def trials_findings(table: Sequence[Row]) -> Iterator[Finding]:
    """Many canaries need fewer trials than one, and betting fewer than intervals."""
    second = "2nd-order Wilson"
    for method, trials, paper in ((second, 1024, 0.67), (second, 4096, 0.85), (SINGLE, 4096, 0.67), (SINGLE, 65536, 0.85)):
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


def canaries_findings(table: Sequence[Row]) -> Iterator[Finding]:
    """With more canaries intervals get narrower, until the canaries interfere with one another."""
    best = max(_judged(table), key=lambda row: row["epsilon_hat"])
    which = f"2nd-order Wilson, n = {best['trials']:,}, ε = 2"
    note = "the paper: K between 32 and 256 performs well"
    yield Finding(f"{which}: the best K", best["canaries"], at_least=32, at_most=256, note=note)
    yield Finding(f"{which}: ε̂ at the best K", best["epsilon_hat"])


def dimension_findings(table: Sequence[Row]) -> Iterator[Finding]:
    """In more dimensions canaries interfere less, and bounds get larger."""
    rows = sorted(_judged(table), key=lambda row: row["dimension"])
    lowest, highest = rows[0], rows[-1]
    statement = f"2nd-order Wilson, ε = 2: gain in ε̂ from d = {lowest['dimension']:,} to {highest['dimension']:,}"
    gain = highest["epsilon_hat"] - lowest["epsilon_hat"]
    yield Finding(statement, gain, at_least=0.0, note="the paper: tighter monotonically")
    drops = [
        (a["epsilon_hat"] - b["epsilon_hat"]) / (a["standard_error"] ** 2 + b["standard_error"] ** 2) ** 0.5
        for a, b in itertools.pairwise(rows)
        if a["standard_error"] or b["standard_error"]
    ]
    statement = "2nd-order Wilson, ε = 2: largest drop from one d to the next, in standard errors"
    note = "standard errors over repetitions and tunings"
    yield Finding(statement, max(drops, default=0.0), at_most=3.0, note=note)


def _source(name: str, smoke: list[Point], paper: list[Point]) -> Simulation:
    return Simulation(name, partial(sweep_cells, {Scale.SMOKE: smoke, Scale.PAPER: paper}), run_sweep)


BY_TRIALS = _source(
    "gaussian-trials",
    smoke=[Point(2**power, math.isqrt(2**power)) for power in (8, 10)],
    paper=[Point(2**power, math.isqrt(2**power)) for power in (8, 10, 12, 14, 16)],
)
BY_CANARIES = _source(
    "gaussian-canaries",
    smoke=[Point(256, canaries) for canaries in (1, 4, 32)],
    paper=[Point(1024, 2**power) for power in range(11)],
)
BY_DIMENSION = _source(
    "gaussian-dimension",
    smoke=[Point(256, 16, 10**power) for power in (2, 4)],
    paper=[Point(1024, 32, 10**power) for power in (2, 3, 4, 5, 6)],
)

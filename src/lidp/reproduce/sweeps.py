"""ε̂ against trials, canaries or dimension: the paper's Figure 2 and the three like it in Appendix E."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.mechanisms.gaussian import GaussianDraws, draw_gaussian
from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Row, Scale
from lidp.reproduce.simulation import Simulation
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method

SINGLE = "DP + Wilson"
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


class Sweep(Simulation):
    """ε̂ of every method at several points, with thresholds tuned on separate trials."""

    @abstractmethod
    def points(self, scale: Scale) -> list[Point]:
        """Return the points at which to measure."""

    def repetitions(self, scale: Scale, canaries: int) -> int:
        """Return the number of repetitions."""
        many = setting.REPETITIONS if scale is Scale.PAPER else 3
        return _SINGLE_FACTOR * many if canaries == 1 else many

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        points = self.points(scale)
        with_baselines = list(dict.fromkeys([*points, *(Point(point.trials, 1, point.dimension) for point in points)]))
        tuned = defaultdict(list)
        for row in done:
            if row["step"] == "tune":
                point = Point(row["trials"], row["canaries"], row["dimension"])
                threshold = {name: row[name] for name in ("nominal", "method", "candidates", "threshold")}
                tuned[point, row["repetition"]].append(threshold)
        cells = []
        for point in with_baselines:
            repetitions = self.repetitions(scale, point.canaries)
            tunings = min(setting.TUNINGS * (_SINGLE_FACTOR if point.canaries == 1 else 1), repetitions)
            cells += [Cell({"step": "tune", **asdict(point), "repetition": r}) for r in range(tunings)]
            for r in range(repetitions):
                if (point, r % tunings) in tuned:
                    # Bets on one canary are as noisy, but nothing is compared with them: no more repetitions than for many.
                    bet = point in points and r < self.repetitions(scale, 2)
                    settings = {"step": "measure", **asdict(point), "repetition": r, "bet": bet}
                    cells.append(Cell(settings, given=tuned[point, r % tunings]))
        for point in points:
            for r in range(self.repetitions(scale, 2)):
                cells.append(Cell({"step": "flip", **asdict(point), "repetition": r}))
        # The longest first, so that workers finish together.
        return sorted(cells, key=lambda cell: -cell.settings["trials"] * cell.settings["canaries"] ** 2)

    def run(self, cell: Cell) -> list[Row]:
        settings, step = cell.settings, cell.settings["step"]
        point = Point(settings["trials"], settings["canaries"], settings["dimension"])
        common = {"step": step, **asdict(point), "repetition": settings["repetition"]}
        draws = point.draw(cell.seed, CoinFlip(point.canaries) if step == "flip" else None)
        rows = []
        for nominal in setting.NOMINAL:
            scores = draws.scores(setting.noise(nominal))
            results: list[Row] = []
            if step == "tune":
                results += setting.tune(scores)
            if step == "measure":
                results += setting.measure(scores, select(cell.given, nominal=nominal))
            if step == "flip":
                results.append(_bet("coin wager", CoinWager(), scores))
            elif settings.get("bet"):
                results.append(_bet("lifted betting", LiftedBetting(), scores))
            rows += [common | {"nominal": nominal} | row for row in results]
        return rows

    def table(self, rows: Sequence[Row]) -> list[Row]:
        bounds = defaultdict(list)
        for row in rows:
            if row["step"] != "tune":
                point = (row["trials"], row["canaries"], row["dimension"])
                bounds[(row["nominal"], method_of(row), row["candidates"], *point)].append(row["epsilon"])
        return [
            {
                "nominal_epsilon": nominal,
                "exact_epsilon": setting.exact_epsilon(nominal),
                "method": method,
                "candidates": candidates,
                "trials": trials,
                "canaries": canaries,
                "dimension": dimension,
                "models": models_spent(method, trials),
            }
            | setting.mean_columns(values)
            for (nominal, method, candidates, trials, canaries, dimension), values in sorted(bounds.items())
        ]


def method_of(row: Row) -> str:
    """Return the name of a row's method in tables: first order with one canary is the paper's baseline."""
    return SINGLE if row["canaries"] == 1 and row["method"] == "1st-order Wilson" else str(row["method"])


def models_spent(method: str, trials: int) -> int:
    """Return the models trained: one per coin-flip trial, two per leave-one-out trial, and as many again for tuning."""
    return trials * {"coin wager": 1, "lifted betting": 2}.get(method, 4)


def select(table: Sequence[Row], **values: object) -> list[Row]:
    """Return the rows of a table with these values."""
    return [row for row in table if all(row[name] == value for name, value in values.items())]


def _bet(name: str, method: Method, scores: Scores) -> Row:
    bound = method.bound(scores, delta=setting.DELTA, failure_probability=setting.BETA)
    return {"method": name, "candidates": setting.NO_CANDIDATES, "epsilon": bound.epsilon}

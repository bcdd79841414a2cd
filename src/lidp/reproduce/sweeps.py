"""ε̂ against trials, canaries or dimension: the paper's Figure 2 and the three like it in Appendix E."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.mechanisms.gaussian import GaussianDraws, draw_gaussian
from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Row, Scale, Simulation
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SINGLE = "DP + Wilson"
_ALONE = 16  # times the repetitions and tunings


@dataclass(frozen=True)
class Point:
    """One place of a sweep."""

    trials: int
    canaries: int
    dimension: int = setting.DIMENSION

    def draw(self, seed: int, design: Design | None = None) -> GaussianDraws:
        """The canaries and noise of an audit here, good for every ε. Cells run side by side, so one thread each."""
        design = design or LeaveOneOut(self.canaries, self.canaries)
        return draw_gaussian(design, trials=self.trials, dimension=self.dimension, seed=seed, threads=1)


class Sweep(Simulation):
    """ε̂ of every method at several points, thresholds tuned beforehand on trials of their own."""

    axis: ClassVar[str]

    @abstractmethod
    def points(self, scale: Scale) -> list[Point]:
        """Where to measure."""

    def repetitions(self, scale: Scale, canaries: int) -> int:
        """How often. One canary is repeated more, as it is noisier, and cheaper; K canaries are compared with it."""
        often = setting.REPETITIONS if scale is Scale.PAPER else 3
        return _ALONE * often if canaries == 1 else often

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        points = self.points(scale)
        every = list(dict.fromkeys([*points, *(Point(point.trials, 1, point.dimension) for point in points)]))
        tuned = defaultdict(list)
        for row in done:
            if row["step"] == "tune":
                place = (Point(row["trials"], row["canaries"], row["dimension"]), row["repetition"])
                tuned[place].append({name: row[name] for name in ("nominal", "method", "candidates", "threshold")})
        cells = []
        for point in every:
            repetitions = self.repetitions(scale, point.canaries)
            tunings = min(setting.TUNINGS * (_ALONE if point.canaries == 1 else 1), repetitions)
            cells += [Cell({"step": "tune", **asdict(point), "repetition": r}) for r in range(tunings)]
            for r in range(repetitions):
                if (point, r % tunings) in tuned:
                    # Bets on one canary are as noisy, but nothing is compared with them.
                    bet = point in points and r < self.repetitions(scale, 2)
                    settings = {"step": "measure", **asdict(point), "repetition": r, "bet": bet}
                    cells.append(Cell(settings, given=tuned[point, r % tunings]))
        for point in points:
            for r in range(self.repetitions(scale, 2)):
                cells.append(Cell({"step": "flip", **asdict(point), "repetition": r}))
        # The long ones first, so that workers end together.
        return sorted(cells, key=lambda cell: -cell.settings["trials"] * cell.settings["canaries"] ** 2)

    def run(self, cell: Cell) -> list[Row]:
        place = cell.settings
        point = Point(place["trials"], place["canaries"], place["dimension"])
        common = {"step": place["step"], **asdict(point), "repetition": place["repetition"]}
        draws = point.draw(cell.seed, CoinFlip(point.canaries) if place["step"] == "flip" else None)
        rows = []
        for nominal in setting.NOMINAL:
            scores = draws.scores(setting.noise(nominal))
            found: list[Row] = []
            if place["step"] == "tune":
                found += setting.tune(scores)
            if place["step"] == "measure":
                found += setting.measure(scores, [row for row in cell.given if row["nominal"] == nominal])
            if place["step"] == "flip":
                found.append(_bet("coin wager", CoinWager(), scores))
            elif place.get("bet"):
                found.append(_bet("lifted betting", LiftedBetting(), scores))
            rows += [common | {"nominal": nominal} | row for row in found]
        return rows

    def table(self, rows: Sequence[Row]) -> list[Row]:
        found = defaultdict(list)
        for row in rows:
            if row["step"] != "tune":
                place = (row["trials"], row["canaries"], row["dimension"])
                found[(row["nominal"], method_of(row), row["candidates"], *place)].append(row["epsilon"])
        table = []
        for (nominal, method, candidates, trials, canaries, dimension), values in sorted(found.items()):
            mean, error = setting.mean_and_error(values)
            table.append(
                {
                    "nominal_epsilon": nominal,
                    "exact_epsilon": setting.exact_epsilon(nominal),
                    "method": method,
                    "candidates": candidates,
                    "trials": trials,
                    "canaries": canaries,
                    "dimension": dimension,
                    "models": models_spent(method, trials),
                    "epsilon_hat": mean,
                    "standard_error": error,
                    "repetitions": len(values),
                }
            )
        return table

    def figure(self, table: Sequence[Row]) -> Figure:
        from lidp.reproduce.figures import sweep_figure

        return sweep_figure(table, self.axis, SINGLE)


def method_of(row: Row) -> str:
    """What the table calls the method of a row: first order with one canary is the paper's baseline."""
    return SINGLE if row["canaries"] == 1 and row["method"] == "1st-order Wilson" else str(row["method"])


def models_spent(method: str, trials: int) -> int:
    """Models trained: one a trial for coin flips, two for leave-one-out, and as many again to tune thresholds."""
    return trials * {"coin wager": 1, "lifted betting": 2}.get(method, 4)


def look_up(table: Sequence[Row], **wanted: object) -> Row | None:
    """The row of a table with these values, if it is there."""
    found = [row for row in table if all(row[name] == value for name, value in wanted.items())]
    return found[0] if found else None


def _bet(name: str, method: Method, scores: Scores) -> Row:
    found = method.bound(scores, delta=setting.DELTA, failure_probability=setting.BETA)
    return {"method": name, "candidates": setting.NO_CANDIDATES, "epsilon": found.epsilon}

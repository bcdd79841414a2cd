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
from lidp.reproduce.experiment import Cell, Experiment, Row, Scale
from lidp.scores import Scores
from lidp.stats.coin_wager import CoinWager
from lidp.stats.lifted_betting import LiftedBetting
from lidp.stats.method import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SINGLE = "DP + Wilson"
NO_CANDIDATES = "none"


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


class Sweep(Experiment):
    """ε̂ of every method at several points, thresholds tuned once per point on trials of their own, as in the paper."""

    axis: ClassVar[str]

    @abstractmethod
    def points(self, scale: Scale) -> list[Point]:
        """Where to measure."""

    def repetitions(self, scale: Scale) -> int:
        """How often."""
        return setting.REPETITIONS if scale is Scale.PAPER else 3

    def cells(self, scale: Scale, done: Sequence[Row]) -> list[Cell]:
        points = self.points(scale)
        alone = dict.fromkeys(Point(point.trials, 1, point.dimension) for point in points)
        every = list(dict.fromkeys([*points, *alone]))
        tuned = defaultdict(list)
        for row in done:
            if row["step"] == "tune":
                tuned[Point(row["trials"], row["canaries"], row["dimension"])].append(
                    {name: row[name] for name in ("nominal", "method", "candidates", "threshold")}
                )
        steps: list[Row] = [{"step": "tune", **asdict(point)} for point in every]
        for repetition in range(self.repetitions(scale)):
            steps += [
                {"step": "measure", **asdict(point), "repetition": repetition, "tuned": tuned[point]}
                | {"bet": point in points}
                for point in every
                if point in tuned
            ]
            steps += [{"step": "flip", **asdict(point), "repetition": repetition} for point in points]
        steps.sort(
            key=lambda step: -step["trials"] * step["canaries"] ** 2
        )  # the long ones first, so that workers end together
        return [Cell(step) for step in steps]

    def run(self, cell: Cell) -> list[Row]:
        place = cell.settings
        point = Point(place["trials"], place["canaries"], place["dimension"])
        common = {"step": place["step"], **asdict(point)}
        draws = point.draw(cell.seed, CoinFlip(point.canaries) if place["step"] == "flip" else None)
        rows = []
        for nominal in setting.NOMINAL:
            scores = draws.scores(setting.noise(nominal))
            found: list[Row] = []
            if place["step"] == "tune":
                found += setting.tune(scores)
            if place["step"] == "measure":
                found += setting.measure(scores, [row for row in place["tuned"] if row["nominal"] == nominal])
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
                alone = row["canaries"] == 1 and row["method"] == "1st-order Wilson"
                method = SINGLE if alone else row["method"]
                place = (row["trials"], row["canaries"], row["dimension"])
                found[(row["nominal"], method, row["candidates"], *place)].append(row["epsilon"])
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


def models_spent(method: str, trials: int) -> int:
    """Models trained: one a trial for coin flips, two for leave-one-out, and as many again to tune thresholds."""
    return trials * {"coin wager": 1, "lifted betting": 2}.get(method, 4)


def look_up(table: Sequence[Row], **wanted: object) -> Row | None:
    """The row of a table with these values, if it is there."""
    found = [row for row in table if all(row[name] == value for name, value in wanted.items())]
    return found[0] if found else None


def _bet(name: str, method: Method, scores: Scores) -> Row:
    found = method.bound(scores, delta=setting.DELTA, failure_probability=setting.BETA)
    return {"method": name, "candidates": NO_CANDIDATES, "epsilon": found.epsilon}

"""Trained models as cells: the paper's data sets and models at every scale, and the scores of canaries on them, packed.

Training is the expensive part and is kept; statistics are computed from the kept scores and cost next to nothing.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp.claim import Claim
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.reproduce import setting
from lidp.reproduce.experiment import Cell, Experiment, Row, Scale, Source
from lidp.scores import Scores
from lidp.streams import Purpose, stream
from lidp.target import with_canaries
from lidp.trials.trial import TrialSetup, lay_out

SCORES = ("centred", "raw")
"""Relative to pilot models, or the paper's plain inner product or loss."""
GRADIENT_PILOTS = 4
"""Pilot models, without noise, for canaries that are gradients."""
STEPS = ("tune", "measure", "flip")
"""Leave-one-out trials to tune thresholds on, others to take bounds on, and coin-flip trials."""


@dataclass(frozen=True)
class Schedule:
    """Data, model and training of one pair of the paper at one scale. Zero records are all of them."""

    preset: str
    records: int
    epochs: float
    learning_rate: float
    references: int
    """pilot models for canaries that are examples; the paper's reference models"""
    tested: int
    """test examples that the accuracy is measured on"""
    classes: int = 0
    """of synthetic purchases; 0 for real data"""
    accountant: str = "rdp"
    """as in the paper"""


CANARIES = ("tail-example", "random-gradient")
"""The paper's two: data poisoning and random gradients."""


@dataclass(frozen=True)
class Run:
    """Models of one kind: what is trained, at which ε, with how many canaries of which kind, for which step."""

    pair: str
    schedule: Schedule
    canary: str
    nominal: float
    canaries: int
    step: str
    seed: int = 0

    @property
    def design(self) -> Design:
        """Who is inserted."""
        return CoinFlip(self.canaries) if self.step == "flip" else LeaveOneOut(self.canaries, self.canaries)

    @property
    def pilots(self) -> int:
        """Models trained beforehand."""
        return GRADIENT_PILOTS if "gradient" in self.canary else self.schedule.references

    @property
    def audit_seed(self) -> int:
        """One for all trials of the run, whatever cell they are in."""
        return Cell(asdict(self)).seed

    def cells(self, trials: int, together: int) -> list[Cell]:
        """The cells of so many trials, so many in each."""
        settings = asdict(self)
        return [
            Cell(settings | {"first": first, "trials": min(together, trials - first)})
            for first in range(0, trials, together)
        ]

    @classmethod
    def of(cls, settings: Row) -> Run:
        """The run that a cell belongs to."""
        given = {name: value for name, value in settings.items() if name not in ("first", "trials")}
        return cls(**given | {"schedule": Schedule(**given["schedule"])})


class TrainedModels(Source, Experiment):
    """An experiment on trained models that is its own source."""

    code = (
        "streams.py", "designs.py", "trials/trial.py", "_compiled/*.py", "canaries/*.py", "data/*.py", "training/*.py",
        "reproduce/training_runs.py",
    )  # fmt: skip
    scales: ClassVar[tuple[Scale, ...]] = (Scale.SMOKE, Scale.REDUCED, Scale.PAPER)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self,)

    def run(self, cell: Cell) -> list[Row]:
        return train_cell(cell)


def train_cell(cell: Cell) -> list[Row]:
    """Train the models of a cell and score its canaries in both ways."""
    run = Run.of(cell.settings)
    target, scores, prepared = _ready(replace(run, step=""))
    setup = TrialSetup(target.target, run.design, run.audit_seed, prepared)
    found: dict[str, list[NDArray[np.floating]]] = {}
    accuracies = []
    for index in range(cell.settings["first"], cell.settings["first"] + cell.settings["trials"]):
        coins, arms = lay_out(setup, index)
        if coins is not None:
            found.setdefault("coins", []).append(coins)
        for arm in arms:
            noise = stream(setup.seed, trial=index, arm=arm.number, purpose=Purpose.NOISE)
            output = target.trainer(with_canaries(target.target.dataset, arm.inserted), noise)
            accuracies.append(output.metadata["accuracy"])
            for name, score in scores.items():
                found.setdefault(f"{name} {arm.name}", []).append(score.many(output.value, arm.tested, prepared))
    arrays = {name: _packed(np.array(values)) for name, values in found.items()}
    return [cell.settings | {"arrays": arrays, "accuracy": float(np.mean(accuracies)), "sigma": target.calibration.sigma}]


def run_of(row: Row) -> Run:
    """The run that a row of results belongs to."""
    return Run.of({field.name: row[field.name] for field in fields(Run)})


def scores_of(rows: Sequence[Row], score: str) -> Scores:
    """The scores of all trials in some rows of one run."""
    rows = sorted(rows, key=lambda row: row["first"])
    design = run_of(rows[0]).design

    def stacked(name: str) -> NDArray[np.float64]:
        return np.concatenate([_unpacked(row["arrays"][name], row["trials"]) for row in rows])

    if isinstance(design, CoinFlip):
        return Scores(scores=stacked(f"{score} scores"), coins=stacked("coins"))
    return Scores(inserted=stacked(f"{score} inserted"), held_out=stacked(f"{score} held_out"))


@functools.lru_cache(maxsize=2)
def _data(preset: str, classes: int, records: int, tested: int) -> Any:
    from lidp.data import synthetic_purchases
    from lidp.training import find_preset

    data = synthetic_purchases(classes=classes) if classes else find_preset(preset).load(None)
    data = data.first(records) if records else data
    return replace(data, test_x=data.test_x[:tested], test_y=data.test_y[:tested])


@functools.lru_cache(maxsize=16)  # all of a scale
def _ready(run: Run) -> tuple[Any, dict[str, Any], Any]:
    """The target of a run, its two scores and its pilot models: the same for all steps."""
    from lidp.training import find_preset, training_target

    schedule, preset = run.schedule, find_preset(run.schedule.preset)
    data = _data(schedule.preset, schedule.classes, schedule.records, schedule.tested)
    target = training_target(
        data,
        Claim(epsilon=run.nominal, delta=setting.DELTA),
        training=preset.training(
            epochs=schedule.epochs, learning_rate=schedule.learning_rate, accountant=schedule.accountant
        ),
        canary=run.canary,
        canaries=run.canaries,
        pilots=run.pilots,
        tail=preset.tail,
        scale=preset.scale,
    )
    scores = {name: replace(target.target.score, centred=name == "centred") for name in SCORES}
    assert target.target.prepare is not None  # noqa: S101  # for the type checker: training targets have pilots
    # One thread: cells run side by side.
    pilots = replace(target.target.prepare, threads=1)
    prepared = pilots(target.target.dataset, stream(run.audit_seed, trial=0, purpose=Purpose.PREPARATION)).arrays
    return target, scores, prepared


def _packed(array: NDArray[np.floating]) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def _unpacked(text: str, rows: int) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(rows, -1).astype(np.float64)

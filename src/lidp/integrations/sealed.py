"""``SealedPlanting``: plants the gradient canaries of a seal in a training elsewhere, and writes the scores of all candidates.

    planting = SealedPlanting.read("sealed/planting.json")
    ...
    model, optimizer, loader = engine.make_private(...)
    planting.attach(engine, optimizer, loader)
    ...
    planting.write_scores("scores.csv")

A loop without Opacus calls ``watch``, ``add`` and ``released`` instead of ``attach``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from lidp.arrays import Floats
from lidp.canaries.coordinates import SpreadCoordinates
from lidp.canaries.gradients import GradientCanary
from lidp.errors import AuditFailed
from lidp.integrations.gradient_canaries import GradientSeeds
from lidp.integrations.opacus_planting import OpacusPlanting
from lidp.integrations.opacus_settings import ConfigurationWarning
from lidp.integrations.parameter_arrays import ParameterArray, count_numbers
from lidp.integrations.planting import Planting, Trained
from lidp.seals.trainer_files import PlantingFile, write_scores


class SealedPlanting(OpacusPlanting):
    """Adds the inserted canaries of a seal to one training run, and scores all candidates by what every step releases.

    The gradients of all candidates follow from the public seed of the seal and from the sizes of the trainable parameters, whoever
    is inserted. Only parameters that the optimizer trains are used: with LoRA, those of the adapters.

    Guarantee: scores are functions of what the steps release, which the claim covers, of the clipped sums of the records without
    canaries, and of the candidate. They do not use who is inserted, so a bound from them is as valid as one from any scores.
    """

    def __init__(self, file: PlantingFile, rng: np.random.Generator | None = None) -> None:
        """Create the planting of one run.

        ``rng`` samples the inserted canaries of each step. By default it is seeded by the system.
        """
        shape = (2,) if file.canary is GradientCanary.DIRAC_GRADIENT else ()
        super().__init__(
            np.zeros((len(file.inserted), *shape), np.float64 if shape else np.int64),
            np.random.default_rng() if rng is None else rng,
            length=0,
            actual_length=0,
            watched=np.zeros((len(file.candidates), *shape), np.float64 if shape else np.int64),
        )
        self._file = file

    @classmethod
    def read(cls, path: str | Path, rng: np.random.Generator | None = None) -> SealedPlanting:
        """Return the planting of a file ``planting.json``, for one training run; ``rng`` is for tests."""
        return cls(PlantingFile.read(path), rng)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The ids of all candidates, in the order of the file."""
        return self._file.candidates

    def attach(self, engine: Any, optimizer: Any, loader: Any) -> None:
        """Add canaries to the steps of an Opacus optimizer; see :meth:`OpacusPlanting.attach` for what it supports.

        Raises:
            AuditFailed: if canaries cannot be added in this setup. The message names what is not supported and the remedy.
        """
        self._length = self._actual_length = len(loader.dataset)
        super().attach(engine, optimizer, loader)

    def watch(self, parameters: Iterable[ParameterArray | tuple[str, ParameterArray]]) -> None:
        """Draw the gradients of all candidates for these parameters, which are those that the training changes.

        Raises:
            AuditFailed: if a parameter is in half precision, or if there are fewer parameters than candidates.
        """
        trained = list(parameters)
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in trained]
        _require_single_precision(tensors)
        if not self.is_watching and tensors:
            self._watched = self._draw(tuple(count_numbers(tensor) for tensor in tensors))
            self._inserted = self._watched[self._file.is_inserted]
        super().watch(trained)

    def _draw(self, group_sizes: tuple[int, ...]) -> Any:
        """Return the canaries of all candidates, in their order."""
        rng, size = np.random.default_rng(self._file.seed), len(self._file.candidates)
        if self._file.canary is GradientCanary.RANDOM_GRADIENT:
            return GradientSeeds().draw(rng, size)
        if size > sum(group_sizes):
            raise AuditFailed(
                f"the seal has {size:,} candidates, each along a trainable parameter of its own, but the optimizer trains only "
                f"{sum(group_sizes):,} parameters in {len(group_sizes)} tensors; seal fewer canaries, or raise the rank of LoRA"
            )
        return SpreadCoordinates(group_sizes).draw(rng, size)

    def outcome(self, model: Any = None) -> Trained:
        """Return the outcome of the run, whose transcript has the evidence about all candidates.

        Raises:
            AuditFailed: if the run planted no canaries, or has not recorded every step.
        """
        return Planting.outcome(self, model) if self._read_settings is None else super().outcome(model)

    def scores(self) -> Floats:
        """Return the score of each candidate, in their order: its log-likelihood ratio over all steps under the claim.

        Raises:
            AuditFailed: if there are no scores for all candidates.
        """
        transcript = self.outcome().transcript
        assert transcript is not None  # noqa: S101  # a sealed planting always watches
        ratios = transcript.log_ratios
        lost = int((~np.isfinite(ratios)).sum())
        if lost:
            raise AuditFailed(
                f"{lost:,} of {len(ratios):,} candidates have no finite score: the training diverged. Report it by "
                "lidp open --failed, which counts the run; do not train again under the same seal"
            )
        return ratios

    def write_scores(self, path: str | Path) -> None:
        """Write the score of every candidate as CSV with the columns id and score, for ``lidp open``.

        Warns:
            ConfigurationWarning: for each inconsistency between the settings of Opacus, its accountant and the steps.
        """
        write_scores(path, self.candidates, self.scores())
        for check in () if self._read_settings is None else self.settings().checks():
            warnings.warn(str(check), ConfigurationWarning, stacklevel=2)


def _require_single_precision(tensors: Iterable[ParameterArray]) -> None:
    for tensor in tensors:
        precision = str(tensor.dtype).removeprefix("torch.")
        if precision not in ("float32", "float64"):
            raise AuditFailed(
                f"a trainable parameter is {precision}: its noisy gradients are rounded too "
                "coarsely. Keep trainable parameters in float32, as LoRA does by default, and use torch.autocast; frozen ones "
                "may be in half precision"
            )

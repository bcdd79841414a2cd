"""``Planting``: adds gradient canaries to a training loop in PyTorch or numpy, and records what scores need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.arrays import Ints, Singles
from lidp.errors import AuditFailed
from lidp.integrations.parameter_arrays import ParameterArray, count_numbers, flatten, require_arrays, require_writeable
from lidp.integrations.planted_gradients import PlantedGradients, gradients_of
from lidp.training.transcript import ClaimedSteps, Transcript, TranscriptRecorder

_MIN_NOISE_MULTIPLIER = 1e-3
"""The likelihood ratio of a step that claims less noise is computed for this much."""


class Planting:
    """Adds canaries to the sums of clipped gradients of one training run, and records what the run releases.

    A training loop calls :meth:`watch` once with its parameters and, at every step, :meth:`add` with the sums of clipped gradients
    before it adds noise. For transcript scores it also calls :meth:`released` at every step with the noisy sums.
    """

    def __init__(
        self,
        inserted: NDArray[Any],
        rng: np.random.Generator,
        *,
        watched: NDArray[Any] | None = None,
        noiseless: bool = False,
        required: bool = True,
    ) -> None:
        """Create the planting of one run.

        Args:
            inserted: the canaries to add: seeds of random directions, or rows (coordinate, sign).
            rng: samples the canaries of each step.
            watched: the canaries about which the run's transcript tells, inserted or not; they do not influence the training.
                None for scores of the final model.
            noiseless: whether this is a pilot run, which needs no noise. Loops may ignore it.
            required: whether a run that never calls :meth:`add` ends the audit. It does so whether or not canaries were to be
                inserted.
        """
        self._inserted = inserted  # hidden from the training loop
        self._watched = watched
        self.required = required
        self.noiseless = noiseless
        self.steps = 0
        self._rng = rng
        (self.rng,) = rng.spawn(1)
        """A generator for the run itself, such as its sampling and its noise; it does not depend on which canaries are inserted."""
        self._names: list[str] = []
        self._parameters: list[ParameterArray] = []
        self.group_sizes: list[int] = []
        """Number of parameters in each watched tensor."""
        self._start = np.empty(0, np.float32)
        self._inserted_gradients: PlantedGradients | None = None
        self._watched_gradients: PlantedGradients | None = None
        self._batch_in_epoch = np.empty(0, np.int64)
        self._batches = 0
        self._recorder = TranscriptRecorder(0 if watched is None else len(watched))
        self._open_step: _OpenStep | None = None

    @property
    def is_watching(self) -> bool:
        """Whether the loop has called :meth:`watch`."""
        return bool(self._parameters)

    @property
    def records_transcript(self) -> bool:
        """Whether the run must call :meth:`released` at every step."""
        return self._watched is not None

    @property
    def size(self) -> int:
        """Number of parameters, and so of numbers in a gradient."""
        return sum(self.group_sizes)

    def watch(self, parameters: Iterable[ParameterArray | tuple[str, ParameterArray]]) -> None:
        """Record the values of the parameters before training.

        Args:
            parameters: tensors of PyTorch or arrays of numpy, or pairs (name, tensor) as from ``model.named_parameters()``. If they
                have no names, those of the model that the loop returns are used.
        """
        if self._parameters:
            raise AuditFailed("planting.watch was called twice; each run gets a new planting")
        for parameter in parameters:
            name, tensor = parameter if isinstance(parameter, tuple) else ("", parameter)
            self._names.append(name)
            self._parameters.append(tensor)
        if not self._parameters:
            raise AuditFailed("there are no parameters to watch; pass model.named_parameters()")
        require_arrays(self._parameters, "the parameters")
        self.group_sizes = [count_numbers(array) for array in self._parameters]
        if not self.records_transcript:
            self._start = flatten(self._parameters)
        self._inserted_gradients = gradients_of(self._inserted, self.group_sizes)
        if self._watched is not None:
            self._watched_gradients = gradients_of(self._watched, self.group_sizes)

    def add(
        self,
        sums: Iterable[ParameterArray],
        *,
        clip_norm: float,
        rate: float,
        steps_per_epoch: int | None = None,
        batches: int = 1,
    ) -> None:
        """Add the canaries sampled in this step, each of length ``clip_norm``, to the sums of clipped gradients, in place.

        Each canary is sampled with probability ``rate``. If the batches of an epoch partition a shuffled data set, pass their
        number as ``steps_per_epoch``: each canary is then in one batch of each epoch. A step that sums up several of these batches
        passes their number as ``batches``.

        Raises:
            AuditFailed: if canaries cannot be added. This happens in every run or in none, and so reveals nothing about the coins.
        """
        tensors = self._require_all_parameters(sums)
        require_writeable(tensors, "the sums")
        if self._open_step is not None:
            raise AuditFailed(_RELEASE_MISSING)
        if self._watched_gradients is not None:
            # Ratios per epoch are for epochs of equal steps; in others the score of Poisson samples is nearly as good.
            steps, rest = divmod(steps_per_epoch or 0, batches)
            self._open_step = _OpenStep(self._watched_gradients.snapshot(tensors), clip_norm, 0 if rest else steps)
        sampled = self._sample(rate, steps_per_epoch, batches)
        self.steps += 1
        if self._inserted_gradients is not None and len(sampled):
            self._inserted_gradients.add(tensors, sampled, clip_norm)

    def _require_all_parameters(self, sums: Iterable[ParameterArray]) -> list[ParameterArray]:
        """Return the sums as a list, if there is one number for each parameter."""
        tensors = list(sums)
        if not self._parameters:
            raise AuditFailed("call planting.watch(parameters) before the first step")
        require_arrays(tensors, "the sums")
        sizes = [count_numbers(tensor) for tensor in tensors]
        if sum(sizes) != self.size:
            raise AuditFailed(f"the sums have {sum(sizes):,} numbers, but the watched parameters have {self.size:,}")
        if self.records_transcript and sizes != self.group_sizes:
            raise AuditFailed("the sums do not have the sizes of the watched parameters; pass them in the same order")
        return tensors

    def _sample(self, rate: float, batches_per_epoch: int | None, batches: int) -> Ints:
        """Return the numbers of the inserted canaries in this step, or in its ``batches`` batches of a shuffled epoch."""
        if batches_per_epoch is None:
            return np.flatnonzero(self._rng.random(len(self._inserted)) < rate)
        sampled = []
        for _ in range(batches):
            number = self._batches % batches_per_epoch
            if number == 0:
                self._batch_in_epoch = self._rng.integers(0, batches_per_epoch, len(self._inserted))
            sampled.append(np.flatnonzero(self._batch_in_epoch == number))
            self._batches += 1
        return np.concatenate(sampled)

    def released(self, sums: Iterable[ParameterArray], *, clip_norm: float, noise_multiplier: float, rate: float) -> None:
        """Record what a step releases: the sums with canaries and noise, before they are scaled.

        ``clip_norm``, ``noise_multiplier`` and ``rate`` are those that the claim is based on: what the accountant gets, not what
        the loop really does. For scores of the final model, this does nothing.
        """
        if self._watched_gradients is None:
            return
        tensors = self._require_all_parameters(sums)
        step, self._open_step = self._open_step, None
        if step is None:
            raise AuditFailed("planting.released was called without planting.add; call both once per step, add first")
        with np.errstate(invalid="ignore", over="ignore"):  # canaries of runs that diverge get no score
            products = step.length * self._watched_gradients.products(step.before, tensors)
        lengths = np.full(len(products), step.length**2)
        claimed = ClaimedSteps(
            max(noise_multiplier, _MIN_NOISE_MULTIPLIER), min(rate, 1.0), clip_norm, step.steps_per_epoch
        )
        self._recorder.add(products, lengths, claimed)

    def outcome(self, model: Any) -> Trained:
        """Return the outcome of the run, for scores.

        Raises:
            AuditFailed: if the run cannot have planted canaries, or has not recorded every step that its scores need.
        """
        if self.required and not (self.is_watching and self.steps):
            raise AuditFailed(
                "the training loop planted no canaries: call planting.attach(engine, optimizer, loader) with Opacus, or "
                "planting.watch(parameters) and at every step planting.add(sums, ...)"
            )
        if not self.records_transcript:
            return Trained(model, flatten(self._parameters) - self._start if self.is_watching else self._start, self.steps)
        if self._open_step is not None:
            raise AuditFailed(_RELEASE_MISSING)
        assert self._watched_gradients is not None  # noqa: S101  # for the type checker
        groups = self._watched_gradients.groups
        transcript = self._recorder.transcript(groups, () if groups is None else self._group_names(model))
        return Trained(model, self._start, self.steps, transcript)

    def _group_names(self, model: Any) -> tuple[str, ...]:
        """Return the name of each watched tensor: as given, or that of the parameter of the model, or its number."""
        named = getattr(model, "named_parameters", None)
        known = {} if named is None else {id(tensor): name.removeprefix("_module.") for name, tensor in named()}
        pairs = enumerate(zip(self._names, self._parameters, strict=True), start=1)
        return tuple(name or known.get(id(tensor), f"parameter {number}") for number, (name, tensor) in pairs)


_RELEASE_MISSING = (
    "a step did not record what it releases; call planting.released(sums, clip_norm=..., noise_multiplier=..., rate=...) with the "
    "noisy sums after each planting.add, or use scores='final-model'"
)


@dataclass(frozen=True)
class _OpenStep:
    """A step between :meth:`Planting.add` and :meth:`Planting.released`."""

    before: NDArray[Any]
    """The sums before canaries were added, as far as watched gradients need them."""
    length: float
    """The length of the canaries of this step."""
    steps_per_epoch: int
    """The number of shuffled batches of an epoch; 0 for Poisson samples."""


@dataclass(frozen=True)
class Trained:
    """The outcome of a training run."""

    model: Any
    moved: Singles
    """Change of all parameters by the training; empty if there is a transcript."""
    steps: int
    transcript: Transcript | None = None

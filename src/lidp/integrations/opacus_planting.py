"""``OpacusPlanting``: adds gradient canaries to the steps of an Opacus optimizer, and reads the settings of its engine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp.errors import AuditFailed
from lidp.integrations.opacus_settings import CountedSteps, MeasuredNoise, Settings
from lidp.integrations.planting import Planting, Trained


class OpacusPlanting(Planting):
    """A planting that adds canaries to the steps of an Opacus optimizer by itself."""

    def __init__(
        self,
        inserted: NDArray[Any],
        rng: np.random.Generator,
        *,
        length: int,
        actual_length: int,
        rehearsal: Rehearsal | None = None,
        measures_noise: bool = False,
        **options: Any,
    ) -> None:
        """Create the planting of one run.

        ``length`` is the stated length of the data set, ``actual_length`` its number of records including canaries. The run must
        have the settings of the ``rehearsal``. Other ``options`` are those of :class:`Planting`.
        """
        super().__init__(inserted, rng, **options)
        self._length, self._actual_length = length, actual_length
        self._rehearsal = rehearsal
        self._measures_noise = measures_noise
        self._read_settings: Callable[[], Settings] | None = None
        self._noises: Counter[float] = Counter()
        self._sum_of_squares, self._noise_values = 0.0, 0
        self._batch_count: list[int] | None = None
        self.optimizer_name = ""
        """The optimizer inside that of Opacus, such as SGD."""
        self.initial_noise_state: bytes | None = None
        """Digest of the state of the noise generator before the first step; None in secure mode, where it is meaningless."""

    def attach(self, engine: Any, optimizer: Any, loader: Any) -> None:
        """Read the settings, and add canaries to the sums of clipped gradients in Opacus.

        Supports per-sample gradients by hooks, functorch and expanded weights, and ghost and fast gradient clipping, with flat or
        adaptive clipping, on one device. With several virtual steps, a canary is sampled once per real step.

        Raises:
            AuditFailed: if canaries cannot be added in this setup.
        """
        from opacus.data_loader import DPDataLoader
        from opacus.optimizers import DPOptimizer

        if not isinstance(optimizer, DPOptimizer):
            raise AuditFailed(f"attach takes the optimizer that make_private returned, got {type(optimizer).__name__}")
        if type(optimizer).__name__.startswith(("Distributed", "FSDP")) or hasattr(optimizer, "max_grad_norms"):
            raise AuditFailed(f"{type(optimizer).__name__} is not supported: canaries need flat clipping on one device")
        if len(loader.dataset) != self._length:
            raise AuditFailed(
                f"the loader has {len(loader.dataset):,} records, but train got {self._length:,}: train must use the records "
                "that it gets, or canaries are never inserted"
            )
        poisson = isinstance(loader, DPDataLoader)
        if not poisson and not self.required:
            raise AuditFailed(
                "canaries that are records need Poisson sampling: with shuffled batches, the number of steps reveals how many are "
                "inserted. Use poisson_sampling=True, or gradient canaries"
            )
        if poisson:
            self._batch_count = _count_batches(loader, self._actual_length)

        def settings() -> Settings:
            measured = (
                MeasuredNoise((self._sum_of_squares / self._noise_values) ** 0.5, self._noise_values)
                if self._noise_values
                else None
            )
            return Settings.of(
                engine, optimizer, loader, poisson=poisson, steps=self.steps, noises=self._noises, measured=measured
            )

        self._read_settings = settings
        self.optimizer_name = type(optimizer.original_optimizer).__name__
        self.watch(optimizer.params)
        self._add_before_noise(engine, optimizer, loader.sample_rate if poisson else 1 / len(loader), poisson, loader)

    def _add_before_noise(self, engine: Any, optimizer: Any, rate: float, poisson: bool, loader: Any) -> None:
        """Wrap ``add_noise``, which every mode of Opacus calls once per real step with clipped sums in ``summed_grad``."""
        add_noise = optimizer.add_noise

        def add_canaries_and_noise() -> None:
            parameters, norm, noise = optimizer.params, float(optimizer.max_grad_norm), optimizer.noise_multiplier
            epoch, batches = (None, 1) if poisson else (len(loader), int(optimizer.accumulated_iterations))
            if not self.steps and not engine.secure_mode:
                self.initial_noise_state = _digest_state(optimizer.generator, parameters[0])
            self.add([p.summed_grad for p in parameters], clip_norm=norm, rate=rate, steps_per_epoch=epoch, batches=batches)
            self._noises[float(noise)] += 1
            if self.noiseless:
                optimizer.noise_multiplier = 0.0
            add_noise()
            optimizer.noise_multiplier = noise  # the accountant reads it next
            if self._measures_noise and noise > 0 and norm > 0:
                self._measure_noise(parameters, float(noise) * norm)
            counted_noise, counted_rate = self._counted(float(noise), rate * optimizer.accumulated_iterations)
            self.released([p.grad for p in parameters], clip_norm=norm, noise_multiplier=counted_noise, rate=counted_rate)

        optimizer.add_noise = add_canaries_and_noise

    def _counted(self, noise: float, rate: float) -> tuple[float, float]:
        """Return the noise multiplier and the rate that the accountant counts for the step that has just been added.

        They are what the accountant counted in the rehearsal, or, if settings may vary, what the optimizer tells it next.
        """
        counted = None if self._rehearsal is None else self._rehearsal.counted_steps
        return (noise, rate) if counted is None else counted.at(self.steps - 1)

    def _measure_noise(self, parameters: Any, stated: float) -> None:
        """Add the noise of a step, in units of its stated standard deviation, to the measured noise."""
        for parameter in parameters:
            noise = (parameter.grad - parameter.summed_grad.view_as(parameter.grad)).double() / stated
            self._sum_of_squares += float((noise * noise).sum())
            self._noise_values += noise.numel()

    def settings(self) -> Settings:
        """Return the settings after training, with everything that the accountant has counted."""
        if self._read_settings is None:
            raise AuditFailed("train did not call planting.attach(engine, optimizer, loader)")
        return self._read_settings()

    def outcome(self, model: Any) -> Trained:
        """Return the outcome of the run, for scores.

        Raises:
            AuditFailed: if the run cannot have planted canaries, or differs from the rehearsal.
        """
        settings = self.settings()  # raises if train did not attach
        if self.steps and self._batch_count is not None and not self._batch_count[0]:
            raise AuditFailed(
                "train takes its batches from another loader than the one that make_private returned and that it attached: "
                "iterate over the attached loader, or the accountant describes different training"
            )
        if self._rehearsal is not None:
            if self.initial_noise_state is not None and self.initial_noise_state == self._rehearsal.initial_noise_state:
                raise AuditFailed(
                    "the noise starts from the same random numbers in every run: train seeds the generator itself "
                    "(torch.manual_seed, or noise_generator=). Remove that: the audit seeds every run differently"
                )
            difference = self._rehearsal.difference(settings)
            if difference is not None:
                raise AuditFailed(
                    f"one run had {difference}: the statement of the accountant differs between runs. "
                    "Pass a claim that covers all of them as claim="
                )
        return super().outcome(model)


@dataclass(frozen=True)
class Rehearsal:
    """Facts of a run before the audit, with which later runs are compared.

    Later runs must have the same ``settings``, unless these are None because the claim covers any settings. Their noise must not
    start from the same generator state.
    """

    initial_noise_state: bytes | None
    settings: Settings | None
    divisor_may_vary: bool = False
    """Whether runs may differ in the batch size by which they divide gradients, because it follows the number of records."""
    counted_steps: CountedSteps | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        history = () if self.settings is None else self.settings.history
        object.__setattr__(self, "counted_steps", CountedSteps(history) if history else None)

    def difference(self, settings: Settings) -> str | None:
        """Describe the first setting of a later run that differs from the rehearsal but must not; None if there is none."""
        if self.settings is None:
            return None
        return settings.difference(self.settings, ignore=("expected_batch_size",) if self.divisor_may_vary else ())


def _digest_state(generator: Any, parameter: Any) -> bytes:
    """Return a digest of the state of the generator that draws the noise of a parameter."""
    import torch

    if generator is not None:
        state = generator.get_state()
    elif parameter.device.type == "cuda":
        state = torch.cuda.get_rng_state(parameter.device)
    else:
        state = torch.get_rng_state()
    return hashlib.sha256(state.cpu().numpy().tobytes()).digest()


def _count_batches(loader: Any, actual_length: int) -> list[int] | None:
    """Count the batches that a Poisson loader draws, and let it sample from ``actual_length`` records.

    The rate, the steps, the expected batch size and everything else that depends on the length still follow from the stated length
    of the data set.

    Returns:
        A list whose only item is the count; None if the sampler is not that of Opacus, which is then left unchanged.
    """
    import torch
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    batch_count = [0]

    class Sampler(UniformWithReplacementSampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            for _ in range(self.steps):
                chosen = torch.rand(actual_length, generator=self.generator) < self.sample_rate
                batch_count[0] += 1
                yield chosen.nonzero().reshape(-1).tolist()

    old = loader.batch_sampler
    if type(old) is not UniformWithReplacementSampler:
        if actual_length != old.num_samples:
            raise AuditFailed(f"canaries that are records need the Poisson sampler of Opacus, got {type(old).__name__}")
        return None
    new = Sampler(num_samples=old.num_samples, sample_rate=old.sample_rate, generator=old.generator, steps=old.steps)
    object.__setattr__(loader, "batch_sampler", new)  # the loader forbids plain assignment; it has not been used yet
    return batch_count

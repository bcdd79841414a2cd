"""Audit DP-SGD in JAX: a function ``train(records, planting, key) -> (model, state)``.

    def train(records, planting, key):
        ...
        privatizer = planting.privatizer(gaussian_privatizer(stddev=..., prng_key=key), clip_norm=gradient.l2_norm_bound)
        ...
        return parameters, state  # the state of the privatizer, which holds the planting

    print(audit_jax(train, records, parameters=..., noise_multiplier=1.0, sampling_rate=0.1, steps=100, delta=1e-5, trials=8))

Canaries are gradients along single coordinates, and scores use what every step releases.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lidp import checks
from lidp._runtime.global_generators import seed_global_generators
from lidp.claim import Claim, Neighbours
from lidp.designs import Design
from lidp.engine.audit import audit
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.accounted_steps import AccountedSteps
from lidp.integrations.canary_counts import count_separate
from lidp.integrations.coordinate_canaries import CoordinateRecords, ParameterGroups
from lidp.integrations.jax_planting import PlantedState, Planting, flatten
from lidp.result import AuditResult
from lidp.target import Prepared, Target
from lidp.training.transcript import COLUMNS, SCORES_SEE, ClaimedSteps, Transcript, TranscriptScore
from lidp.trials.repeated_noise import IDENTICAL_PILOTS

__all__ = ["PlantedState", "Planting", "audit_jax", "jax_target"]

Train = Callable[[Any, Planting, Any], Any]

_NOT_TESTED = "clipping and batch selection (gradient canaries are added after them)"
_PILOT_CANARIES = 64
_ROUNDING = 1e-4
"""Difference of equal noise by rounding, in units of its size, at most: sums of 32-bit numbers."""

_forked_after_use = False
"""Whether this process was forked from one that had used JAX, whose threads do not exist here."""


@dataclass(frozen=True)
class JaxLoop:
    """A training loop as a mechanism; its output is the transcript of the watched canaries."""

    train: Train
    groups: ParameterGroups
    claimed: ClaimedSteps

    def __call__(self, data: CoordinateRecords, rng: np.random.Generator) -> Transcript:
        if _forked_after_use:
            raise AuditFailed(
                "JAX was used before this process was forked, and would deadlock here. Do not use JAX before the audit (make "
                "records with numpy, and parameters with jax.eval_shape), or use one worker, or the executor Ray"
            )
        # Separate streams for the loop and for the sampling of canaries.
        loop_rng, planting_rng = rng.spawn(2)
        first = Planting.begin(data.canaries(), self.groups, self.claimed, planting_rng)
        last = _last_planting(self.train(data.copy_records(), first, _new_key(loop_rng)), first)
        return last.transcript(len(data.watched))


def _new_key(rng: np.random.Generator) -> jax.Array:
    """Return a key made from 64 random bits; ``jax.random.key`` alone may use 32 bits of its seed."""
    first, second = rng.integers(0, 2**32, 2, dtype=np.uint32)
    return jax.random.fold_in(jax.random.key(int(first)), second)


def _last_planting(returned: Any, first: Planting) -> Planting:
    """Return the planting in what ``train`` returned.

    Raises:
        AuditFailed: if there is none, or if the run cannot have planted canaries with it. This does not depend on the coins.
    """
    leaves = jax.tree.leaves(returned, is_leaf=lambda part: isinstance(part, Planting))
    plantings = [leaf for leaf in leaves if isinstance(leaf, Planting)]
    if len(plantings) != 1:
        raise AuditFailed(
            f"train returned {len(plantings)} plantings, and must return the last one beside the model: as in return parameters, "
            "planting, or return parameters, state, with the state of the optimizer that contains planting.privatizer(...)"
        )
    last = plantings[0]
    if not last.follows(first):
        raise AuditFailed("train returned the planting of another run; return the one that follows from its argument")
    if last.within_step:
        raise AuditFailed("the last step called planting.add without planting.released; pass the noisy sums to released")
    if not last.steps:
        raise AuditFailed(
            "the training loop planted no canaries: use planting.privatizer(...) as the noise of every step, or call planting.add "
            "and planting.released in every step, and return the planting that they return"
        )
    return last


@dataclass(frozen=True)
class NoisePilots:
    """A preparation step: train ``models`` models without canaries, and end the audit if their noise is the same."""

    loop: JaxLoop
    models: int

    def __call__(self, data: CoordinateRecords, rng: np.random.Generator) -> Prepared:
        coordinates = self.loop.groups.canaries
        watched = data.watching(
            coordinates.draw(np.random.default_rng(0), min(_PILOT_CANARIES, sum(coordinates.group_sizes)))
        )
        transcripts: list[Transcript] = []
        seconds: list[float] = []
        for pilot_rng in rng.spawn(self.models):
            seed_global_generators(pilot_rng)
            start = time.monotonic()
            transcripts.append(self.loop(watched, pilot_rng))
            seconds.append(time.monotonic() - start)
        if len(transcripts) > 1 and _have_same_noise(transcripts[0], transcripts[1]):
            raise AuditFailed(IDENTICAL_PILOTS)
        steps = [transcript.steps for transcript in transcripts]
        return Prepared({"steps": steps}, models=self.models, model_seconds=min(seconds))


def _have_same_noise(first: Transcript, second: Transcript) -> bool:
    """Return whether two runs without canaries had the same noise, up to rounding: their batches may differ."""
    noises = [transcript.evidence[:, :, COLUMNS.index("product")] for transcript in (first, second)]
    if noises[0].shape != noises[1].shape:
        return False
    size = float(np.sqrt(np.mean(np.square(noises[0]))))
    return bool(np.all(noises[0] == noises[1]) or np.abs(noises[0] - noises[1]).max() <= _ROUNDING * size)


def jax_target(
    train: Train,
    records: Any,
    *,
    parameters: Any,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    pilots: int = 2,
    name: str = "",
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """Return a target for a DP-SGD loop in JAX, whose scores use what every step releases.

    Args:
        train: ``train(records, planting, key)``, which uses the :class:`Planting` in every step and returns the last one, or the
            state that contains it, together with the model. All randomness must come from ``key``.
        records: the records for ``train``: arrays, a pytree of arrays, or any other collection. Every run gets a copy, with
            JAX arrays converted to numpy arrays.
        parameters: a pytree of the structure and shapes of the trained parameters: arrays, or what ``jax.eval_shape`` returns.
        noise_multiplier: the noise multiplier that the accountant was told.
        sampling_rate: the probability of Poisson sampling that the accountant was told. Canaries are sampled with it.
        steps: the number of steps that the accountant was told.
        pilots: number of models trained before the audit, to make sure that runs with different keys have different noise; may be
            0.
        facts: numbers or words by name, which results show.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(records, planting, key), got {train!r}")
    claimed = ClaimedSteps(noise_multiplier, sampling_rate, 1.0)
    loop = JaxLoop(train, _groups_of(parameters), claimed)
    data = CoordinateRecords(jax.tree.map(_without_device, records))
    data.copy_records()  # raises if they cannot be copied for every run
    name = name or str(getattr(train, "__qualname__", type(train).__qualname__))
    return Target(
        loop,
        loop.groups.canaries,
        TranscriptScore(),
        data,
        prepare=NoisePilots(loop, checks.count(pilots=pilots)) if pilots else None,
        name=f"{name}, all steps",
        facts={
            "noise multiplier": noise_multiplier,
            "sampling rate": sampling_rate,
            "steps": steps,
            **(facts or {}),
            "scores see": SCORES_SEE,
            "not tested": _NOT_TESTED,
        },
        neighbours=Neighbours.ADD_REMOVE,
        curve=AccountedSteps(noise_multiplier, sampling_rate, steps).curve,
        canary_count=count_separate(sum(loop.groups.sizes)),
    )


def _groups_of(parameters: Any) -> ParameterGroups:
    names, leaves, _ = flatten(parameters)
    for name, leaf in zip(names, leaves, strict=True):
        kind = getattr(leaf, "dtype", None)
        if kind is None or not jnp.issubdtype(kind, jnp.floating):
            raise InvalidArgument(
                f"parameters must be arrays of floating-point numbers, got {kind or type(leaf).__name__} at {name}; "
                "leave out what is not trained"
            )
    if not leaves:
        raise InvalidArgument("parameters has no arrays; give the pytree of the trained parameters, or its shapes")
    return ParameterGroups(names, tuple(tuple(leaf.shape) for leaf in leaves))


def _without_device(value: Any) -> Any:
    """Return a JAX array as a numpy array, which fingerprints describe and processes share; other values unchanged."""
    return np.asarray(value) if isinstance(value, jax.Array) else value


def audit_jax(
    train: Train,
    records: Any,
    *,
    parameters: Any,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float | None = None,
    claim: Claim | None = None,
    design: Design | None = None,
    pilots: int = 2,
    name: str = "",
    **options: Any,
) -> AuditResult:
    """Audit a DP-SGD loop in JAX against what its accountant promises.

    The claim is what PLD accounting promises at ``delta`` for the noise multiplier, the sampling rate and the steps, unless
    ``claim`` is given. See :func:`jax_target` for the other arguments, and :func:`lidp.audit` for ``options``, such as ``trials``,
    ``seed``, ``workers`` and ``store``.

    Guarantee: that of :func:`lidp.audit`.
    """
    claim = AccountedSteps(noise_multiplier, sampling_rate, steps).choose(delta, claim)
    target = jax_target(
        train,
        records,
        parameters=parameters,
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        pilots=pilots,
        name=name,
    )
    return audit(target, claim=claim, design=design, **options)


def _note_fork() -> None:
    """Remember in a forked process whether its parent had used JAX."""
    global _forked_after_use
    bridge = sys.modules.get("jax._src.xla_bridge")
    _forked_after_use = _forked_after_use or bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)

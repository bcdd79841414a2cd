"""``Planting``: adds gradient canaries to a training loop in JAX, and adds up what its steps tell about them.

A planting is an immutable pytree, like the state of an optimizer: functions take one and return the next one. They run inside or
outside ``jit`` and ``scan``, without callbacks to Python. A function that was compiled for one run serves all runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lidp import checks
from lidp.arrays import Floats
from lidp.errors import AuditFailed
from lidp.integrations.coordinate_canaries import CanaryRows, ParameterGroups
from lidp.training.transcript import COLUMNS, STRETCHES, ClaimedSteps, Transcript

_WORDS = 2**32


class Canaries(NamedTuple):
    """The canaries of a run; each array has one item per canary.

    A canary changes one number: that at ``offset`` of the flattened array of parameters ``group``, by ``value`` times the clipping
    norm. ``number`` counts the inserted canaries.
    """

    group: jax.Array
    offset: jax.Array
    value: jax.Array
    inserted: jax.Array
    number: jax.Array


class Evidence(NamedTuple):
    """What the steps so far tell about each canary, in up to twice :data:`STRETCHES` stretches of equally many steps."""

    sums: jax.Array
    """An array (stretches, canaries, :data:`COLUMNS`)."""
    last: jax.Array
    """The noise along each canary in the last step, in units of the clipping norm."""
    steps: jax.Array
    steps_per_stretch: jax.Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["_canaries", "_key", "_evidence", "_before", "_clip_norm"],
    meta_fields=["groups", "claimed", "within_step"],
)
@dataclass(frozen=True)
class Planting:
    """Adds canaries to the sums of clipped gradients of one training run, and records what its steps release.

    At every step, a training loop passes the sums of clipped gradients to :meth:`add`, adds noise, and passes the noisy sums to
    :meth:`released`; :meth:`privatizer` does both. The last planting must be part of what ``train`` returns.

    Attributes:
        groups: the arrays of parameters.
        claimed: what the accountant was told of each step. Its clipping norm is 1: sums are divided by that of the loop.
        within_step: whether :meth:`add` was called last, and not :meth:`released`.
    """

    _canaries: Canaries
    _key: jax.Array
    _evidence: Evidence
    _before: jax.Array
    _clip_norm: jax.Array
    groups: ParameterGroups
    claimed: ClaimedSteps
    within_step: bool = False

    @classmethod
    def begin(cls, rows: CanaryRows, groups: ParameterGroups, claimed: ClaimedSteps, rng: np.random.Generator) -> Planting:
        """Return the planting of a run before its first step; ``rng`` seeds the sampling of canaries."""
        canaries, (group, offset) = len(rows.values), groups.locate(rows.coordinates)
        words = rng.integers(0, _WORDS, 2, dtype=np.uint32)
        return cls(
            Canaries(
                jnp.asarray(group, jnp.int32),
                jnp.asarray(offset, jnp.int32),
                jnp.asarray(rows.values, jnp.float32),
                jnp.asarray(rows.inserted),
                jnp.asarray(rows.numbers, jnp.uint32),
            ),
            jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32"),
            Evidence(
                jnp.zeros((2 * STRETCHES, canaries, len(COLUMNS)), jnp.float32),
                jnp.zeros(canaries, jnp.float32),
                jnp.asarray(0, jnp.int32),
                jnp.asarray(1, jnp.int32),
            ),
            jnp.zeros(canaries, jnp.float32),
            jnp.asarray(1, jnp.float32),
            groups,
            claimed,
        )

    def add(self, sums: Any, *, clip_norm: Any, rate: float | None = None) -> tuple[Any, Planting]:
        """Add the canaries sampled in this step to the sums of clipped gradients, before the noise.

        Args:
            sums: a pytree of the structure and shapes of the parameters.
            clip_norm: the length of a canary: the most that one record can add to ``sums``. For a function made by jax-privacy's
                ``clipped_grad``, this is its ``l2_norm_bound``, which also accounts for ``normalize_by``.
            rate: the probability with which the loop samples each record, if it is not the one that the accountant was told.

        Returns:
            The sums with canaries, and the planting to pass to :meth:`released`.

        Raises:
            AuditFailed: if canaries cannot be added. This happens in every run or in none, and so reveals nothing about the coins.
        """
        if self.within_step:
            raise AuditFailed(
                "planting.add was called twice in one step; call planting.released(noisy_sums) after the noise"
            )
        leaves, structure = self._leaves(sums, "the sums of clipped gradients")
        if not isinstance(clip_norm, jax.core.Tracer):
            clip_norm = checks.positive(clip_norm=clip_norm)
        sampled = self._canaries.inserted & self._sample(self.claimed.rate if rate is None else checks.share(rate=rate))
        changes = jnp.where(sampled, self._canaries.value, 0.0) * clip_norm
        added = [self._add_to(leaf, number, changes) for number, leaf in enumerate(leaves)]
        after = replace(
            self,
            _before=self._read(leaves),
            _clip_norm=jnp.asarray(clip_norm, jnp.float32),
            within_step=True,
        )
        return jax.tree.unflatten(structure, added), after

    def released(self, noisy_sums: Any) -> Planting:
        """Record the sums with noise that a step releases, in the units of the sums that were passed to :meth:`add`.

        Raises:
            AuditFailed: if :meth:`add` was not called in this step, or got arrays of other shapes.
        """
        if not self.within_step:
            raise AuditFailed("planting.released was called without planting.add; call add with the sums before the noise")
        leaves, _ = self._leaves(noisy_sums, "the noisy sums")
        residuals = (self._read(leaves) - self._before) / self._clip_norm
        evidence = _add_step(
            self._evidence, self._canaries.value * residuals, jnp.square(self._canaries.value), self.claimed
        )
        return replace(self, _evidence=evidence, within_step=False)

    def privatizer(self, noise: Any, *, clip_norm: Any, rate: float | None = None) -> Any:
        """Return an ``optax.GradientTransformation`` that adds canaries, then the noise of ``noise``, and records the result.

        ``noise`` is a transformation that adds noise to sums of clipped gradients, such as jax-privacy's ``gaussian_privatizer``.
        The state of the returned transformation is a :class:`PlantedState`. See :meth:`add` for the other arguments.
        """
        import optax

        def init(parameters: Any) -> PlantedState:
            return PlantedState(self, noise.init(parameters))

        def update(sums: Any, state: PlantedState, parameters: Any = None) -> tuple[Any, PlantedState]:
            sums, planting = state.planting.add(sums, clip_norm=clip_norm, rate=rate)
            noisy_sums, noise_state = noise.update(sums, state.noise_state, parameters)
            return noisy_sums, PlantedState(planting.released(noisy_sums), noise_state)

        return optax.GradientTransformation(init, update)

    @property
    def steps(self) -> int:
        """The number of steps so far; not for use inside ``jit``."""
        return int(self._evidence.steps)

    def follows(self, first: Planting) -> bool:
        """Return whether this is a later planting of the same run as ``first``."""
        return self.groups == first.groups and bool(
            jnp.all(jax.random.key_data(self._key) == jax.random.key_data(first._key))
        )

    def transcript(self, watched: int) -> Transcript:
        """Return the transcript of all steps so far about the first ``watched`` canaries."""
        steps, per_stretch = self.steps, int(self._evidence.steps_per_stretch)
        sums: Floats = np.asarray(self._evidence.sums, np.float64)[: -(-steps // per_stretch), :watched]
        groups = np.asarray(self._canaries.group, np.int64)[:watched]
        return Transcript(sums.transpose(1, 0, 2).copy(), steps, groups, self.groups.names)

    def _leaves(self, tree: Any, what: str) -> tuple[list[jax.Array], Any]:
        """Return the arrays of a pytree and its structure, after comparing it with the parameters."""
        names, leaves, structure = flatten(tree)
        self.groups.require(names, tuple(jnp.shape(leaf) for leaf in leaves), what)
        return [jnp.asarray(leaf) for leaf in leaves], structure

    def _sample(self, rate: float) -> jax.Array:
        """Return whether each canary is sampled in this step; the probability is ``rate``, or less by up to 2^-32."""
        if rate >= 1:
            return jnp.ones(self._canaries.number.shape, bool)
        step_key = jax.random.fold_in(self._key, self._evidence.steps)
        keys = jax.vmap(partial(jax.random.fold_in, step_key))(self._canaries.number)
        words = jax.vmap(partial(jax.random.bits, shape=(), dtype=jnp.uint32))(keys)
        sampled: jax.Array = words < jnp.uint32(int(rate * _WORDS))
        return sampled

    def _add_to(self, leaf: jax.Array, number: int, changes: jax.Array) -> jax.Array:
        """Add the canaries whose coordinates are in an array of parameters."""
        index = jnp.where(self._canaries.group == number, self._canaries.offset, leaf.size)  # outside: dropped
        return leaf.ravel().at[index].add(changes.astype(leaf.dtype), mode="drop").reshape(leaf.shape)

    def _read(self, leaves: list[jax.Array]) -> jax.Array:
        """Return the value at the coordinate of each canary."""
        values = jnp.zeros(self._canaries.offset.shape, jnp.float32)
        for number, leaf in enumerate(leaves):
            here = leaf.ravel().at[self._canaries.offset].get(mode="clip").astype(jnp.float32)
            values = jnp.where(self._canaries.group == number, here, values)
        return values


class PlantedState(NamedTuple):
    """The state of :meth:`Planting.privatizer`: the planting, and the state of the noise."""

    planting: Planting
    noise_state: Any


def flatten(tree: Any) -> tuple[tuple[str, ...], list[Any], Any]:
    """Return the names of the arrays of a pytree, such as "dense/bias", the arrays, and the structure."""
    with_paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = tuple("/".join(map(_name_of, path)) or "parameters" for path, _ in with_paths)
    return names, [leaf for _, leaf in with_paths], structure


def _name_of(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _add_step(evidence: Evidence, products: jax.Array, lengths: jax.Array, claimed: ClaimedSteps) -> Evidence:
    """Add one step, as :meth:`lidp.training.transcript.TranscriptRecorder.add` does; all canaries have length 1."""
    sums, per_stretch = jax.lax.cond(
        evidence.steps == len(evidence.sums) * evidence.steps_per_stretch,
        _merge_stretches,
        lambda *unchanged: unchanged,
        evidence.sums,
        evidence.steps_per_stretch,
    )
    log_ratios = _log_likelihood_ratio((products - 0.5 * lengths) / claimed.noise_multiplier**2, claimed.rate)
    columns = {
        "log_ratio": log_ratios,
        "product": products,
        "square": jnp.square(products),
        "length": lengths,
        "lagged": products * evidence.last,
        "count": jnp.ones_like(products),
    }
    row = jnp.stack([columns[name] for name in COLUMNS], axis=-1)
    sums = sums.at[evidence.steps // per_stretch].add(row)
    return Evidence(sums, products, evidence.steps + 1, per_stretch)


def _merge_stretches(sums: jax.Array, per_stretch: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Merge pairs of neighbouring stretches, and leave the second half empty."""
    merged = sums[0::2] + sums[1::2]
    return jnp.concatenate([merged, jnp.zeros_like(merged)]), 2 * per_stretch


def _log_likelihood_ratio(exponents: jax.Array, rate: float) -> jax.Array:
    """Return log(1 - rate + rate·e^exponent), without overflow."""
    if rate >= 1:
        return exponents
    above, below = jnp.maximum(exponents, 0.0), jnp.minimum(exponents, 0.0)
    return jnp.where(
        exponents > 0,
        above + jnp.log(rate + (1 - rate) * jnp.exp(-above)),
        jnp.log1p(rate * jnp.expm1(below)),
    )

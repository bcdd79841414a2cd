"""DP-SGD with jax-privacy on small data, for tests: as an optax chain, or with a step that is compiled once for all runs."""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer

from lidp import CoinFlip
from lidp.integrations.jax import audit_jax
from lidp.result import AuditInterrupted

RATE, STEPS, NOISE, BATCH, CAPACITY = 0.2, 20, 1.0, 20, 64
PARAMETERS = {"weights": np.zeros((8, 16), np.float32), "bias": np.zeros(16, np.float32)}
INTERRUPTED = 130  # exit code
ACCOUNTANT = {"parameters": PARAMETERS, "noise_multiplier": NOISE, "sampling_rate": RATE, "steps": STEPS}


def make_records():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((100, 8)).astype(np.float32)
    return features, np.concatenate([features, -features], axis=1)


def squared_error(parameters, features, labels):
    return jnp.mean((features @ parameters["weights"] + parameters["bias"] - labels) ** 2)


GRADIENT = clipped_grad(squared_error, l2_clip_norm=0.5, normalize_by=BATCH, batch_argnums=(1, 2))


def poisson_batches(key, records):
    """Yield Poisson samples in arrays of constant size, and which records are padding."""
    features, labels = records
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    for _ in range(STEPS):
        chosen = np.flatnonzero(rng.random(len(features)) < RATE)
        assert len(chosen) <= CAPACITY
        indices = np.zeros(CAPACITY, int)
        indices[: len(chosen)] = chosen
        yield features[indices], labels[indices], np.arange(CAPACITY) >= len(chosen)


def without_noise_at(noisy, sums, leaf):
    """Return noisy sums whose noise is missing in one array."""
    return noisy if leaf is None else noisy | {leaf: sums[leaf]}


@partial(jax.jit, static_argnames=("noise", "silent"))
def step(parameters, noise_state, planting, batch, noise, silent):
    features, labels, is_padding = batch
    sums = GRADIENT(parameters, features, labels, is_padding_example=is_padding)
    sums, planting = planting.add(sums, clip_norm=GRADIENT.l2_norm_bound)
    privatizer = gaussian_privatizer(stddev=noise * GRADIENT.sensitivity(), prng_key=0)  # its key is in the state
    noisy, noise_state = privatizer.update(sums, noise_state)
    noisy = without_noise_at(noisy, sums, silent)
    planting = planting.released(noisy)
    return jax.tree.map(lambda value, slope: value - 0.2 * slope, parameters, noisy), noise_state, planting


def train(records, planting, key, noise=NOISE, silent=None, same_noise=False):
    """Train with ``noise`` times the clipping norm, without noise in the array ``silent``; ``same_noise`` in every run."""
    batch_key, noise_key = jax.random.split(key)
    noise_key = jax.random.key(0) if same_noise else noise_key
    parameters = jax.tree.map(jnp.asarray, PARAMETERS)
    noise_state = gaussian_privatizer(stddev=noise, prng_key=noise_key).init(parameters)
    for batch in poisson_batches(batch_key, records):
        parameters, noise_state, planting = step(parameters, noise_state, planting, batch, noise, silent)
    return parameters, planting


def train_with_optax(records, planting, key, noise=NOISE):
    """Train as the documentation of jax-privacy does, with one wrapped line."""
    batch_key, noise_key = jax.random.split(key)
    privatizer = gaussian_privatizer(stddev=noise * GRADIENT.sensitivity(), prng_key=noise_key)
    privatizer = planting.privatizer(privatizer, clip_norm=GRADIENT.l2_norm_bound)
    optimizer = optax.chain(privatizer, optax.sgd(0.2))
    parameters = jax.tree.map(jnp.asarray, PARAMETERS)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state, features, labels, is_padding):
        sums = GRADIENT(parameters, features, labels, is_padding_example=is_padding)
        updates, state = optimizer.update(sums, state, parameters)
        return optax.apply_updates(parameters, updates), state

    for batch in poisson_batches(batch_key, records):
        parameters, state = step(parameters, state, *batch)
    return parameters, state


def interrupt_after(trials):
    """Return a watcher that interrupts an audit after some trials."""

    def watch(progress):
        if progress.done >= trials:
            raise KeyboardInterrupt

    return watch


if __name__ == "__main__":  # number of workers; store, or "none"; number of trials after which the audit is interrupted
    workers, store, trials = sys.argv[1:]
    try:
        audited = audit_jax(
            train, make_records(), **ACCOUNTANT, delta=1e-5, design=CoinFlip(8), stop_when="never", pilots=0, trials=8,
            workers=int(workers), store=None if store == "none" else store, watch=interrupt_after(int(trials)),
        )  # fmt: skip
    except AuditInterrupted:
        sys.exit(INTERRUPTED)
    scores, coins = audited.scores.flips()
    sys.stdout.write("".join(f"{score!r} {coin}\n" for score, coin in zip(scores.ravel(), coins.ravel(), strict=True)))

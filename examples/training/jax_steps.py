"""Audit all steps of a multi-layer perceptron in jax-privacy, with noise everywhere and with none in its first layer.

python examples/training/jax_steps.py
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer

from lidp.integrations.jax import audit_jax

NOISE, RATE, STEPS, BATCH, CAPACITY = 1.0, 0.1, 60, 40, 96


def init(key):
    first, second = jax.random.split(key)
    return {
        "hidden": {"weights": jax.random.normal(first, (20, 16)) / 20**0.5, "bias": jnp.zeros(16)},
        "output": {"weights": jax.random.normal(second, (16, 2)) / 16**0.5, "bias": jnp.zeros(2)},
    }


def cross_entropy(parameters, features, labels):
    hidden, output = parameters["hidden"], parameters["output"]
    logits = jax.nn.relu(features @ hidden["weights"] + hidden["bias"]) @ output["weights"] + output["bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


gradient = clipped_grad(cross_entropy, l2_clip_norm=1.0, batch_argnums=(1, 2))
noise = gaussian_privatizer(stddev=NOISE * gradient.sensitivity(), prng_key=0)  # every run starts it from another key


@partial(jax.jit, static_argnames="forget")
def step(parameters, noise_state, planting, features, labels, is_padding, forget):
    sums = gradient(parameters, features, labels, is_padding_example=is_padding)
    sums, planting = planting.add(sums, clip_norm=gradient.l2_norm_bound)
    noisy, noise_state = noise.update(sums, noise_state)
    if forget:
        noisy["hidden"] = sums["hidden"]
    planting = planting.released(noisy)
    return jax.tree.map(lambda value, slope: value - slope / BATCH, parameters, noisy), noise_state, planting


def train(records, planting, key, forget=False):
    features, labels = records
    start_key, batch_key, noise_key = jax.random.split(key, 3)
    parameters = init(start_key)
    noise_state = gaussian_privatizer(stddev=NOISE, prng_key=noise_key).init(parameters)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(batch_key)))
    for _ in range(STEPS):
        chosen = np.flatnonzero(rng.random(len(labels)) < RATE)  # Poisson sampling, padded to a constant size
        indices = np.pad(chosen, (0, CAPACITY - len(chosen)))
        batch = features[indices], labels[indices], np.arange(CAPACITY) >= len(chosen)
        parameters, noise_state, planting = step(parameters, noise_state, planting, *batch, forget)
    return parameters, planting


x = np.random.default_rng(0).standard_normal((400, 20)).astype(np.float32)
accountant = {"noise_multiplier": NOISE, "sampling_rate": RATE, "steps": STEPS, "delta": 1e-5}
shapes = jax.eval_shape(init, jax.eval_shape(jax.random.key, 0))
for forget in (False, True):
    name = "no noise in the hidden layer" if forget else "noise everywhere"
    loop = partial(train, forget=forget)
    print(audit_jax(loop, (x, (x[:, 0] > 0).astype(np.int64)), parameters=shapes, **accountant, trials=16, name=name))

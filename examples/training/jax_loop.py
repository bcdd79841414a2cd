"""Audit DP-SGD with jax-privacy, with and without clipping: python examples/training/jax_loop.py

The audit needs `train(records, seed)` and `loss(model, record)`. Canaries are records under a wrong label.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from jax_privacy import clipped_grad

import lidp
from lidp.integrations.record_sets import mislabelled_records
from lidp.integrations.trainers import trainer_target

RATE, STEPS, NOISE, BATCH, CAPACITY = 0.5, 10, 4.0, 100, 256


def cross_entropy(weights, features, label, weight=1.0):
    return -weight * jax.nn.log_softmax(features @ weights)[label]


@partial(jax.jit, static_argnames="clip")
def step(weights, features, labels, present, key, clip):
    gradient = clipped_grad(cross_entropy, l2_clip_norm=clip, batch_argnums=(1, 2, 3), keep_batch_dim=False)
    total = gradient(weights, features, labels, present)
    return weights - 0.5 * (total + NOISE * jax.random.normal(key, total.shape)) / BATCH


def train(records, seed, clip=1.0):
    features, labels = records
    rng = np.random.default_rng(seed)
    weights = jnp.zeros((features.shape[1], 2))
    for key in jax.random.split(jax.random.key(seed), STEPS):
        chosen = np.flatnonzero(rng.random(len(labels)) < RATE)[:CAPACITY]  # Poisson sampling, in arrays of constant size
        indices = np.zeros(CAPACITY, int)
        indices[: len(chosen)] = chosen
        present = (np.arange(CAPACITY) < len(chosen)).astype(np.float32)
        weights = step(weights, features[indices], labels[indices], present, key, clip)
    return np.asarray(weights)


def loss(weights, record):
    features, label = record
    logits = features @ weights
    return float(np.logaddexp.reduce(logits) - logits[label])


rng = np.random.default_rng(0)
x = (3 * rng.standard_normal((200, 40)) / np.sqrt(40)).astype(np.float32)
records = x, (x[:, 0] > 0).astype(np.int64)
accountant = PLDAccountant()
accountant.compose(dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(NOISE)), STEPS)
claim = lidp.Claim(accountant.get_epsilon(1e-5), 1e-5)
features, labels = mislabelled_records(records, 256)
for clip in (1.0, 1e6):
    target = trainer_target(
        partial(train, clip=clip), loss, records, (4 * features, labels), name=f"jax, clip norm {clip:g}"
    )
    print(lidp.audit(target, claim=claim, design=lidp.CoinFlip(16), trials=128))

"""Federated averaging in plain numpy, with options that make it wrong, and clients to train on."""

from __future__ import annotations

import numpy as np

FEATURES, CLASSES = 16, 4
SIZES = (FEATURES * CLASSES, CLASSES)
OUTLIER = 20.0


def make_clients(number, *, seed=0, scale=1.0, examples=10):
    """Return the data of some clients: features of this scale, labels by a common rule, or at random for outliers."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99).standard_normal((FEATURES, CLASSES))
    clients = []
    for _ in range(number):
        x = scale * (rng.standard_normal((examples, FEATURES)) + rng.standard_normal(FEATURES))
        labels = np.argmax(x @ truth, axis=1) if scale == 1.0 else np.full(examples, rng.integers(CLASSES))
        clients.append((x, labels))
    return clients


def probabilities(parameters, x):
    logits = x @ parameters[0] + parameters[1]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def loss(parameters, client):
    """Return the mean cross-entropy of a model on a client's data."""
    x, y = client
    return float(-np.log(np.maximum(probabilities(parameters, x)[np.arange(len(y)), y], 1e-30)).mean())


def local_update(parameters, client, steps=2):
    """Return how local training on a client's data changes the parameters."""
    x, y = client
    trained = [array.copy() for array in parameters]
    for _ in range(steps):
        errors = (probabilities(trained, x) - np.eye(CLASSES)[y]) / len(y)
        trained[0] -= 0.5 * x.T @ errors
        trained[1] -= 0.5 * errors.sum(axis=0)
    return [new - old for new, old in zip(trained, parameters, strict=True)]


class FederatedAveraging:
    """A function ``train(clients, planting)``: DP-FedAvg.

    The claim is about the noise multiplier ``stated``; each round adds ``noise``. ``clips`` is False for a server that forgets to
    clip after the first round.
    """

    def __init__(self, *, noise=1.0, stated=1.0, rate=0.5, rounds=5, clip_norm=1.0, divisor=20.0, clips=True):
        self.noise, self.stated, self.rate, self.rounds = noise, stated, rate, rounds
        self.clip_norm, self.divisor, self.clips = clip_norm, divisor, clips

    def __call__(self, clients, planting):
        parameters = [np.zeros((FEATURES, CLASSES)), np.zeros(CLASSES)]
        planting.watch(zip(("weights", "bias"), parameters, strict=True))
        for number in range(self.rounds):
            sums = [np.zeros_like(array) for array in parameters]
            for client in clients:
                if planting.rng.random() < self.rate:
                    update = local_update(parameters, client)
                    factor = self.clip_factor(update, number)
                    for total, part in zip(sums, update, strict=True):
                        total += factor * part
            planting.add(sums, clip_norm=self.clip_norm, rate=self.rate)
            for total in sums:
                total += self.noise * self.clip_norm * planting.rng.standard_normal(total.shape)
            planting.released(sums, clip_norm=self.clip_norm, noise_multiplier=self.stated, rate=self.rate)
            parameters = [array + total / self.divisor for array, total in zip(parameters, sums, strict=True)]
        return parameters

    def clip_factor(self, update, number):
        norm = np.sqrt(sum(float((part**2).sum()) for part in update))
        return min(1.0, self.clip_norm / max(norm, 1e-12)) if self.clips or number == 0 else 1.0

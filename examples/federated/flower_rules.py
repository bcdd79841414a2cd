"""Audit the rules by which Flower samples, weighs and averages clients: python examples/federated/flower_rules.py

Plain numpy. `FedAvg` in `DifferentialPrivacyServerSideFixedClipping` samples a fixed number of clients, and weighs their clipped
updates by their numbers of examples. An accountant of Poisson sampling covers neither. A canary is a client with data of its own.
"""

from functools import partial

import numpy as np

from lidp import CoinFlip
from lidp.integrations.federated import audit_federated

NOISE, CLIP, ROUNDS, SAMPLED, CLIENTS, SIZE = 4.0, 1.0, 10, 2, 4, 8


def train(clients, planting, *, poisson, weighted):
    """Return a model that every client draws towards its own target; a client is (target, number of examples)."""
    model, rng = np.zeros(SIZE), planting.rng
    for _ in range(ROUNDS):
        if poisson:
            chosen = [client for client in clients if rng.random() < SAMPLED / CLIENTS]
        else:
            chosen = [clients[number] for number in rng.choice(len(clients), SAMPLED, replace=False)]
        everyone = sum(examples for _, examples in chosen)
        step = np.zeros(SIZE)
        for target, examples in chosen:
            update = target - model
            update = update * min(1.0, CLIP / np.linalg.norm(update))
            step += update * (examples / everyone if weighted else 1 / SAMPLED)
        model = model + step + NOISE * CLIP / SAMPLED * rng.standard_normal(SIZE)
    return model


def loss(model, client):
    """Return how little a model has moved towards the target of a client."""
    return -float(model @ client[0]) / np.linalg.norm(client[0])


def main():
    """Audit four combinations of rules and clients."""
    direction = np.eye(SIZE)[0] * 1e4
    ordinary = [(target, 10) for target in 1e4 * np.random.default_rng(0).standard_normal((CLIENTS, SIZE))]
    opposite = [(-direction, 10)] * CLIENTS
    poisson = {"poisson": True, "weighted": False}
    fixed = {"poisson": False, "weighted": False}
    for name, rules, clients, examples in (
        ("Poisson sampling, opposite clients", poisson, opposite, 10),
        ("fixed number, ordinary clients", fixed, ordinary, 10),
        ("fixed number, opposite clients", fixed, opposite, 10),
        ("weights by examples, ordinary clients", fixed | {"weighted": True}, ordinary, 1000),
    ):
        result = audit_federated(
            partial(train, **rules),
            clients,
            noise_multiplier=NOISE,
            sampling_rate=SAMPLED / CLIENTS,
            rounds=ROUNDS,
            delta=1e-5,
            canaries=[(direction, examples)] * CLIENTS,
            loss=loss,
            design=CoinFlip(1),
            trials=3000,
            name=name,
        )
        print(f"{name}: {result.verdict} after {result.bound.trials} runs")


if __name__ == "__main__":
    main()

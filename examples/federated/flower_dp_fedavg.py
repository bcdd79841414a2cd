"""Audit DP-FedAvg on Flower's simulation, with its noise and with half of it: python examples/federated/flower_dp_fedavg.py

Needs `pip install lidp[federated]`. Everything runs on this machine. Give noise multipliers as arguments to audit others. The
server's strategy samples clients by Poisson sampling, clips their updates, adds them up, and adds noise. The audit adds whole
clients to the sums before the noise (`planting.add`), and reads what every round releases (`planting.released`).
"""

import logging
import os
import sys
import time
from functools import partial

import numpy as np

os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import Strategy
from flwr.simulation import run_simulation

from lidp.integrations.federated import audit_federated

FEATURES, CLASSES = 50, 4
NOISE, RATE, ROUNDS, CLIP = 1.0, 0.5, 5, 1.0
EXPECTED_CLIENTS = 4.0  # fixed, whichever canaries are in
BACKEND = {
    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    "init_args": {"num_cpus": 1, "_node_ip_address": "127.0.0.1", "log_to_driver": False},
}
logging.getLogger("flwr").setLevel(logging.CRITICAL)


def local_update(weights, client):
    """Return the weights of a softmax regression after two local gradient steps on one client's data."""
    x, y = client
    for _ in range(2):
        logits = x @ weights
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        weights = weights - 0.5 * x.T @ (shares - np.eye(CLASSES)[y]) / len(y)
    return weights


def make_client_app(clients):
    """Return the app that trains on the data of the client on whose node it runs."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        trained = local_update(weights, clients[context.node_config["partition-id"]])
        return Message(RecordDict({"arrays": ArrayRecord([trained])}), reply_to=message)

    return app


class PrivateAveraging(Strategy):
    """DP-FedAvg as its accountant assumes it: Poisson sampling, one clipping norm per client, and a fixed divisor."""

    def __init__(self, planting, noise):
        self.planting, self.noise, self.weights = planting, noise, np.zeros((FEATURES, CLASSES))
        planting.watch([("weights", self.weights)])

    def configure_train(self, server_round, arrays, config, grid):
        sampled = [node for node in sorted(grid.get_node_ids()) if self.planting.rng.random() < RATE]
        content = RecordDict({"arrays": ArrayRecord([self.weights])})
        return [Message(content, dst_node_id=node, message_type="train") for node in sampled]

    def aggregate_train(self, server_round, replies):
        total = np.zeros_like(self.weights)
        for reply in replies:
            if reply.has_error():
                raise RuntimeError(f"a client failed: {reply.error.reason}")
            (trained,) = reply.content["arrays"].to_numpy_ndarrays()
            update = trained - self.weights
            total += update * min(1.0, CLIP / max(np.linalg.norm(update), 1e-12))
        self.planting.add([total], clip_norm=CLIP, rate=RATE)
        total += self.noise * CLIP * self.planting.rng.standard_normal(total.shape)
        self.planting.released([total], clip_norm=CLIP, noise_multiplier=NOISE, rate=RATE)
        self.weights = self.weights + total / EXPECTED_CLIENTS
        return ArrayRecord([self.weights]), MetricRecord()

    def configure_evaluate(self, server_round, arrays, config, grid):
        return []

    def aggregate_evaluate(self, server_round, replies):
        return None

    def summary(self):
        pass


def train(clients, planting, *, grid, noise):
    """Train one model with the clients of a running simulation."""
    strategy = PrivateAveraging(planting, noise)
    strategy.start(grid, ArrayRecord([strategy.weights]), num_rounds=ROUNDS)
    return strategy.weights


def make_clients(number=8, examples=30):
    """Return the data of some clients, each with a distribution of its own."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((FEATURES, CLASSES))
    clients = []
    for _ in range(number):
        x = rng.standard_normal((examples, FEATURES)) + 0.5 * rng.standard_normal(FEATURES)
        clients.append((x, np.argmax(x @ truth, axis=1)))
    return clients


def simulate(noises):
    """Audit trainings with some amounts of noise, all in one simulation: canaries are updates, so clients stay the same."""
    clients, server = make_clients(), ServerApp()

    @server.main()
    def audit_all(grid, context):
        while len(list(grid.get_node_ids())) < len(clients):  # Flower starts this while nodes still register
            time.sleep(0.05)
        for noise in noises:
            result = audit_federated(
                partial(train, grid=grid, noise=noise),
                clients,
                noise_multiplier=NOISE,
                sampling_rate=RATE,
                rounds=ROUNDS,
                delta=1e-5,
                trials=8,
                name=f"Flower with noise {noise:g}",
            )
            print(result)

    run_simulation(server, make_client_app(clients), num_supernodes=len(clients), backend_config=BACKEND)


if __name__ == "__main__":
    simulate([float(argument) for argument in sys.argv[1:]] or [NOISE, NOISE / 2])

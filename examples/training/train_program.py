"""Train on --data and write the loss of every canary to --out: a program for lidp audit-program.

lidp audit-program "python examples/training/train_program.py --data {data} --out {out} --seed {seed}" \
        --data data.npz --epsilon 2 --delta 1e-5 --canaries 16 --trials 200 --store program.db --workers 2
"""

import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--noise", type=float, default=4.0)
arguments = parser.parse_args()

data = np.load(arguments.data)
x, y = data["x"], data["y"]
rng = np.random.default_rng(arguments.seed)
weights = np.zeros((x.shape[1], 10))


def log_probabilities(features):
    return features @ weights - np.logaddexp.reduce(features @ weights, axis=1, keepdims=True)


# Each step clips the gradients of all records to norm 1, sums them and adds noise. An average would reveal the number of records.
for _ in range(10):
    errors = np.exp(log_probabilities(x)) - np.eye(10)[y]
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(x, axis=1)
    clipped = errors / np.maximum(norms, 1.0)[:, None]
    weights -= 0.002 * (x.T @ clipped + arguments.noise * rng.standard_normal(weights.shape))
np.save(arguments.out, -log_probabilities(data["canary_x"])[np.arange(len(data["canary_y"])), data["canary_y"]])

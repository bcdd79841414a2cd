"""A program to be audited from outside: it trains on what is in --data and writes a loss for every canary to --out.

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
given = parser.parse_args()

data = np.load(given.data)
x, y = data["x"], data["y"]
rng = np.random.default_rng(given.seed)
weights = np.zeros((x.shape[1], 10))


def logits_of(features):
    return features @ weights - np.logaddexp.reduce(features @ weights, axis=1, keepdims=True)


for _ in range(
    10
):  # ten steps on all records: gradients clipped to 1, summed up (not averaged: that would tell n), noise added
    errors = np.exp(logits_of(x)) - np.eye(10)[y]
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(x, axis=1)
    clipped = errors / np.maximum(norms, 1.0)[:, None]
    weights -= 0.002 * (x.T @ clipped + given.noise * rng.standard_normal(weights.shape))
np.save(given.out, -logits_of(data["canary_x"])[np.arange(len(data["canary_y"])), data["canary_y"]])

"""Audit diffprivlib's logistic regression, with the right and with a mistyped ε: python examples/training/any_trainer.py

The audit needs a function that trains on records with a seed, and a loss.
"""

import warnings
from functools import partial

import numpy as np
from diffprivlib.models import LogisticRegression

import lidp
from lidp.integrations.trainers import trainer_target


def train(records, seed, epsilon):
    features, labels = records
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(features, labels)


def loss(model, record):
    features, label = record
    return -float(model.decision_function(features[None])[0]) * (2 * label - 1)


rng = np.random.default_rng(0)
x = rng.standard_normal((60, 5))
x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
records = x, (x[:, 0] > 0).astype(int)
pool = rng.standard_normal((200, 5))
pool /= np.linalg.norm(pool, axis=1, keepdims=True)
pool = pool, (pool[:, 0] <= 0).astype(int)  # the largest norm allowed, and the wrong label
for epsilon in (1.0, 100.0):
    target = trainer_target(
        partial(train, epsilon=epsilon), loss, records, pool, name=f"logistic regression, ε = {epsilon:g}"
    )
    print(lidp.audit(target, claim=lidp.Claim(1.0), trials=1000, design=lidp.CoinFlip(2), workers=2))

"""Audit a noisy mean that divides by the true number of records: python examples/audit_numpy_mean.py"""

import numpy as np

import lidp


def mean(data, rng, epsilon=1.0):
    return np.mean(data) + rng.laplace(0, 2 / (len(data) * epsilon))


print(lidp.audit_pair(mean, [0.0], [0.0, 1.0], claim=lidp.Claim(epsilon=1.0)))

"""Small mechanisms for tests, some of them ill-behaved."""

import numpy as np


class Laplace:
    """A count with Laplace noise, one run at a time or many."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, dataset, rng):
        return dataset + rng.laplace(0, self.scale)

    def many(self, dataset, size, rng):
        return dataset + rng.laplace(0, self.scale, size)


def one_by_one(scale):
    return lambda dataset, rng: dataset + rng.laplace(0, scale)


def randomized_response(epsilon, wrap=lambda bit: bit):
    keep = np.exp(epsilon) / (1 + np.exp(epsilon))

    def mechanism(dataset, rng):
        return wrap(bool(dataset) == (rng.random() < keep))

    return mechanism

"""Load data sets for training: Fashion-MNIST, CIFAR-10, purchases of several kinds, and any ``.npz`` file."""

from lidp.data.cifar10 import load_cifar10, load_cifar10_features
from lidp.data.complete_journey import load_complete_journey
from lidp.data.dataset import Dataset
from lidp.data.fashion_mnist import load_fashion_mnist
from lidp.data.npz import load_npz
from lidp.data.purchases import load_purchases, synthetic_purchases

__all__ = [
    "Dataset",
    "load_cifar10",
    "load_cifar10_features",
    "load_complete_journey",
    "load_fashion_mnist",
    "load_npz",
    "load_purchases",
    "synthetic_purchases",
]

"""Load data sets for training: Fashion-MNIST, Purchase-100, any ``.npz`` file, and synthetic purchases without a file."""

from lidp.data.dataset import Dataset
from lidp.data.fashion_mnist import load_fashion_mnist
from lidp.data.npz import load_npz
from lidp.data.purchases import load_purchases, synthetic_purchases

__all__ = ["Dataset", "load_fashion_mnist", "load_npz", "load_purchases", "synthetic_purchases"]

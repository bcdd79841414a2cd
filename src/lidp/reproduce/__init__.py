"""Reproducing the paper's figures and statements: ``lidp reproduce``."""

from lidp.reproduce.catalogue import EXPERIMENTS
from lidp.reproduce.runner import Progress, Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Progress", "Reproduction", "reproduce"]

"""Reproduce the figures and statements of the paper: ``lidp reproduce``."""

from lidp.reproduce.catalogue import EXPERIMENTS
from lidp.reproduce.experiment import Progress
from lidp.reproduce.runner import Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Progress", "Reproduction", "reproduce"]

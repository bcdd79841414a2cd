"""Train many small models with DP-SGD fast, to audit it."""

from lidp.training.accounting import Accountant, Calibration, calibrate, epsilon_of_noise
from lidp.training.model import Network
from lidp.training.presets import PRESETS, Preset, find_preset
from lidp.training.records import Kind, TrainingSet
from lidp.training.targets import Canary, Fault, Scoring, Training, TrainingTarget, training_target
from lidp.training.trainer import DPSGD, Sampling

__all__ = [
    "DPSGD",
    "PRESETS",
    "Accountant",
    "Calibration",
    "Canary",
    "Fault",
    "Kind",
    "Network",
    "Preset",
    "Sampling",
    "Scoring",
    "Training",
    "TrainingSet",
    "TrainingTarget",
    "calibrate",
    "epsilon_of_noise",
    "find_preset",
    "training_target",
]

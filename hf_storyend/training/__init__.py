"""Training through Accelerate: data, model, optimiser, evaluation and checkpoints of a run."""

from .data import TrainingData, build_model, load_training_data
from .interruption import TrainingInterrupted
from .non_finite import NonFiniteLoss
from .options import TrainingOptions, parse_options
from .program import run_as_program
from .run import TrainingRun, train

__all__ = [
    "NonFiniteLoss",
    "TrainingData",
    "TrainingInterrupted",
    "TrainingOptions",
    "TrainingRun",
    "build_model",
    "load_training_data",
    "parse_options",
    "run_as_program",
    "train",
]

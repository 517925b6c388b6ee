"""Training through Accelerate: data, model, optimiser, evaluation and checkpoints of a run."""

from .data import TrainingData, build_model, load_training_data
from .interruption import NonFiniteLoss, TrainingInterrupted, run_as_program
from .options import TrainingOptions, parse_options
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

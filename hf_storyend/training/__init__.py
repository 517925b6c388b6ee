"""
Training through Accelerate: `train(options)`, or `TrainingRun` for a loop of one's own.

Runs resume bit-exactly from their checkpoints; `examples/train.py` shows the loop.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .data import TrainingData as TrainingData
    from .data import load_training_data as load_training_data
    from .initial_model import build_model as build_model
    from .option_parsing import parse_options as parse_options
    from .option_parsing import read_options as read_options
    from .options import TrainingOptions as TrainingOptions
    from .run import TrainingRun as TrainingRun
    from .run import train as train
    from .stopping import NonFiniteLoss as NonFiniteLoss
    from .stopping import TrainingInterrupted as TrainingInterrupted
    from .stopping import run_as_program as run_as_program

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "NonFiniteLoss": ".stopping",
        "TrainingData": ".data",
        "TrainingInterrupted": ".stopping",
        "TrainingOptions": ".options",
        "TrainingRun": ".run",
        "build_model": ".initial_model",
        "load_training_data": ".data",
        "parse_options": ".option_parsing",
        "read_options": ".option_parsing",
        "run_as_program": ".stopping",
        "train": ".run",
    },
)

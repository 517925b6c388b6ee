"""Processes of a launch: one Accelerator for all of them, and a refusal where fewer run than were asked for."""

from __future__ import annotations

import os
from typing import Any

import torch
from accelerate import Accelerator

# Where torchrun and the implementations of MPI say how many processes they have started.
_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_WHAT_TO_DO = (
    "On CPUs, start several with `torchrun --nproc_per_node N ...` in place of `accelerate launch --cpu "
    "--num_processes N ...`, or let Accelerate use MPI: `accelerate launch --cpu --num_processes N --mpirun_hostfile "
    "FILE ...`. For one process, say `--num_processes 1 --num_machines 1`."
)


def launched_processes() -> int:
    """Return how many processes the launcher says that it has started; 1 without a launcher."""
    return max(int(os.environ.get(name) or 1) for name in _SIZES)


def start_accelerator(**settings: Any) -> Accelerator:
    """
    Return an Accelerator of all processes that were launched.

    Args:
        settings: Arguments of `Accelerator`.

    Raises:
        ValueError: If the launch asked for several processes and this one is alone.
    """
    _refuse_lone_process()
    # Without a GPU, Accelerate detects several processes only with `cpu=True`.
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(), **settings)
    if accelerator.num_processes != launched_processes():
        raise ValueError(
            f"{launched_processes()} processes were launched, but Accelerate sees {accelerator.num_processes}. "
            f"{_WHAT_TO_DO}"
        )
    return accelerator


def _refuse_lone_process() -> None:
    """Refuse a launch by `accelerate launch` that asked for several processes and started one."""
    by_accelerate = "ACCELERATE_MIXED_PRECISION" in os.environ
    # It names the address where processes meet only if there are to be several, and leaves starting them to MPI.
    if by_accelerate and "MASTER_ADDR" in os.environ and not any(os.environ.get(name) for name in _SIZES):
        raise ValueError(
            "`accelerate launch` was asked for several processes or machines, but has started only this process, which "
            f"would train or evaluate alone. {_WHAT_TO_DO}"
        )

"""
Processes of a launch: one Accelerator for all of them, and a refusal where fewer run than were asked for.

Torch and Accelerate are imported where they are needed: a command without a launcher does not wait for them here.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from accelerate import Accelerator

Item = TypeVar("Item")
Result = TypeVar("Result")
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
    import torch
    from accelerate import Accelerator

    _refuse_lone_process()
    # Without a GPU, Accelerate detects several processes only with `cpu=True`.
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(), **settings)
    if accelerator.num_processes != launched_processes():
        raise ValueError(
            f"{launched_processes()} processes were launched, but Accelerate sees {accelerator.num_processes}. "
            f"{_WHAT_TO_DO}"
        )
    _refuse_ignored_engine(accelerator)
    return accelerator


def map_in_processes(function: Callable[[int, Item], Result], items: Sequence[Item]) -> list[Result] | None:
    """
    Call `function(index, item)` once for every item; processes of a launch share the items.

    Returns:
        The results in the order of the items; None in all processes but the main one, which reports them.
    """
    _refuse_lone_process()
    if launched_processes() == 1:
        return [function(index, item) for index, item in enumerate(items)]
    from accelerate.utils import gather_object

    accelerator = start_accelerator()
    indices = range(accelerator.process_index, len(items), accelerator.num_processes)
    results = dict(gather_object([(index, function(index, items[index])) for index in indices]))
    return [results[index] for index in range(len(items))] if accelerator.is_main_process else None


def from_main_process(function: Callable[[], Result]) -> Result:
    """Call `function` in the main process; return its result, or raise its error, in all processes of a launch."""
    _refuse_lone_process()
    if launched_processes() == 1:
        return function()
    from accelerate.utils import broadcast_object_list

    accelerator = start_accelerator()
    outcome: list[Any] = [None, None]
    if accelerator.is_main_process:
        try:
            outcome = [function(), None]
        except (ValueError, OSError) as error:
            outcome = [None, error]
    result, problem = broadcast_object_list(outcome)
    if problem is not None:
        raise problem
    return result


def leave_without_destructors(code: int) -> None:
    """
    End this process if it is one of several; do nothing otherwise.

    The destructors of a process group can abort a process on a busy machine while its threads still run, although all
    work is done.
    """
    if launched_processes() > 1:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _refuse_ignored_engine(accelerator: Accelerator) -> None:
    """Refuse FSDP and DeepSpeed where Accelerate would leave them out silently, as it does on CPUs."""
    for engine in ("FSDP", "DEEPSPEED"):
        is_asked = os.environ.get(f"ACCELERATE_USE_{engine}", "false").lower() == "true"
        if is_asked and accelerator.distributed_type.value != engine:
            raise ValueError(
                f"The launch asks for {engine}, which Accelerate does not use on this device "
                f"({accelerator.device.type}): launch without it, or on GPUs."
            )


def _refuse_lone_process() -> None:
    """Refuse a launch by `accelerate launch` that asked for several processes and started one."""
    by_accelerate = "ACCELERATE_MIXED_PRECISION" in os.environ
    # It names the address where processes meet only if there are to be several, and leaves starting them to MPI.
    if by_accelerate and "MASTER_ADDR" in os.environ and not any(os.environ.get(name) for name in _SIZES):
        raise ValueError(
            "`accelerate launch` was asked for several processes or machines, but has started only this process, "
            f"which would train or evaluate alone. {_WHAT_TO_DO}"
        )

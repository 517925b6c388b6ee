"""Rows of a story that begin alike, as beams and samples do until their first word is chosen: they are read once."""

from __future__ import annotations

import torch

from .story_reader import Reading, StoryEncoderOutput
from .tensor_values import has_values


def num_alike_rows(word_ids: torch.Tensor, step_mask: torch.Tensor | None, story: StoryEncoderOutput) -> int:
    """
    How many rows of word_ids [rows, T], standing one behind the other, read the same from the same state; 1 if unsure.
    """
    num_alike = word_ids.shape[0] // story.memory_mask.shape[0]
    if num_alike <= 1 or not has_values(word_ids):
        return 1
    read = (word_ids, step_mask, story.state_hidden, story.state_cell)
    is_alike = all(_is_alike(rows.flatten(1), num_alike) for rows in read if rows is not None)
    return num_alike if is_alike else 1


def _is_alike(rows: torch.Tensor, num_alike: int) -> bool:
    groups = rows.unflatten(0, (-1, num_alike))
    return bool((groups == groups[:, :1]).all())


def repeat_rows(rows: torch.Tensor, times: int) -> torch.Tensor:
    """Each row for as many that are alike."""
    return rows if times == 1 else rows.repeat_interleave(times, dim=0)


def repeat_reading(reading: Reading, times: int) -> Reading:
    """The same for all that a reading holds."""
    attention, attentional = reading.attention, reading.attentional
    return Reading(
        word_vectors=repeat_rows(reading.word_vectors, times),
        layer_states=[repeat_rows(states, times) for states in reading.layer_states],
        state=[(repeat_rows(hidden, times), repeat_rows(cell, times)) for hidden, cell in reading.state],
        attention=None if attention is None else repeat_rows(attention, times),
        attentional=None if attentional is None else repeat_rows(attentional, times),
    )

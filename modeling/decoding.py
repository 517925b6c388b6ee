# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Named decoding presets: models are saved with greedy decoding, which every decoding method can start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # What readers of endings preferred.
    "readers": {"num_beams": 8, "length_penalty": 0.0},
    # Greedy, as in the authors' code.
    "paper": {"num_beams": 1, "do_sample": False},
}
# With the preset `readers`, an ending ranker chooses among so many endings of a story.
NUM_CANDIDATES = 24
# Arguments that choose another decoding method than a preset's.
_METHODS = (
    "do_sample",
    "generation_config",
    "streamer",
    "custom_generate",
    "assistant_model",
    "prompt_lookup_num_tokens",
)


def preset_arguments(decoding: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Arguments of `generate()` by a preset. Those given win; if they choose a decoding method, they stand alone.

    Args:
        decoding (`str`): Name of the preset: `"readers"` or `"paper"`.
        given (`dict`): Arguments of the caller.
    """
    if decoding not in PRESETS:
        raise ValueError(f"`decoding` must be one of {', '.join(PRESETS)}; got {decoding!r}.")
    if any(given.get(name) for name in _METHODS):
        return dict(given)
    arguments = {**PRESETS[decoding], **given}
    # Without beams, transformers warns of it.
    if arguments["num_beams"] in (None, 1) and "length_penalty" not in given:
        arguments.pop("length_penalty", None)
    return arguments


def default_arguments(model: Any, given: Mapping[str, Any], decoding: str | None = None) -> dict[str, Any]:
    """
    The same; unless a preset is named, `"readers"`, or what the model's `generation_config` says about beams. A model
    with an ending ranker then writes candidates, unless the caller sets `num_beams`: these are arguments of
    `candidates.generate_endings`.
    """
    own = model.generation_config
    if decoding is None and (own.num_beams or own.do_sample):
        return dict(given)
    arguments = preset_arguments(decoding or "readers", given)
    is_preset = "num_beams" not in given and not any(given.get(name) for name in _METHODS)
    if decoding != "paper" and is_preset and model.ranker is not None:
        num_candidates = max(NUM_CANDIDATES, arguments.get("num_return_sequences") or 1)
        return {"num_candidates": num_candidates, **arguments}
    return arguments

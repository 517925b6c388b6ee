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
    # From all words: transformers would else keep the 50 likeliest.
    "sampling": {"num_beams": 1, "do_sample": True, "temperature": 0.7, "top_k": 0, "top_p": 1.0},
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
        decoding (`str`): Name of the preset: `"readers"`, `"paper"` or `"sampling"`.
        given (`dict`): Arguments of the caller.
    """
    if decoding not in PRESETS:
        raise ValueError(f"`decoding` must be one of {', '.join(PRESETS)}; got {decoding!r}.")
    # A preset that samples is not left for `do_sample=True`.
    others = [name for name in _METHODS if given.get(name) and not PRESETS[decoding].get(name)]
    if others:
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
    if decoding in (None, "readers") and is_preset and model.ranker is not None:
        num_candidates = max(NUM_CANDIDATES, arguments.get("num_return_sequences") or 1)
        return {"num_candidates": num_candidates, **arguments}
    return arguments


def describe_decoding(arguments: Mapping[str, Any]) -> str:
    """Arguments of `generate()` in words: `8 beams, length_penalty 0.0 (the preset readers)`."""
    given = {name: value for name, value in arguments.items() if value is not None}
    num_candidates = given.pop("num_candidates", None)
    same = [name for name, preset in PRESETS.items() if preset == given]
    num_beams = given.pop("num_beams", 1)
    method = "sampling" if given.pop("do_sample", False) else "greedy" if num_beams == 1 else f"{num_beams} beams"
    settings = [f"{name} {value}" for name, value in given.items()]
    settings += [] if num_candidates is None else [f"the best of {num_candidates} candidates by the ending ranker"]
    return ", ".join([method, *settings]) + (f" (the preset {same[0]})" if same else "")

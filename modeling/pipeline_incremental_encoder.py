# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipeline: stories in, endings out, each with its score and what its words came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import Pipeline

from .decoding import preset_arguments
from .endings import write_endings

TASK = "story-ending"
# Of saved models: the task that the Hub lists them under, so that the snippet it shows loads this pipeline. One only:
# `pipeline(model=...)` can't choose among several.
TASK_ON_HUB = "text-generation"


class StoryEndingPipeline(Pipeline):
    """
    Writes endings.

    ```python
    >>> write = pipeline(model="owner/name", trust_remote_code=True)
    >>> write("Ann put a cake in the oven. She fell asleep.")
    [{'ending': ..., 'score': ..., 'words': [...], 'evidence': [{'head': 'oven', 'relation': 'UsedFor', ...}]}]
    ```

    A story is a string or a tuple of sentences, or a dict with the `story`, a string or a list of sentences, and maybe
    `triples` that are known in this story only. A list is several stories, and gives a list of results; in it, a story
    may be a list of sentences, too. `batch_size=` so many are read at a time.

    A result is a list, with an ending for each of `num_return_sequences`:

    - `ending`: the sentence.
    - `score`: mean log probability of its words and its end under the model, 0 at most.
    - `words`: its words, each with its `probability` and the shares of it that came from the `vocabulary` (a number),
      from places of the `story` (`word`, `sentence` and `position` from 1, `share`) and from `triples` (`head`,
      `relation`, `tail`, the place of the story's `word` they belong to, `share`). Shares below 1 % are summed up as
      `other`; all of them sum to 1. Only models with a copy mechanism or a tail pointer have other sources than the
      vocabulary.
    - `evidence`: the triples that words of the ending came from, highest share first: as above, with the
      `ending_word`. Empty if knowledge played no part, and for models without a tail pointer.
    - `attention`, for models with knowledge attention: the triples that its words attended to most, with the `weight`:
      the share of the attention to knowledge, averaged over the words of the ending. It says where the model looked,
      not what the ending came from.
    - with `effects=True`: `effect` and `factor` of each of those triples, of each sentence (`sentence_effects`) and of
      all triples together (`knowledge_effect`): by how many nats, and how many times, the ending is less likely
      without it; None if it can't be written without it.

    Args:
        triples (`list`, *optional*): Knowledge for all stories of the call.
        triple_weight (`float`, *optional*): How strongly own triples suggest their tails: see the tokenizer.
        evidence_top_k (`int`, *optional*, defaults to 5): Most triples in `evidence`, and in `attention`.
        effects (`bool`, *optional*, defaults to `False`): Whether to measure effects, in one more pass an ending.
        decoding (`str`, *optional*):
            Preset of `decoding.py`: `"readers"`, 8 beams and no length penalty, unless the model's own
            `generation_config` has beams or samples; or `"paper"`, greedy.
        kwargs: Whatever `generate()` takes; it wins over the preset.
    """

    _load_tokenizer = True
    _load_processor = _load_image_processor = _load_feature_extractor = _load_video_processor = False

    def __call__(self, stories: Any, **kwargs: Any) -> Any:
        if isinstance(stories, list) and not stories:
            raise ValueError("`stories` is an empty list.")
        return super().__call__(stories, **kwargs)

    def _sanitize_parameters(
        self,
        triples: Sequence[Any] | None = None,
        triple_weight: float | None = None,
        evidence_top_k: int | None = None,
        effects: bool | None = None,
        decoding: str | None = None,
        **generate_kwargs: Any,
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if evidence_top_k is not None and (not isinstance(evidence_top_k, int) or evidence_top_k < 0):
            raise ValueError(f"`evidence_top_k` must be a whole number of at least 0; got {evidence_top_k!r}.")
        own = {
            "triple_weight": triple_weight,
            "evidence_top_k": evidence_top_k,
            "effects": effects,
            "decoding": decoding,
        }
        if decoding is not None:
            preset_arguments(decoding, {})
        given = {name: value for name, value in own.items() if value is not None}
        return ({} if triples is None else {"triples": triples}), {**generate_kwargs, **given}, {}

    def preprocess(self, inputs: Any, triples: Sequence[Any] = ()) -> dict[str, Any]:
        """The story, a string or a tuple, such that it can't be taken for several; and the triples known in it."""
        story, own = inputs, ()
        if isinstance(inputs, Mapping):
            unknown = sorted(map(str, inputs.keys() - {"story", "triples"}))
            if unknown or "story" not in inputs:
                raise ValueError(f"A story as a dict has `story` and maybe `triples`; got {sorted(map(str, inputs))}.")
            story, own = inputs["story"], inputs.get("triples") or ()
        if not isinstance(story, (str, list, tuple)):
            raise ValueError(f"A story must be a string or a list of sentences; got {type(story).__name__}.")
        return {"story": story if isinstance(story, str) else tuple(story), "triples": (*triples, *own)}

    @torch.no_grad()
    def _forward(
        self,
        input_tensors: dict[str, Any],
        triple_weight: float | None = None,
        evidence_top_k: int = 5,
        effects: bool = False,
        decoding: str | None = None,
        **generate_kwargs: Any,
    ) -> dict[str, Any]:
        stories, triples = input_tensors["story"], input_tensors["triples"]
        if not isinstance(stories, list):
            stories, triples = [stories], [triples]
        endings = write_endings(
            self.model,
            self.tokenizer,
            [story if isinstance(story, str) else list(story) for story in stories],
            triples=triples,
            triple_weight=triple_weight,
            evidence_top_k=evidence_top_k,
            effects=effects,
            decoding=decoding,
            device=self.device,
            **generate_kwargs,
        )
        return {"endings": endings}

    def postprocess(self, model_outputs: dict[str, Any]) -> list[dict[str, Any]]:
        endings = model_outputs["endings"]
        # A batch of one is not unpacked by the caller.
        return endings[0] if isinstance(endings[0], list) else endings


CUSTOM_PIPELINES = {
    TASK_ON_HUB: {
        "impl": f"{__name__.rsplit('.', 1)[-1]}.{StoryEndingPipeline.__name__}",
        "pt": ["AutoModelForSeq2SeqLM"],
        "type": "text",
    }
}

# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipeline: stories in, endings out, each with its score and what its words came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from transformers import Pipeline

from .decoding import default_arguments, preset_arguments
from .evidence import (
    collect_evidence,
    cut_small_shares,
    ending_words,
    from_vocabulary,
    removal_effects,
    triple_names,
    word_shares,
    written_words,
)
from .knowledge_table import Triple
from .losses import IGNORED
from .tail_pointer import WordSources

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
        as_lists = [story if isinstance(story, str) else list(story) for story in stories]
        own = [list(known) for known in triples] if any(triples) else None
        inputs = self.tokenizer(as_lists, triples=own, triple_weight=triple_weight, return_tensors="pt")
        inputs = inputs.to(self.device)
        # Whatever it is asked to return besides, only the sequences are looked at.
        arguments = default_arguments(self.model, generate_kwargs, decoding)
        generated = self.model.generate(**inputs, **{**arguments, "return_dict_in_generate": True}).sequences
        num_each = len(generated) // len(stories)
        inputs = {name: tensor.repeat_interleave(num_each, dim=0) for name, tensor in inputs.items()}
        contexts = [story for story in as_lists for _ in range(num_each)]
        endings = self._describe(inputs, generated, contexts, evidence_top_k, effects)
        return {"endings": [endings[row : row + num_each] for row in range(0, len(endings), num_each)]}

    def postprocess(self, model_outputs: dict[str, Any]) -> list[dict[str, Any]]:
        endings = model_outputs["endings"]
        # A batch of one is not unpacked by the caller.
        return endings[0] if isinstance(endings[0], list) else endings

    def _describe(
        self,
        inputs: dict[str, torch.Tensor],
        generated: torch.Tensor,
        contexts: list[Any],
        evidence_top_k: int,
        effects: bool,
    ) -> list[dict[str, Any]]:
        """Read the endings once more, all at once: that gives sources and scores however they were searched for."""
        targets = generated[:, 1:]
        columns = self.model.output_columns(targets)
        is_word = _until_end(targets, self.model.config.eos_token_id)
        encoded = self.model.encoder(**inputs, output_attentions=True)
        output = self.model(encoder_outputs=encoded, decoder_input_ids=generated[:, :-1], output_attentions=True)
        log_probabilities = output.logits.float().log_softmax(dim=-1).gather(2, columns.unsqueeze(2)).squeeze(2)
        # Never an empty ending: it has its end symbol at least.
        scores = (log_probabilities * is_word).sum(dim=1) / is_word.sum(dim=1)
        texts = self.tokenizer.batch_decode(generated, skip_special_tokens=True, context=contexts)
        sources = self._sources(inputs, encoded, targets.masked_fill(~is_word, IGNORED))
        weights = self._attention_weights(inputs, output, is_word)
        results = []
        for row, (text, score, context) in enumerate(zip(texts, scores.tolist(), contexts, strict=True)):
            story = _Story(self.tokenizer, context, {name: tensor[row : row + 1] for name, tensor in inputs.items()})
            ids = targets[row][is_word[row]].tolist()
            result = {"ending": text, "score": score}
            result["words"] = self._words(story, ids, log_probabilities[row].exp().tolist(), sources, row)
            result["evidence"] = collect_evidence(result["words"])[:evidence_top_k]
            if weights is not None:
                result["attention"] = story.most_attended(weights[row], evidence_top_k)
            results.append(self._with_effects(result, story, ids) if effects else result)
        return results

    def _sources(self, inputs: dict[str, torch.Tensor], encoded: Any, labels: torch.Tensor) -> WordSources | None:
        """Sources of the endings' words; None for a model that has no source but the vocabulary."""
        if not self.model.config.copy and not self.model.config.tail_pointer:
            return None
        sources = self.model.word_sources(labels=labels, encoder_outputs=encoded, **inputs)
        return WordSources(*(getattr(sources, field.name).cpu() for field in fields(sources)))

    def _words(
        self, story: _Story, ids: list[int], probabilities: list[float], sources: WordSources | None, row: int
    ) -> list[dict[str, Any]]:
        """The words of an ending without its end symbol, each with its probability and its sources."""
        ids = [word_id for word_id in ids if word_id != self.model.config.eos_token_id]
        described = []
        for step, word in enumerate(ending_words(self.tokenizer, story.words, story.copy_ids, ids)):
            shares = (
                from_vocabulary() if sources is None else word_shares(sources, row, step, story.words, story.names)
            )
            described.append({"word": word, "probability": probabilities[step], **cut_small_shares(shares)})
        return described

    def _attention_weights(
        self, inputs: dict[str, torch.Tensor], output: Any, is_word: torch.Tensor
    ) -> torch.Tensor | None:
        """[B, K, L, N]: attention of an ending's words to triples, on average; None without knowledge attention."""
        if output.knowledge_attentions is None:
            return None
        # What a word of the ending gave to a graph, on average, times what that graph has of each triple.
        graphs = (output.knowledge_attentions * is_word.unsqueeze(2)).sum(dim=1) / is_word.sum(dim=1, keepdim=True)
        at_words = _at_words(graphs, inputs["attention_mask"]).unsqueeze(3)
        return at_words * output.triple_attentions * inputs["triple_mask"]

    def _with_effects(self, result: dict[str, Any], story: _Story, ids: list[int]) -> dict[str, Any]:
        """The result with the effects of its triples, of all triples, and of each sentence."""
        items = [*result["evidence"], *result.get("attention", ())]
        masks = [story.places_of((item["head"], item["relation"], item["tail"])) for item in items]
        reads_triples = self.model.config.knowledge is not None or self.model.config.tail_pointer
        masks += [story.all_places()] if reads_triples and story.names else []
        # Nothing would be left of a single sentence.
        numbers = range(len(story.words)) if len(story.words) > 1 else ()
        of_triples, of_sentences = removal_effects(self.model, story.tensors, ids, masks, numbers)
        for item, effect in zip(items, of_triples, strict=False):
            item |= effect
        sentences = [{"sentence": number + 1, **effect} for number, effect in zip(numbers, of_sentences, strict=True)]
        knowledge_effect = of_triples[-1] if len(of_triples) > len(items) else None
        return {**result, "sentence_effects": sentences, "knowledge_effect": knowledge_effect}


class _Story:
    """A story's tensors, a batch of one, with names for its words and triples."""

    def __init__(self, tokenizer: Any, story: str | Sequence[str], tensors: dict[str, torch.Tensor]):
        self.tensors = tensors
        self.words = written_words(tokenizer, story)
        self.names = triple_names(
            tokenizer, self.words, tensors["triple_ids"][0].cpu(), tensors["triple_mask"][0].cpu()
        )

    @property
    def copy_ids(self) -> torch.Tensor:
        return self.tensors.get("copy_ids", self.tensors["input_ids"])[0]

    def places_of(self, triple: Triple) -> torch.Tensor:
        """[K, L, N], true where a triple stands."""
        found = torch.zeros(self.tensors["triple_mask"].shape[1:], dtype=torch.bool)
        for place, name in self.names.items():
            found[place] = name == triple
        return found

    def all_places(self) -> torch.Tensor:
        return torch.ones(self.tensors["triple_mask"].shape[1:], dtype=torch.bool)

    def most_attended(self, weights: torch.Tensor, top_k: int) -> list[dict[str, Any]]:
        """The heaviest triples by weights [K, L, N]; one that several words have counts once, with their sum."""
        weights = weights.cpu()
        found: dict[Triple, dict[str, Any]] = {}
        for place, name in self.names.items():
            head, relation, tail = name
            sentence, position, _ = place
            entry = {"head": head, "relation": relation, "tail": tail, "word": self.words[sentence][position]}
            found.setdefault(name, {**entry, "weight": 0.0})["weight"] += float(weights[place])
        attended = [item for item in found.values() if item["weight"] > 0]
        return sorted(attended, key=lambda item: -item["weight"])[:top_k]


def _until_end(targets: torch.Tensor, end_id: int) -> torch.Tensor:
    """[rows, T]: true up to the first end symbol, that included."""
    is_end = (targets == end_id).long()
    return is_end.cumsum(dim=1) - is_end == 0


def _at_words(graphs: torch.Tensor, word_mask: torch.Tensor) -> torch.Tensor:
    """
    Attention to graphs as [B, K, L]. Hierarchical readers give it for all words of a story, [B, K * L]; incremental
    ones for those of its last sentence, [B, L].
    """
    if graphs.shape[1] == word_mask.shape[1:].numel():
        return graphs.view(word_mask.shape)
    number = torch.arange(word_mask.shape[1], device=word_mask.device)
    last = (word_mask.any(dim=2) * number).argmax(dim=1)
    is_last = number == last.unsqueeze(1)
    return is_last.unsqueeze(2) * graphs.unsqueeze(1)


CUSTOM_PIPELINES = {
    TASK_ON_HUB: {
        "impl": f"{__name__.rsplit('.', 1)[-1]}.{StoryEndingPipeline.__name__}",
        "pt": ["AutoModelForSeq2SeqLM"],
        "type": "text",
    }
}

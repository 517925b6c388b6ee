# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Endings of stories, written by a model and described: score, what the words came from, effects, attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch

from .candidates import generate_endings
from .decoding import default_arguments
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

Story = str | Sequence[str]


@torch.no_grad()
def write_endings(
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
    *,
    triples: Sequence[Sequence[Triple]] | None = None,
    triple_weight: float | None = None,
    evidence_top_k: int = 5,
    effects: bool = False,
    decoding: str | None = None,
    device: torch.device | None = None,
    **generate_kwargs: Any,
) -> list[list[dict[str, Any]]]:
    """
    The endings of stories, a list for each story, as [`StoryEndingPipeline`] describes them.

    Args:
        model: A model in eval mode.
        tokenizer: Its tokenizer.
        stories: Each one string, or a list of sentences.
        triples: For each story, triples that are known in it only.
        triple_weight: How strongly these triples suggest their tails: see the tokenizer.
        evidence_top_k: Most triples in `evidence`, and in `attention`.
        effects: Whether to measure effects, in one more pass an ending.
        decoding: Preset of `decoding.py`.
        device: Where the stories go; the model's unless given.
        generate_kwargs: Arguments of `generate()`, which win over the preset.
    """
    inputs, generated, contexts, rank_scores = _generate(
        model, tokenizer, stories, triples, triple_weight, decoding, device, generate_kwargs
    )
    num_each = len(generated) // len(stories)
    repeated = {name: tensor.repeat_interleave(num_each, dim=0) for name, tensor in inputs.items()}
    endings = describe_endings(model, tokenizer, repeated, generated, contexts, evidence_top_k, effects)
    if rank_scores is not None:
        for ending, score in zip(endings, rank_scores.tolist(), strict=True):
            ending["rank_score"] = score
    return _by_story(endings, len(stories))


@torch.no_grad()
def write_texts(
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
    *,
    triples: Sequence[Sequence[Triple]] | None = None,
    triple_weight: float | None = None,
    decoding: str | None = None,
    **generate_kwargs: Any,
) -> list[list[str]]:
    """The endings of stories as text alone, a list for each story; arguments as for [`write_endings`]."""
    _, generated, contexts, _ = _generate(
        model, tokenizer, stories, triples, triple_weight, decoding, None, generate_kwargs
    )
    return _by_story(tokenizer.batch_decode(generated, skip_special_tokens=True, context=contexts), len(stories))


def _generate(
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
    triples: Sequence[Sequence[Triple]] | None,
    triple_weight: float | None,
    decoding: str | None,
    device: torch.device | None,
    generate_kwargs: Mapping[str, Any],
) -> tuple[Any, torch.Tensor, list[Story], torch.Tensor | None]:
    """The stories as tensors, the ids of all endings, the story of each, and what they were chosen by."""
    own = [list(known) for known in triples or ()] if any(triples or ()) else None
    inputs = tokenizer(list(stories), triples=own, triple_weight=triple_weight, return_tensors="pt")
    inputs = inputs.to(model.device if device is None else device)
    arguments = default_arguments(model, generate_kwargs, decoding)
    if arguments.get("stop_strings") or model.generation_config.stop_strings:
        arguments = {**arguments, "tokenizer": tokenizer}
    generated, rank_scores = generate_endings(model, inputs, arguments)
    return inputs, generated, [story for story in stories for _ in range(len(generated) // len(stories))], rank_scores


def _by_story(endings: list[Any], num_stories: int) -> list[list[Any]]:
    num_each = len(endings) // num_stories
    return [endings[row : row + num_each] for row in range(0, len(endings), num_each)]


def describe_endings(
    model: Any,
    tokenizer: Any,
    inputs: dict[str, torch.Tensor],
    generated: torch.Tensor,
    contexts: list[Any],
    evidence_top_k: int,
    effects: bool,
) -> list[dict[str, Any]]:
    """Read the endings once more, all at once: that gives sources and scores however they were searched for."""
    targets = generated[:, 1:]
    columns = model.output_columns(targets)
    is_word = _until_end(targets, model.config.eos_token_id)
    encoded = model.encoder(**inputs, output_attentions=True)
    output = model(encoder_outputs=encoded, decoder_input_ids=generated[:, :-1], output_attentions=True)
    log_probabilities = output.logits.float().log_softmax(dim=-1).gather(2, columns.unsqueeze(2)).squeeze(2)
    # Never an empty ending: it has its end symbol at least.
    scores = (log_probabilities * is_word).sum(dim=1) / is_word.sum(dim=1)
    texts = tokenizer.batch_decode(generated, skip_special_tokens=True, context=contexts)
    sources = _sources(model, inputs, encoded, targets.masked_fill(~is_word, IGNORED))
    weights = _attention_weights(model, inputs, output, is_word)
    results = []
    for row, (text, score, context) in enumerate(zip(texts, scores.tolist(), contexts, strict=True)):
        story = _Story(tokenizer, context, {name: tensor[row : row + 1] for name, tensor in inputs.items()})
        ids = targets[row][is_word[row]].tolist()
        result = {"ending": text, "score": score}
        result["words"] = _words(model, tokenizer, story, ids, log_probabilities[row].exp().tolist(), sources, row)
        result["evidence"] = collect_evidence(result["words"])[:evidence_top_k]
        if weights is not None:
            result["attention"] = story.most_attended(weights[row], evidence_top_k)
        results.append(_with_effects(model, result, story, ids) if effects else result)
    return results


def _sources(model: Any, inputs: dict[str, torch.Tensor], encoded: Any, labels: torch.Tensor) -> WordSources | None:
    """Sources of the endings' words; None for a model that has no source but the vocabulary."""
    if not model.config.copy and not model.config.tail_pointer:
        return None
    sources = model.word_sources(labels=labels, encoder_outputs=encoded, **inputs)
    return WordSources(*(getattr(sources, field.name).cpu() for field in fields(sources)))


def _words(
    model: Any,
    tokenizer: Any,
    story: _Story,
    ids: list[int],
    probabilities: list[float],
    sources: WordSources | None,
    row: int,
) -> list[dict[str, Any]]:
    """The words of an ending without its end symbol, each with its probability and its sources."""
    ids = [word_id for word_id in ids if word_id != model.config.eos_token_id]
    described = []
    for step, word in enumerate(ending_words(tokenizer, story.words, story.copy_ids, ids)):
        shares = from_vocabulary() if sources is None else word_shares(sources, row, step, story.words, story.names)
        described.append({"word": word, "probability": probabilities[step], **cut_small_shares(shares)})
    return described


def _attention_weights(
    model: Any, inputs: dict[str, torch.Tensor], output: Any, is_word: torch.Tensor
) -> torch.Tensor | None:
    """[B, K, L, N]: attention of an ending's words to triples, on average; None without knowledge attention."""
    if output.knowledge_attentions is None:
        return None
    # What a word of the ending gave to a graph, on average, times what that graph has of each triple.
    graphs = (output.knowledge_attentions * is_word.unsqueeze(2)).sum(dim=1) / is_word.sum(dim=1, keepdim=True)
    at_words = _at_words(graphs, inputs["attention_mask"]).unsqueeze(3)
    return at_words * output.triple_attentions * inputs["triple_mask"]


def _with_effects(model: Any, result: dict[str, Any], story: _Story, ids: list[int]) -> dict[str, Any]:
    """The result with the effects of its triples, of all triples, and of each sentence."""
    items = [*result["evidence"], *result.get("attention", ())]
    masks = [story.places_of((item["head"], item["relation"], item["tail"])) for item in items]
    reads_triples = model.config.knowledge is not None or model.config.tail_pointer
    masks += [story.all_places()] if reads_triples and story.names else []
    # Nothing would be left of a single sentence.
    numbers = range(len(story.words)) if len(story.words) > 1 else ()
    of_triples, of_sentences = removal_effects(model, story.tensors, ids, masks, numbers)
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

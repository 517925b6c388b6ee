# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Padding: ragged stories to rectangular tensors of K sentences, L words and N triples, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

IGNORED_LABEL = -100

StoryIds = list[list[int]]


@dataclass(frozen=True)
class SizeLimits:
    """How many words a sentence and how many sentences a story may have, and whether what is over is cut off."""

    truncates: bool
    max_words: int | None
    max_sentences: int | None

    def __post_init__(self) -> None:
        for name, value in (("max_length", self.max_words), ("max_sentences", self.max_sentences)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")

    def cut_words(self, words: list[Any]) -> list[Any]:
        """The first words, as many as allowed."""
        return words[: self.max_words] if self.truncates and self.max_words is not None else words

    def cut_story(self, sentences: list[list[Any]]) -> list[list[Any]]:
        """The last sentences, as many as allowed: the ending follows from what is nearest to it; each one cut."""
        if not self.truncates:
            return sentences
        kept = sentences if self.max_sentences is None else sentences[-self.max_sentences :]
        return [self.cut_words(words) for words in kept]

    def padded_size(self, num_sentences: int, num_words: int) -> tuple[int, int]:
        """The size that `padding="max_length"` asks for, given the size that is needed."""
        if self.max_words is None:
            raise ValueError("`padding='max_length'` needs `max_length`, the number of words of a sentence.")
        for name, limit, size in (
            ("max_length", self.max_words, num_words),
            ("max_sentences", self.max_sentences, num_sentences),
        ):
            if limit is not None and size > limit:
                raise ValueError(f"A story needs {size}, `{name}` is {limit}: pass `truncation=True` or raise it.")
        return self.max_sentences or num_sentences, self.max_words


def pad_stories(
    stories: list[StoryIds], pad_id: int, padding: bool | str, limits: SizeLimits
) -> tuple[torch.Tensor, torch.Tensor]:
    """Word ids and mask, both [B, K, L]."""
    if padding not in (True, False, "longest", "max_length", "do_not_pad"):
        raise ValueError(f"`padding` must be True, False, 'longest' or 'max_length'; got {padding!r}.")
    lengths = [len(sentence) for story in stories for sentence in story]
    num_sentences, num_words = max(map(len, stories)), max(lengths)
    if padding in (False, "do_not_pad") and (min(lengths), min(map(len, stories))) != (num_words, num_sentences):
        raise ValueError("Sentences of different lengths can't be one tensor: pass `padding=True`.")
    if padding == "max_length":
        num_sentences, num_words = limits.padded_size(num_sentences, num_words)
    rows = [
        sentence + [pad_id] * (num_words - len(sentence))
        for story in stories
        for sentence in (*story, *[[]] * (num_sentences - len(story)))
    ]
    counts = [count for story in stories for count in (*map(len, story), *[0] * (num_sentences - len(story)))]
    word_ids = torch.tensor(rows).view(len(stories), num_sentences, num_words)
    mask = torch.arange(num_words) < torch.tensor(counts).view(len(stories), num_sentences, 1)
    return word_ids, mask.long()


def pad_like(name: str, stories: list[StoryIds], word_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Other ids of the same words in the places of the word ids, [B, K, L]; what stands at padding stays."""
    words = [word for story in stories for sentence in story for word in sentence]
    if len(words) != int(mask.sum()):
        raise ValueError(
            f"`{name}` has {len(words)} words, `input_ids` {int(mask.sum())}: they must be the same ones."
        )
    return word_ids.masked_scatter(mask.bool(), torch.tensor(words))


def pad_labels(rows: list[list[int]]) -> torch.Tensor:
    """Endings [B, T], with what the loss ignores behind them."""
    width = max(map(len, rows))
    return torch.tensor([row + [IGNORED_LABEL] * (width - len(row)) for row in rows])


# What each triple of a word has, as it comes ragged: [story][sentence][word][triple].
TRIPLE_FEATURES = ("triple_ids", "triple_weights", "tail_form_ids")


def pad_triples(features: Mapping[str, list], mask: torch.Tensor, pad_id: int) -> dict[str, torch.Tensor]:
    """Ragged triples as tensors [B, K, L, N, ...], their mask [B, K, L, N] among them."""
    stories = features["triple_ids"]
    width = max((len(graph) for story in stories for graphs in story for graph in graphs), default=0)
    shape = (*mask.shape, max(width, 1))
    padded = {"triple_ids": torch.zeros(*shape, 3, dtype=torch.long), "triple_mask": torch.zeros(shape).long()}
    if "triple_weights" in features:
        padded["triple_weights"] = torch.zeros(shape)
    if "tail_form_ids" in features:
        forms = [
            len(row) for story in features["tail_form_ids"] for words in story for graph in words for row in graph
        ]
        padded["tail_form_ids"] = torch.full((*shape, max(forms, default=1)), pad_id)
    for name, tensor in padded.items():
        for story, sentences in enumerate(features[name if name != "triple_mask" else "triple_ids"]):
            for sentence, graphs in enumerate(sentences):
                for word, graph in enumerate(graphs):
                    if graph:
                        values = torch.ones(len(graph)) if name == "triple_mask" else torch.tensor(graph)
                        tensor[story, sentence, word, : len(graph)] = values
    return padded


def fit_triples(graphs: Mapping[str, torch.Tensor], width: int | None, pad_id: int) -> dict[str, torch.Tensor]:
    """
    Tensors [..., N, ...] of triples with room for `width` of them a word or, if that is None, for as many as some word
    of the batch has (at least 1).
    """
    mask = graphs["triple_mask"]
    # The last triple, not the number of them: there may be gaps.
    needed = int((mask * torch.arange(1, mask.shape[-1] + 1)).max()) if mask.numel() else 0
    missing = (width or max(1, needed)) - mask.shape[-1]
    fitted = {}
    for name, tensor in graphs.items():
        behind = (0, 0) * (tensor.ndim - mask.ndim)
        fitted[name] = functional.pad(tensor, (*behind, 0, missing), value=pad_id if name == "tail_form_ids" else 0)
    return fitted


def unpad_features(features: Mapping[str, Any]) -> dict[str, list]:
    """Ragged `input_ids`, `copy_ids`, `triple_ids` and `labels` of stories that may have been padded before."""
    stories = _as_lists(features["input_ids"])
    masks = _as_lists(features["attention_mask"]) if "attention_mask" in features else _all_real(stories)
    ragged: dict[str, list] = {"input_ids": [_real_sentences(*pair) for pair in zip(stories, masks, strict=True)]}
    if "copy_ids" in features:
        copies = _as_lists(features["copy_ids"])
        ragged["copy_ids"] = [_real_sentences(*pair) for pair in zip(copies, masks, strict=True)]
    for name in TRIPLE_FEATURES:
        if name in features:
            graphs = _as_lists(features[name])
            if "triple_mask" in features:
                graphs = _real_triples(graphs, _as_lists(features["triple_mask"]))
            ragged[name] = [_real_sentences(*pair) for pair in zip(graphs, masks, strict=True)]
    for name in ("lookup_ids", "held_out_rows", "held_out_tails", "held_out_weights"):
        if name in features:
            ragged[name] = _as_lists(features[name])
    if "labels" in features:
        rows = _as_lists(features["labels"])
        ragged["labels"] = [[label for label in row if label != IGNORED_LABEL] for row in rows]
    return ragged


def unpad_words(word_ids: torch.Tensor, mask: torch.Tensor) -> list[StoryIds]:
    """Words of each sentence, [story][sentence] -> ids; empty sentences stay, so that places do."""
    return [
        [_real(*sentence) for sentence in zip(*story, strict=True)]
        for story in zip(word_ids.tolist(), mask.tolist(), strict=True)
    ]


def dict_of_lists(features: Any) -> dict[str, Any]:
    """A list of dicts, as collators have it, turned into a dict of lists; a dict stays as it is."""
    if isinstance(features, Mapping):
        return dict(features)
    return {name: [feature[name] for feature in features] for name in features[0]}


def holds_stories(features: Mapping[str, Any]) -> bool:
    """Whether `input_ids` are nested as stories are: [story][sentence][word]."""
    rows: Any = features.get("input_ids")
    depth = 0
    # NumPy has arrays of objects for rows of different lengths.
    while (isinstance(rows, Sequence) or str(getattr(rows, "dtype", None)) == "object") and len(rows) > 0:
        rows, depth = rows[0], depth + 1
    return depth + getattr(rows, "ndim", 0) == 3


def holds_one_story(features: Mapping[str, Any]) -> bool:
    """Whether these are the features of a single story, [sentence][word], by those that flat sequences lack."""
    return not holds_stories(features) and not features.keys().isdisjoint({"copy_ids", "triple_ids"})


def as_text_rows(ids: Any) -> Any:
    """Ids to print as lists of numbers; the sentences of a story, [story][sentence][word], follow one another."""
    rows = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(rows, int):
        return rows
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in rows]
    return [_joined(row) if isinstance(row, list) else row for row in rows]


def _joined(sentences: list) -> list:
    if not sentences or not isinstance(sentences[0], list):
        return sentences
    return [word for sentence in sentences for word in sentence]


def _real(items: list, mask: list[int]) -> list:
    return [item for item, is_real in zip(items, mask, strict=True) if is_real]


def _real_sentences(sentences: list, masks: list) -> list:
    """The real words (or graphs) of each sentence; sentences without any are dropped."""
    return [_real(sentence, mask) for sentence, mask in zip(sentences, masks, strict=True) if any(mask)]


def _real_triples(graphs: list, masks: list) -> list:
    return [
        [[_real(*word) for word in zip(*pair, strict=True)] for pair in zip(story, mask, strict=True)]
        for story, mask in zip(graphs, masks, strict=True)
    ]


def _all_real(stories: list[StoryIds]) -> list:
    return [[[1] * len(sentence) for sentence in story] for story in stories]


def _as_lists(value: Any) -> Any:
    """Nested lists, also of rows that `datasets` formats as arrays, which are ragged lists of arrays."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (int, float)):
        return value
    rows = list(value)
    is_flat = not rows or isinstance(rows[0], (int, float))
    return rows if is_flat else [_as_lists(row) for row in rows]

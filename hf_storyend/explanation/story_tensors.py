"""A story as a model reads it, and its words as a person does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple
from ..modeling.sentences import split_sentences
from ..modeling.words import cased_forms, normalize_text, split_words


@dataclass(frozen=True)
class StoryTensors:
    """One story: its sentences, their words as written, and the tensors of a batch of one."""

    sentences: list[str]
    words: list[list[str]]
    tensors: dict[str, torch.Tensor]

    @property
    def copy_ids(self) -> torch.Tensor:
        """[K, L]: the ids under which words can be copied."""
        return self.tensors.get("copy_ids", self.tensors["input_ids"])[0]

    def find(self, word_id: int) -> tuple[int, int] | None:
        """Sentence and position, from 0, where a word first stands that can be copied under this id."""
        places = (self.copy_ids == word_id) & (self.tensors["attention_mask"][0] == 1)
        found = places.nonzero().tolist()
        return tuple(found[0]) if found else None


def sentences_of(story: str | Sequence[str]) -> list[str]:
    """The sentences of a story that is one string or a list of them."""
    if isinstance(story, str):
        return split_sentences(normalize_text(story))
    sentences = list(story) if isinstance(story, Sequence) else None
    if sentences is None or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError(f"`story` must be a string or a list of sentences; got {story!r}.")
    return sentences


def read_story(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    triples: Sequence[Triple] | None = None,
) -> StoryTensors:
    """A story, with triples of its own if there are any, on the device of the model."""
    if triples and model.config.knowledge is None:
        raise ValueError("`triples` were given, but this model reads no knowledge: its `config.knowledge` is None.")
    sentences = sentences_of(story)
    if not sentences:
        raise ValueError(f"`story` has no sentence: {story!r}.")
    batch = tokenizer([sentences], triples=triples, return_tensors="pt")
    tensors = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return StoryTensors(sentences, [_words_of(tokenizer, sentence) for sentence in sentences], tensors)


def _words_of(tokenizer: IncrementalEncoderTokenizer, sentence: str) -> list[str]:
    """Words in the case they are written in, unless that would make them other words."""
    text = normalize_text(sentence)
    as_read = split_words(text.lower() if tokenizer.do_lower_case else text, tokenizer.split_contractions)
    as_written = split_words(text, tokenizer.split_contractions)
    return as_written if len(as_written) == len(as_read) else as_read


def ending_words(tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, ids: Sequence[int]) -> list[str]:
    """The words of an ending one by one; those that the vocabulary lacks are the story's."""
    forms = {**tokenizer.word_forms, **cased_forms(story.words)} if tokenizer.do_lower_case else {}
    return [_ending_word(tokenizer, story, word_id, forms) for word_id in ids]


def _ending_word(
    tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, word_id: int, forms: dict[str, str]
) -> str:
    if word_id < len(tokenizer):
        word = tokenizer.convert_ids_to_tokens(word_id)
        return forms.get(word, word)
    place = story.find(word_id)
    assert place is not None, f"slot {word_id} is not in the story"
    return story.words[place[0]][place[1]]

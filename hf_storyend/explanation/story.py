"""Stories as tensors, and back: which word of the story or the ending stands at which place, with which triples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple, relation_name
from ..modeling.text_processing import normalize_text, split_sentences, split_words, truecase_forms


@dataclass(frozen=True)
class TokenizedStory:
    """
    One story of K sentences with at most L words each.

    Args:
        sentences: The sentences as text.
        words: The words of each sentence, as written.
        tensors: The model's inputs: a batch of one.
    """

    sentences: list[str]
    words: list[list[str]]
    tensors: dict[str, torch.Tensor]

    @property
    def copy_ids(self) -> torch.Tensor:
        """[K, L]: ids under which words can be copied; out-of-vocabulary words have ids beyond the vocabulary."""
        return self.tensors.get("copy_ids", self.tensors["input_ids"])[0]

    def first_position(self, word_id: int) -> tuple[int, int] | None:
        """Return sentence and position, from 0, of the first word with this copy id; None if there is none."""
        found = ((self.copy_ids == word_id) & (self.tensors["attention_mask"][0] == 1)).nonzero().tolist()
        return tuple(found[0]) if found else None


def tokenize_story(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    triples: Sequence[Triple] | None = None,
) -> TokenizedStory:
    """Tokenize a story, with triples for it alone if given, on the device of the model."""
    if triples and model.config.knowledge is None:
        raise ValueError("`triples` were given, but this model reads no knowledge: its `config.knowledge` is None.")
    sentences = split_story(story)
    if not sentences:
        raise ValueError(f"`story` has no sentence: {story!r}.")
    batch = tokenizer([sentences], triples=triples, return_tensors="pt")
    tensors = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return TokenizedStory(sentences, [_split_sentence(tokenizer, sentence) for sentence in sentences], tensors)


def check_story_size(story: str, max_sentences: int, max_sentence_length: int) -> None:
    """Refuse stories that would take all time and memory; the arguments are options of commands, which errors name."""
    sentences = split_story(story)
    if len(sentences) > max_sentences:
        raise ValueError(
            f"The story has {len(sentences):,} sentences, more than {max_sentences:,}: shorten it, or raise "
            "`max_sentences`."
        )
    for number, sentence in enumerate(sentences, start=1):
        if (num_words := len(split_words(sentence))) > max_sentence_length:
            raise ValueError(
                f"Sentence {number} of the story has {num_words:,} words, more than {max_sentence_length:,}: shorten "
                "it, or raise `max_sentence_length`."
            )


def split_story(story: str | Sequence[str]) -> list[str]:
    """Return the sentences of a story given as one string or as a list of sentences."""
    if isinstance(story, str):
        return split_sentences(normalize_text(story))
    sentences = list(story) if isinstance(story, Sequence) else None
    if sentences is None or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError(f"`story` must be a string or a list of sentences; got {story!r}.")
    return sentences


def _split_sentence(tokenizer: IncrementalEncoderTokenizer, sentence: str) -> list[str]:
    """Split a sentence as the tokenizer does, but keep the case where that splits into the same words."""
    text = normalize_text(sentence)
    as_read = split_words(text.lower() if tokenizer.do_lower_case else text, tokenizer.split_contractions)
    as_written = split_words(text, tokenizer.split_contractions)
    return as_written if len(as_written) == len(as_read) else as_read


def ending_words(tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory, ids: Sequence[int]) -> list[str]:
    """Return the truecased words of an ending; out-of-vocabulary words are copies from the story."""
    cased = {**tokenizer.word_forms, **truecase_forms(story.words)} if tokenizer.do_lower_case else {}
    return [_ending_word(tokenizer, story, word_id, cased) for word_id in ids]


def _ending_word(
    tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory, word_id: int, cased: dict[str, str]
) -> str:
    if word_id < len(tokenizer):
        word = tokenizer.convert_ids_to_tokens(word_id)
        return cased.get(word, word)
    place = story.first_position(word_id)
    assert place is not None, f"copied id {word_id} is not in the story"
    return story.words[place[0]][place[1]]


def find_triples(
    tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory, name: str, triples: Sequence[Triple]
) -> torch.Tensor:
    """
    Find triples in the graphs of a story's words.

    Args:
        tokenizer: The model's tokenizer.
        story: The story.
        name: What the error calls `triples`.
        triples: Triples to find; one that no word has is an error.

    Returns:
        Mask [1, K, L, N] of their places.
    """
    ids, mask = story.tensors["triple_ids"], story.tensors["triple_mask"] == 1
    found = torch.zeros_like(mask)
    for triple in triples:
        wanted = _triple_ids(tokenizer, name, triple)
        here = torch.zeros_like(mask) if wanted is None else (ids == ids.new_tensor(wanted)).all(dim=-1) & mask
        if not here.any():
            raise ValueError(
                f"`{name}`: no word of the story has the triple {tuple(triple)}. "
                f"Triples of the story: {_format_triples(tokenizer, ids[mask])}."
            )
        found |= here
    return found


def _triple_ids(tokenizer: IncrementalEncoderTokenizer, name: str, triple: Any) -> list[int] | None:
    """Return the ids of a triple; None if a word or the relation is not in the vocabulary."""
    if isinstance(triple, str) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
        raise ValueError(f"`{name}` has {triple!r}, not (head, relation, tail), three strings.")
    words = [part.lower() if tokenizer.do_lower_case else part for part in (triple[0], triple[2])]
    vocabulary, relation = tokenizer.get_vocab(), relation_name(triple[1])
    if relation not in tokenizer.knowledge.relation_ids or not all(word in vocabulary for word in words):
        return None
    return [vocabulary[words[0]], tokenizer.knowledge.relation_ids[relation], vocabulary[words[1]]]


def _format_triples(tokenizer: IncrementalEncoderTokenizer, ids: torch.Tensor, max_triples: int = 10) -> str:
    """List the distinct triples of [R, 3], the first few of many."""
    distinct = list(dict.fromkeys(map(tuple, ids.tolist())))
    shown = []
    for head, relation, tail in distinct[:max_triples]:
        words = tokenizer.convert_ids_to_tokens([head, tail])
        shown.append(f"({words[0]}, {tokenizer.knowledge.relations[relation]}, {words[1]})")
    if not shown:
        return "none"
    return ", ".join(shown) + (f" and {len(distinct) - max_triples} more" if len(distinct) > max_triples else "")

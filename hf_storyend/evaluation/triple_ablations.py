"""Other triples for the words of a split, and which words of its endings are tails. Batches make no difference."""

from __future__ import annotations

from itertools import pairwise

import torch
from datasets import Dataset

from ..data.batching import StoryCollator
from ..modeling import IncrementalEncoderTokenizer
from ..triple_tensors import (
    concatenate_packed,
    pack_triples,
    remove_triples,
    replace_tails,
    unpack_triples,
    words_with_triples,
)
from .distributed import Batch

# Stories whose triples are looked up at a time.
_CHUNK = 256


def are_tails(batch: Batch, vocab_size: int) -> torch.Tensor:
    """
    Return [B, T], true at labels that a triple of their story offers: its tail or, where the batch has
    `tail_form_ids`, a form of it.
    """
    labels = batch["labels"]
    if "triple_ids" not in batch:
        return torch.zeros_like(labels, dtype=torch.bool)
    ids = batch["tail_form_ids"] if "tail_form_ids" in batch else batch["triple_ids"][..., 2:]
    # The last column takes what is no word of the vocabulary.
    ids = ids.masked_fill(batch["triple_mask"].unsqueeze(-1) == 0, vocab_size).flatten(1)
    is_offered = ids.new_zeros(len(labels), vocab_size + 1, dtype=torch.bool).scatter(1, ids, True)
    is_offered[:, vocab_size] = False
    return is_offered.gather(1, labels.masked_fill((labels < 0) | (labels > vocab_size), vocab_size))


class NoTriples:
    """Removes all triples."""

    def __init__(self, tokenizer: IncrementalEncoderTokenizer):
        self._pad_token_id = tokenizer.pad_token_id

    def __call__(self, batch: Batch, rows: list[int]) -> Batch:
        every = torch.ones_like(batch["triple_mask"], dtype=torch.bool)
        return remove_triples(batch, every, self._pad_token_id)


class OtherTriples:
    """
    Gives every word that has triples those of another word somewhere in the split, each word's to one word. So the
    split has as many words with triples, and as many triples, as before.

    Args:
        tokenizer: Its knowledge table holds the triples.
        tokenised: The split from `tokenise_stories`.
        seed: Seed of the choice.
    """

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, tokenised: Dataset, seed: int = 0):
        collate = StoryCollator(tokenizer)
        self._pad_token_id = tokenizer.pad_token_id
        chunks, words, counts = [], [], [0]
        for rows in torch.arange(len(tokenised)).split(_CHUNK):
            batch = collate([tokenised[row] for row in rows.tolist()])
            has_triples = words_with_triples(batch)
            chunks.append(pack_triples(batch))
            words.append(batch["input_ids"][has_triples])
            counts += has_triples.flatten(1).sum(dim=1).tolist()
        self._packed = concatenate_packed(chunks, self._pad_token_id)
        self._starts = torch.tensor(counts).cumsum(dim=0).tolist()
        self._sources = exchange_words(torch.cat(words), seed)

    def __call__(self, batch: Batch, rows: list[int]) -> Batch:
        spans = list(pairwise(self._starts))
        sources = torch.cat([self._sources[slice(*spans[row])] for row in rows])
        device = batch["triple_ids"].device
        packed = {name: tensor[sources].to(device) for name, tensor in self._packed.items()}
        return unpack_triples(batch, packed, self._pad_token_id)


def exchange_words(words: torch.Tensor, seed: int) -> torch.Tensor:
    """
    Return a random permutation of the positions of words [W] that maps each to one with a different word. Where half
    of all are the same word, some of them keep it.
    """
    generator = torch.Generator().manual_seed(seed)
    if not len(words):
        return torch.zeros(0, dtype=torch.int64)
    _, groups, counts = words.unique(return_inverse=True, return_counts=True)
    shuffled = torch.randperm(len(words), generator=generator)
    rank = torch.randperm(len(counts), generator=generator)[groups[shuffled]]
    order = shuffled[rank.argsort(stable=True)]
    # Equal words are adjacent, so that a shift by the largest group leads out of every group.
    return torch.empty_like(order).index_copy(0, order, order.roll(-int(counts.max())))


class RandomTails:
    """
    Replaces every tail by a random word of the vocabulary, the same one throughout, and its forms by those of that
    word. Different tails stay different.

    Args:
        tokenizer: Its knowledge table knows the forms of words.
        vocab_size: Number of words of the model.
        seed: Seed of the choice.
    """

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, vocab_size: int, seed: int = 0):
        self._pad_token_id = tokenizer.pad_token_id
        vocabulary = tokenizer.get_vocab()
        words = torch.tensor(sorted(set(vocabulary.values()) - set(tokenizer.all_special_ids)))
        order = words[torch.randperm(len(words), generator=torch.Generator().manual_seed(seed))]
        self._new_tails = torch.arange(vocab_size).index_copy(0, order, order.roll(1))
        self._form_ids = _form_ids(tokenizer, vocabulary, vocab_size)

    def __call__(self, batch: Batch, rows: list[int]) -> Batch:
        device = batch["triple_ids"].device
        return replace_tails(batch, self._new_tails.to(device), self._form_ids.to(device), self._pad_token_id)


def _form_ids(tokenizer: IncrementalEncoderTokenizer, vocabulary: dict[str, int], vocab_size: int) -> torch.Tensor:
    """Return the forms of every word, [V, F]: those of the knowledge table, or the word alone."""
    forms = tokenizer.knowledge.forms
    ids = {vocabulary[word]: [vocabulary[form] for form in own] for word, own in forms.items() if word in vocabulary}
    table = torch.full((vocab_size, max(map(len, ids.values()), default=1)), tokenizer.pad_token_id)
    table[:, 0] = torch.arange(vocab_size)
    for word, own in ids.items():
        table[word, : len(own)] = torch.tensor(own)
    return table

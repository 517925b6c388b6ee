"""Reach: the share of the new words of endings that the triples of their stories offer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..modeling import IncrementalEncoderTokenizer
from ..modeling.text_processing import normalize_text, split_words
from .vocabulary_lemmas import VocabularyLemmas

_BATCH_SIZE = 256


def measure_reach(
    tokenizer: IncrementalEncoderTokenizer, contexts: Sequence[Sequence[str]], endings: Sequence[str]
) -> dict[str, Any]:
    """
    Return how many of the new words of endings are tails, and how many tails that takes.

    A new word is a content lemma of the ending that the context lacks; names and words out of the vocabulary count.
    It is reached if a word of the context has a triple whose tail has the same lemma.

    Args:
        tokenizer: Tokenizer with the knowledge table to measure.
        contexts, endings: Sentences of the stories, and their endings.

    Returns:
        `reach`, the share of new words that are reached, and `tails_per_story`, the mean number of distinct tails.
    """
    vocabulary = tokenizer.get_vocab()
    lemmas = VocabularyLemmas(vocabulary)
    words = {index: word for word, index in vocabulary.items()}
    num_new = num_reached = num_tails = 0
    for context, ending, tails in zip(contexts, endings, _tails(tokenizer, contexts), strict=True):
        known = _lemmas_of(context, tokenizer, lemmas)
        new = _lemmas_of([ending], tokenizer, lemmas) - known
        num_new += len(new)
        num_reached += len(new & {lemmas.lemma(words[tail].lower()) for tail in tails})
        num_tails += len(tails)
    return {
        "num_stories": len(contexts),
        "num_new_words": num_new,
        "reach": num_reached / max(num_new, 1),
        "tails_per_story": num_tails / max(len(contexts), 1),
    }


def _tails(tokenizer: IncrementalEncoderTokenizer, contexts: Sequence[Sequence[str]]) -> Iterator[set[int]]:
    """Iterate over the ids of the tails of each story, as the model gets them."""
    for start in range(0, len(contexts), _BATCH_SIZE):
        stories = [list(context) for context in contexts[start : start + _BATCH_SIZE]]
        batch = tokenizer(stories, return_tensors="pt")
        for triple_ids, mask in zip(batch["triple_ids"], batch["triple_mask"], strict=True):
            yield set(triple_ids[..., 2][mask == 1].tolist())


def _lemmas_of(sentences: Sequence[str], tokenizer: IncrementalEncoderTokenizer, lemmas: VocabularyLemmas) -> set[str]:
    words = (word for text in sentences for word in split_words(normalize_text(text), tokenizer.split_contractions))
    return {lemma for word in words if (lemma := lemmas.lemma(word.lower())) is not None}

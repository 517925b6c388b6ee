"""Tokenised stories as flat arrays of word ids, for counting, and columns with what was counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from datasets import Dataset

from ..knowledge.story_counts import StoryWords
from ..knowledge.story_lift import HeldOutWeights
from .vocabulary import Vocabulary

_MIN_NAME_SHARE = 0.25


def story_words(tokenised: Dataset) -> StoryWords:
    """Return the word ids of a tokenised split: of contexts, and of endings without the end-of-sequence token."""
    table = tokenised.select_columns(["input_ids", "labels"]).with_format("arrow")[:]
    contexts, endings = (table[name].combine_chunks() for name in ("input_ids", "labels"))
    sentences_of_story, words_of_sentence = _lengths(contexts), _lengths(contexts.flatten())
    stories = np.arange(len(tokenised))
    context_stories = np.repeat(np.repeat(stories, sentences_of_story), words_of_sentence)
    ending_stories = np.repeat(stories, _lengths(endings))
    context_words, ending_words = contexts.flatten().flatten().to_numpy(), endings.flatten().to_numpy()
    is_last = np.diff(ending_stories, append=len(tokenised)) > 0
    return StoryWords(len(tokenised), context_stories, context_words, ending_stories[~is_last], ending_words[~is_last])


def find_names(tokenised: Dataset, vocabulary: Vocabulary) -> list[str]:
    """
    Return the words that are names of persons: not usually in lower case, and often the first of a sentence.

    `Tom` opens every second sentence that it is in, `Christmas` one of fifty.
    """
    table = tokenised.select_columns(["input_ids"]).with_format("arrow")[:]
    sentences = table["input_ids"].combine_chunks().flatten()
    words = sentences.flatten().to_numpy()
    is_filled = _lengths(sentences) > 0
    first = words[sentences.offsets.to_numpy()[:-1][is_filled] - sentences.offsets[0].as_py()]
    size = 1 + max(vocabulary.ids.values())
    shares = np.bincount(first, minlength=size) / np.maximum(np.bincount(words, minlength=size), 1)
    return [word for word in vocabulary.word_forms if shares[vocabulary.ids[word]] >= _MIN_NAME_SHARE]


def add_held_out_columns(tokenised: Dataset, held_out: HeldOutWeights) -> Dataset:
    """Add the columns `held_out_rows`, `held_out_tails` and `held_out_weights`: a list for every story."""
    ends = np.searchsorted(held_out.stories, np.arange(len(tokenised) + 1)).astype(np.int32)
    columns = {
        "held_out_rows": held_out.words.astype(np.int32),
        "held_out_tails": held_out.tails.astype(np.int32),
        "held_out_weights": held_out.weights.astype(np.float32),
    }
    for name, values in columns.items():
        tokenised = tokenised.add_column(name, pyarrow.ListArray.from_arrays(ends, values))
    return tokenised


def add_empty_held_out_columns(tokenised: Dataset) -> Dataset:
    """Add the same columns to stories that triples were not counted over."""
    nothing = np.empty(0, dtype=np.int32)
    return add_held_out_columns(tokenised, HeldOutWeights(nothing, nothing, nothing, nothing))


def _lengths(lists: Any) -> np.ndarray:
    return np.diff(lists.offsets.to_numpy())

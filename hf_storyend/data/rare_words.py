"""Stories with rare words: those about something that few training stories are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from datasets import Dataset

from ..knowledge.lexicon import is_content_word
from ..modeling import IncrementalEncoderTokenizer
from ..modeling.text_processing import normalize_text, split_words


def have_rare_words(
    stories: Dataset,
    training_stories: Dataset,
    tokenizer: IncrementalEncoderTokenizer,
    *,
    num_sentences: int = 2,
    min_stories: int = 20,
) -> list[bool]:
    """
    Return for each story whether the end of its context has a content word that few training stories have.

    Args:
        stories: Stories with `context`.
        training_stories: Stories with `context` and `ending`.
        tokenizer: Splits sentences into words.
        num_sentences: Number of sentences at the end of the context.
        min_stories: A word that fewer training stories have, context or ending, is rare.
    """
    words = [_content_words(context[-num_sentences:], tokenizer) for context in stories["context"]]
    counts = _count_stories(set().union(*words), training_stories, tokenizer)
    return [any(counts[word] < min_stories for word in own) for own in words]


def _count_stories(words: set[str], stories: Dataset, tokenizer: IncrementalEncoderTokenizer) -> Counter[str]:
    """Count for each word the stories that have it."""
    counts: Counter[str] = Counter()
    for context, ending in zip(stories["context"], stories["ending"], strict=True):
        counts.update(words & _words([*context, ending], tokenizer))
    return counts


def _content_words(sentences: Sequence[str], tokenizer: IncrementalEncoderTokenizer) -> set[str]:
    return {word for word in _words(sentences, tokenizer) if is_content_word(word.lower())}


def _words(sentences: Sequence[str], tokenizer: IncrementalEncoderTokenizer) -> set[str]:
    fold = str.lower if tokenizer.do_lower_case else str
    return {
        word
        for sentence in sentences
        for word in split_words(fold(normalize_text(sentence)), tokenizer.split_contractions)
    }

"""What can be said of endings as text: the same for every system, whatever its own words are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a


def words_of(text: str) -> list[str]:
    """The words and marks that lower-case BLEU counts."""
    return _tokenizer()(text.lower().rstrip()).split()


def is_word(word: str) -> bool:
    """Whether it is not only a mark."""
    return any(letter.isalnum() for letter in word)


def rouge_l(words: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the longest common subsequence."""
    if not words or not reference:
        return 0.0
    # lengths[j] is that of the words read so far and the first j of the reference.
    lengths = [0] * (len(reference) + 1)
    for word in words:
        diagonal = 0
        for place, other in enumerate(reference, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if word == other else max(above, lengths[place - 1])
            diagonal = above
    return 2 * lengths[-1] / (len(words) + len(reference))


def has_repetition(words: Sequence[str]) -> bool:
    """Whether a pair of neighbouring words comes twice."""
    pairs = ngrams(words, 2)
    return len(set(pairs)) < len(pairs)


def is_copy(words: Sequence[str], sentences: Sequence[Sequence[str]]) -> bool:
    """Whether these words are those of one of the sentences, marks apart."""
    own = list(filter(is_word, words))
    return bool(own) and any(own == list(filter(is_word, sentence)) for sentence in sentences)


def distinct(endings: Sequence[Sequence[str]], order: int) -> float:
    """Different n-grams as a share of all n-grams of the endings; 0 where there is none."""
    grams = [gram for words in endings for gram in ngrams(words, order)]
    return len(set(grams)) / len(grams) if grams else 0.0


def ngrams(words: Sequence[str], order: int) -> list[tuple[str, ...]]:
    """All runs of so many words."""
    return [tuple(words[start : start + order]) for start in range(len(words) - order + 1)]


@cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()

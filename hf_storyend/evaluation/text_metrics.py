"""Metrics of endings as text: BLEU, ROUGE-L, distinct-n, repetition, copies, and the use of knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from sacrebleu.metrics import BLEU, BLEUScore
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from ..modeling import IncrementalEncoderTokenizer

_PERCENT = 100.0


@dataclass(frozen=True)
class Ratio:
    """
    A metric that is a ratio of sums over stories, kept as its summands, so that it can be resampled.

    Args:
        numerators: [stories].
        denominators: [stories].
        scale: Factor of the ratio: 100 for percentages.
        is_logarithm: Whether the metric is the exponential of the ratio, as perplexity is.
    """

    numerators: np.ndarray
    denominators: np.ndarray
    scale: float = 1.0
    is_logarithm: bool = False

    @property
    def value(self) -> float:
        """The metric over all stories."""
        return float(self.over(np.arange(len(self.numerators))))

    def over(self, rows: np.ndarray) -> np.ndarray:
        """Compute the metric over the stories in the last dimension of `rows`; 0 where the denominator is 0."""
        numerator, denominator = self.numerators[rows].sum(axis=-1), self.denominators[rows].sum(axis=-1)
        quotient = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
        return np.exp(quotient) if self.is_logarithm else self.scale * quotient


def mean_of(values: Sequence[float], scale: float = 1.0) -> Ratio:
    """Return the mean over stories as a ratio."""
    return Ratio(np.array(values, dtype=np.float64), np.ones(len(values)), scale)


def share_of(flags: Sequence[bool]) -> Ratio:
    """Return the percentage of stories for which a flag is set."""
    return mean_of(flags, _PERCENT)


_MAX_ORDER = 2
# name: (highest n-gram order, whether case is ignored)
BLEU_VARIANTS = {
    "bleu_1": (1, True),
    "bleu_2": (2, True),
    "bleu_1_cased": (1, False),
    "bleu_2_cased": (2, False),
}


def bleu_metric(max_order: int, lowercase: bool, references: Sequence[str] | None = None) -> BLEU:
    """Return sacrebleu's metric; with `references`, their n-grams are counted once."""
    return BLEU(
        lowercase=lowercase,
        tokenize="13a",
        max_ngram_order=max_order,
        # 13a ignores the spaces around punctuation in published texts: no warning is needed.
        force=True,
        references=None if references is None else [list(references)],
    )


class CorpusBleu:
    """BLEU-1 and BLEU-2 in percent, for any number of systems against the same references."""

    def __init__(self, references: Sequence[str]):
        self._metrics = {lowercase: bleu_metric(_MAX_ORDER, lowercase, references) for lowercase in (True, False)}

    @property
    def signatures(self) -> dict[str, str]:
        """sacrebleu's signature of each score; defined after the first call of `scores`."""
        return {name: str(self._metrics[lower].get_signature()) for name, (_, lower) in BLEU_VARIANTS.items()}

    def scores(self, endings: Sequence[str]) -> dict[str, float]:
        """Return the four scores of a system's endings."""
        counts = {lower: metric.corpus_score(list(endings), None) for lower, metric in self._metrics.items()}
        return {name: _bleu_of_order(counts[lower], order) for name, (order, lower) in BLEU_VARIANTS.items()}


def _bleu_of_order(counts: BLEUScore, order: int) -> float:
    """Compute BLEU of a lower order from the n-gram counts of a higher one."""
    return bleu_of_counts(counts.counts[:order], counts.totals[:order], counts.sys_len, counts.ref_len)


def bleu_of_counts(counts: Sequence[int], totals: Sequence[int], sys_len: int, ref_len: int) -> float:
    """Compute BLEU from the n-gram counts of each order up to its own."""
    return BLEU.compute_bleu(
        correct=list(counts),
        total=list(totals),
        sys_len=sys_len,
        ref_len=ref_len,
        smooth_method="exp",
        max_ngram_order=len(counts),
    ).score


def tokenize(text: str) -> list[str]:
    """Split text into the lower-cased tokens, punctuation included, that BLEU counts."""
    return _tokenizer()(text.lower().rstrip()).split()


@cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()


def is_word(token: str) -> bool:
    """True unless the token is punctuation."""
    return any(letter.isalnum() for letter in token)


def rouge_l(tokens: Sequence[str], reference: Sequence[str]) -> float:
    """Return the F1 score of the longest common subsequence."""
    if not tokens or not reference:
        return 0.0
    # lengths[j]: longest common subsequence of the tokens so far and the first j of the reference.
    lengths = [0] * (len(reference) + 1)
    for token in tokens:
        diagonal = 0
        for column, other in enumerate(reference, start=1):
            above = lengths[column]
            lengths[column] = diagonal + 1 if token == other else max(above, lengths[column - 1])
            diagonal = above
    return 2 * lengths[-1] / (len(tokens) + len(reference))


def has_repetition(tokens: Sequence[str]) -> bool:
    """True if a bigram occurs twice."""
    bigrams = ngrams(tokens, 2)
    return len(set(bigrams)) < len(bigrams)


def is_copy(tokens: Sequence[str], sentences: Sequence[Sequence[str]]) -> bool:
    """True if the words are those of one of the sentences; punctuation is ignored."""
    words = list(filter(is_word, tokens))
    return bool(words) and any(words == list(filter(is_word, sentence)) for sentence in sentences)


def distinct(endings: Sequence[Sequence[str]], order: int) -> float:
    """Return distinct-n: the number of different n-grams of all endings divided by the number of n-grams."""
    grams = [gram for tokens in endings for gram in ngrams(tokens, order)]
    return len(set(grams)) / len(grams) if grams else 0.0


def ngrams(tokens: Sequence[str], order: int) -> list[tuple[str, ...]]:
    """Return all n-grams of an order."""
    return [tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1)]


class KnowledgeUse:
    """
    How many words of an ending are tails of triples that the context retrieves.

    Triples are about lemmas: a word counts if it, or a lemma that it may be a form of, is a tail.

    Args:
        tokenizer: Its knowledge table holds the triples.
        contexts: Sentences of each story.
    """

    _CHUNK = 256

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, contexts: Sequence[Sequence[str]]):
        self._tokenizer = tokenizer
        self._contexts = contexts
        self._lemma_ids: dict[str, frozenset[int]] = {}

    def ratios(self, endings: Sequence[str]) -> dict[str, Ratio]:
        """
        Return the percentage of words that are a tail of a triple of the context: among all words, and among those
        that occur in the knowledge table. Empty if the table is.
        """
        if not self._concepts:
            return {}
        counts = [self._count(ending, tails) for ending, tails in zip(endings, self._tails, strict=True)]
        num_used, num_words, num_concepts = np.array(counts, dtype=np.float64).T
        return {
            "knowledge_use": Ratio(num_used, num_words, _PERCENT),
            "knowledge_use_content": Ratio(num_used, num_concepts, _PERCENT),
        }

    def _count(self, ending: str, tails: set[int]) -> tuple[int, int, int]:
        """Count words that are tails, all words, and words of the knowledge table."""
        words = [self._ids_of(word) for word in self._tokenizer.tokenize(ending) if is_word(word)]
        num_used = sum(not tails.isdisjoint(ids) for ids in words)
        return num_used, len(words), sum(not self._concepts.isdisjoint(ids) for ids in words)

    def _ids_of(self, word: str) -> frozenset[int]:
        """Return the ids of a word and of its possible lemmas."""
        if word not in self._lemma_ids:
            words = [word, *self._tokenizer.knowledge.concepts.get(word, ())]
            self._lemma_ids[word] = frozenset(self._tokenizer.convert_tokens_to_ids(words))
        return self._lemma_ids[word]

    @cached_property
    def _concepts(self) -> set[int]:
        """Ids of all heads and tails."""
        table = self._tokenizer.knowledge
        graphs = [*table.triples.values(), *table.phrases.values()]
        words = {word for triples in graphs for head, _, tail in triples for word in (head, tail)}
        return set(self._tokenizer.convert_tokens_to_ids(sorted(words)))

    @cached_property
    def _tails(self) -> list[set[int]]:
        """Ids of the tails that each context retrieves."""
        tails: list[set[int]] = []
        for start in range(0, len(self._contexts), self._CHUNK):
            contexts = [list(context) for context in self._contexts[start : start + self._CHUNK]]
            batch = self._tokenizer(contexts, return_tensors="pt")
            for triples, mask in zip(batch["triple_ids"], batch["triple_mask"], strict=True):
                tails.append(set(triples[..., 2][mask == 1].tolist()))
        return tails

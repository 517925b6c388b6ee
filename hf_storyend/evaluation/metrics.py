"""Systems that understand nothing: a score near theirs means nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from sacrebleu.metrics import BLEU, BLEUScore
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from ..modeling import IncrementalEncoderTokenizer


@dataclass(frozen=True)
class Ratio:
    """Per-story parts of a metric, from which it can be computed for any choice of the stories."""

    numerators: np.ndarray
    denominators: np.ndarray
    scale: float = 1.0
    is_logarithm: bool = False

    @property
    def value(self) -> float:
        """The metric over all stories."""
        return float(self.over(np.arange(len(self.numerators))))

    def over(self, rows: np.ndarray) -> np.ndarray:
        """The metric over the stories in the last dimension of `rows`; 0 where there is nothing to divide by."""
        above, below = self.numerators[rows].sum(axis=-1), self.denominators[rows].sum(axis=-1)
        quotient = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        return np.exp(quotient) if self.is_logarithm else self.scale * quotient


def mean_of(values: Sequence[float], scale: float = 1.0) -> Ratio:
    """The mean over stories."""
    return Ratio(np.array(values, dtype=np.float64), np.ones(len(values)), scale)


_MAX_ORDER = 2
# name: (highest order of n-grams, whether case is ignored)
BLEU_KINDS = {
    "bleu_1": (1, True),
    "bleu_2": (2, True),
    "bleu_1_cased": (1, False),
    "bleu_2_cased": (2, False),
}


def bleu_metric(max_order: int, lower_case: bool, references: Sequence[str] | None = None) -> BLEU:
    """sacrebleu's metric, with the n-grams of the references counted beforehand if they are given."""
    return BLEU(
        lowercase=lower_case,
        tokenize="13a",
        max_ngram_order=max_order,
        # Published texts have spaces around marks, which 13a makes no difference of: no warning is needed.
        force=True,
        references=None if references is None else [list(references)],
    )


class CorpusBleu:
    """BLEU-1 and BLEU-2 of many systems against the same references, in percent."""

    def __init__(self, references: Sequence[str]):
        self._metrics = {lower_case: bleu_metric(_MAX_ORDER, lower_case, references) for lower_case in (True, False)}

    @property
    def signatures(self) -> dict[str, str]:
        """What sacrebleu says of how each score is computed; there after the first score."""
        return {name: str(self._metrics[lower].get_signature()) for name, (_, lower) in BLEU_KINDS.items()}

    def scores(self, endings: Sequence[str]) -> dict[str, float]:
        """The four scores of a system's endings."""
        counts = {lower: metric.corpus_score(list(endings), None) for lower, metric in self._metrics.items()}
        return {name: _score(counts[lower], order) for name, (order, lower) in BLEU_KINDS.items()}


def _score(counts: BLEUScore, order: int) -> float:
    """The score of a lower order from the counts that a higher one was made of."""
    return BLEU.compute_bleu(
        correct=list(counts.counts[:order]),
        total=list(counts.totals[:order]),
        sys_len=counts.sys_len,
        ref_len=counts.ref_len,
        smooth_method="exp",
        max_ngram_order=order,
    ).score


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


_CHUNK = 256


class KnowledgeUse:
    """
    Compares endings with the triples of the words of their contexts. Triples are about lemmas: a word counts where it,
    or what it is a form of, is the tail of one.
    """

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, contexts: Sequence[Sequence[str]]):
        self._tokenizer = tokenizer
        self._contexts = contexts
        self._forms: dict[str, frozenset[int]] = {}

    def ratios(self, endings: Sequence[str]) -> dict[str, Ratio]:
        """
        Share of the endings' words (marks not counted) that are a tail of a triple of a word of the context, and the
        same among the words that the knowledge knows at all, its nouns and verbs. Nothing if there is no knowledge.
        """
        if not self._known:
            return {}
        counts = [self._count(ending, tails) for ending, tails in zip(endings, self._tails, strict=True)]
        num_used, num_words, num_known = np.array(counts, dtype=np.float64).T
        return {
            "knowledge_use": Ratio(num_used, num_words, scale=100),
            "knowledge_use_content": Ratio(num_used, num_known, scale=100),
        }

    def _count(self, ending: str, tails: set[int]) -> tuple[int, int, int]:
        words = [self._ids_of(word) for word in self._tokenizer.tokenize(ending) if is_word(word)]
        num_used = sum(not tails.isdisjoint(ids) for ids in words)
        return num_used, len(words), sum(not self._known.isdisjoint(ids) for ids in words)

    def _ids_of(self, word: str) -> frozenset[int]:
        """Ids of a word and of the lemmas that it may be a form of."""
        if word not in self._forms:
            words = [word, *self._tokenizer.knowledge.concepts.get(word, ())]
            self._forms[word] = frozenset(self._tokenizer.convert_tokens_to_ids(words))
        return self._forms[word]

    @cached_property
    def _known(self) -> set[int]:
        table = self._tokenizer.knowledge
        graphs = [*table.triples.values(), *table.phrases.values()]
        words = {word for triples in graphs for head, _, tail in triples for word in (head, tail)}
        return set(self._tokenizer.convert_tokens_to_ids(sorted(words)))

    @cached_property
    def _tails(self) -> list[set[int]]:
        tails: list[set[int]] = []
        for start in range(0, len(self._contexts), _CHUNK):
            contexts = [list(context) for context in self._contexts[start : start + _CHUNK]]
            batch = self._tokenizer(contexts, return_tensors="pt")
            for triples, mask in zip(batch["triple_ids"], batch["triple_mask"], strict=True):
                tails.append(set(triples[..., 2][mask == 1].tolist()))
        return tails


def best_constant_ending(endings: Iterable[str]) -> str:
    """
    The ending that, written for every story, has the highest BLEU-1 against all these endings. (The most frequent one
    is short, and the brevity penalty makes it a floor that is too easy to stand on.)
    """
    forms: dict[tuple[str, ...], str] = {}
    lengths: list[int] = []
    counts: Counter[tuple[str, int]] = Counter()
    for ending in endings:
        words = words_of(ending)
        forms.setdefault(tuple(words), ending)
        lengths.append(len(words))
        counts.update(_numbered(words))
    if not any(lengths):
        raise ValueError("There is no ending with a word to choose a constant one of.")
    mean_length = sum(lengths) / len(lengths)
    return forms[max(forms, key=lambda words: _score_baseline(words, counts, mean_length))]


def trivial_systems(contexts: Sequence[Sequence[str]], constant_ending: str) -> dict[str, list[str]]:
    """The endings of two trivial systems: always the same one, and the last sentence of the context again."""
    return {
        "constant_ending": [constant_ending] * len(contexts),
        "last_sentence": [context[-1] for context in contexts],
    }


def _numbered(words: Sequence[str]) -> list[tuple[str, int]]:
    """Words with how often they came before: what BLEU clips its counts by."""
    seen: Counter[str] = Counter()
    numbered = []
    for word in words:
        numbered.append((word, seen[word]))
        seen[word] += 1
    return numbered


def _score_baseline(words: Sequence[str], counts: Counter[tuple[str, int]], mean_length: float) -> float:
    """BLEU-1 but for a constant factor."""
    if not words:
        return 0.0
    precision = sum(counts[word] for word in _numbered(words)) / len(words)
    return precision * min(1.0, math.exp(1 - mean_length / len(words)))

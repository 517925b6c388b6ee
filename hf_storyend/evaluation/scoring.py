"""
Metrics of endings by any system: the part of an evaluation that needs no model.

Two trivial baselines and the references themselves are scored beside the system: a score near those of a constant
ending or of a copied sentence says nothing about understanding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset

from ..modeling import IncrementalEncoderTokenizer
from .likelihood import Likelihood, perplexity_ratio
from .loading import first_stories
from .options import EvaluationOptions
from .results import Evaluation
from .significance import bleu_intervals, compare_bleu, compare_ratios, ratio_intervals
from .text_metrics import (
    CorpusBleu,
    KnowledgeUse,
    Ratio,
    distinct,
    has_repetition,
    is_copy,
    mean_of,
    rouge_l,
    share_of,
    tokenize,
)


def score_endings(
    stories: Dataset,
    endings: Sequence[str],
    *,
    tokenizer: IncrementalEncoderTokenizer | None = None,
    training_endings: Sequence[str] | None = None,
    options: EvaluationOptions | None = None,
) -> Evaluation:
    """
    Score endings, one for each story, in the same order.

    Args:
        stories: A split with `context` and `ending`, the reference.
        endings: The endings as text; spaces around punctuation make no difference.
        tokenizer: Its knowledge table measures the use of knowledge; without it, that is not measured.
        training_endings: For the overlap with the training data; without them, that is not measured.
        options: Settings of the metrics; those about models are ignored.
    """
    options = options or EvaluationOptions()
    scorer = EndingScorer(first_stories(stories, options.max_stories), tokenizer, training_endings)
    ratios = scorer.ratios(endings)
    intervals = {}
    if options.bootstrap_samples:
        intervals = bleu_intervals(endings, scorer.references, options.bootstrap_samples)
        intervals |= ratio_intervals(ratios, options.bootstrap_samples, options.seed)
    constant = options.constant_ending or best_constant_ending(scorer.references)
    baselines = {**trivial_baselines(scorer.contexts, constant), "reference": scorer.references}
    return Evaluation(
        metrics=scorer.metrics(endings, ratios),
        endings=scorer.records(endings),
        intervals=intervals,
        trivial_baselines={name: scorer.metrics(written) for name, written in baselines.items()},
        signatures=scorer.bleu.signatures,
        constant_ending=constant,
        num_stories=len(scorer.references),
    )


class EndingScorer:
    """
    Scores the endings of any number of systems for the same stories.

    Args:
        stories: A split with `context` and `ending`, the reference.
        tokenizer: Its knowledge table measures the use of knowledge; without it, that is not measured.
        training_endings: For the overlap with the training data; without them, that is not measured.
    """

    def __init__(
        self,
        stories: Dataset,
        tokenizer: IncrementalEncoderTokenizer | None = None,
        training_endings: Sequence[str] | None = None,
    ):
        self.contexts = [list(context) for context in stories["context"]]
        self.references = list(stories["ending"])
        if not self.references:
            raise ValueError("There are no stories to score endings of.")
        self.bleu = CorpusBleu(self.references)
        self._reference_tokens = [tokenize(reference) for reference in self.references]
        self._context_tokens = [[tokenize(sentence) for sentence in context] for context in self.contexts]
        self._knowledge_use = KnowledgeUse(tokenizer, self.contexts) if tokenizer is not None else None
        self._training_endings = None
        if training_endings is not None:
            self._training_endings = {tuple(tokenize(ending)) for ending in training_endings}

    def metrics(self, endings: Sequence[str], ratios: Mapping[str, Ratio] | None = None) -> dict[str, float]:
        """Return all metrics of a system's endings; `ratios` are computed unless given."""
        self._check(endings)
        values = {name: ratio.value for name, ratio in (ratios or self.ratios(endings)).items()}
        tokens = [tokenize(ending) for ending in endings]
        return {
            **self.bleu.scores(endings),
            "rouge_l": values.pop("rouge_l"),
            "distinct_1": 100 * distinct(tokens, 1),
            "distinct_2": 100 * distinct(tokens, 2),
            **values,
        }

    def ratios(self, endings: Sequence[str]) -> dict[str, Ratio]:
        """Return the metrics that are ratios of sums over stories."""
        self._check(endings)
        tokens = [tokenize(ending) for ending in endings]
        rouge = [rouge_l(own, other) for own, other in zip(tokens, self._reference_tokens, strict=True)]
        copies = [is_copy(own, context) for own, context in zip(tokens, self._context_tokens, strict=True)]
        ratios = {
            "rouge_l": mean_of(rouge, scale=100),
            "repetition": share_of([has_repetition(own) for own in tokens]),
            "length": mean_of([len(own) for own in tokens]),
            "context_copies": share_of(copies),
        }
        if self._training_endings is not None:
            ratios["training_overlap"] = share_of([tuple(own) in self._training_endings for own in tokens])
        if self._knowledge_use is not None:
            ratios |= self._knowledge_use.ratios(endings)
        return ratios

    def records(self, endings: Sequence[str]) -> list[dict[str, Any]]:
        """Return a record for each story: `row`, `context`, `reference` and `ending`."""
        rows = zip(self.contexts, self.references, endings, strict=True)
        return [
            {"row": row, "context": context, "reference": reference, "ending": ending}
            for row, (context, reference, ending) in enumerate(rows)
        ]

    def _check(self, endings: Sequence[str]) -> None:
        if len(endings) != len(self.references):
            raise ValueError(
                f"There are {len(endings)} endings for {len(self.references)} stories: one for each is needed."
            )


def trivial_baselines(contexts: Sequence[Sequence[str]], constant_ending: str) -> dict[str, list[str]]:
    """Return the endings of two trivial systems: a constant ending, and a copy of the last sentence."""
    return {
        "constant_ending": [constant_ending] * len(contexts),
        "last_sentence": [context[-1] for context in contexts],
    }


def best_constant_ending(endings: Iterable[str]) -> str:
    """
    Return the ending that, as a constant, has the highest BLEU-1 against all these endings.

    The most frequent ending is a weaker baseline: it is short, so that the brevity penalty lowers its score.
    """
    candidates: dict[tuple[str, ...], str] = {}
    lengths: list[int] = []
    counts: Counter[tuple[str, int]] = Counter()
    for ending in endings:
        tokens = tokenize(ending)
        candidates.setdefault(tuple(tokens), ending)
        lengths.append(len(tokens))
        counts.update(_with_occurrence(tokens))
    if not any(lengths):
        raise ValueError("There is no ending with a word to choose a constant one of.")
    mean_length = sum(lengths) / len(lengths)
    return candidates[max(candidates, key=lambda tokens: _constant_bleu_1(tokens, counts, mean_length))]


def _constant_bleu_1(tokens: Sequence[str], counts: Counter[tuple[str, int]], mean_length: float) -> float:
    """Return BLEU-1 of a constant ending, up to a constant factor."""
    if not tokens:
        return 0.0
    precision = sum(counts[occurrence] for occurrence in _with_occurrence(tokens)) / len(tokens)
    return precision * min(1.0, math.exp(1 - mean_length / len(tokens)))


def _with_occurrence(tokens: Sequence[str]) -> list[tuple[str, int]]:
    """Number the occurrences of each token: counts of such pairs are clipped as BLEU clips them."""
    seen: Counter[str] = Counter()
    numbered = []
    for token in tokens:
        numbered.append((token, seen[token]))
        seen[token] += 1
    return numbered


def compare_with_baseline(
    evaluation: Evaluation,
    baseline: Sequence[Mapping[str, Any]],
    *,
    tokenizer: IncrementalEncoderTokenizer | None = None,
    num_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """
    Test the differences between a system and a baseline: two-sided permutation tests, paired by story.

    Distinct-n is not tested, as its n-grams belong to no single story. Perplexity is tested if the records of both
    systems have losses, and is comparable only if their vocabularies are equal.

    Args:
        evaluation: Evaluation of the system.
        baseline: Records of the baseline for the same stories, each with `ending`.
        tokenizer: Its knowledge table measures the use of knowledge.
        num_resamples: Permutations.
        seed: Seed of the permutations.

    Returns:
        For each metric the `baseline`'s value and the `p_value`, as in `Evaluation.significance`.
    """
    contexts, references = ([record[name] for record in evaluation.endings] for name in ("context", "reference"))
    scorer = EndingScorer(Dataset.from_dict({"context": contexts, "ending": references}), tokenizer)
    (own, own_ratios), (other, other_ratios) = (
        _endings_and_ratios(scorer, records) for records in (evaluation.endings, baseline)
    )
    return {
        **compare_bleu(own, other, scorer.references, num_resamples),
        **compare_ratios(own_ratios, other_ratios, num_resamples, seed),
    }


def _endings_and_ratios(
    scorer: EndingScorer, records: Sequence[Mapping[str, Any]]
) -> tuple[list[str], dict[str, Ratio]]:
    endings = [record["ending"] for record in records]
    ratios = scorer.ratios(endings)
    if all("loss" in record and "num_words" in record for record in records):
        likelihoods = [Likelihood(record["loss"], record["num_words"], []) for record in records]
        ratios = {"perplexity": perplexity_ratio(likelihoods), **ratios}
    return endings, ratios

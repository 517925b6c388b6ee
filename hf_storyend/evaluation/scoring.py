"""Endings of any system, compared with the references: the part of an evaluation that needs no model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..data.stories import load_stories
from ..data.story_files import canonical_split
from ..data.text_files import at_line, read_text
from ..modeling import IncrementalEncoderTokenizer
from .metrics import (
    CorpusBleu,
    KnowledgeUse,
    Ratio,
    best_constant_ending,
    distinct,
    has_repetition,
    is_copy,
    mean_of,
    rouge_l,
    trivial_systems,
    words_of,
)
from .options import EvaluationOptions
from .perplexity import Likelihood, perplexity_ratio
from .results import Evaluation
from .significance import bleu_intervals, compare_bleu, compare_ratios, ratio_intervals

_LINE_END = re.compile(r"\r\n|\r|\n")


def load_split(data: str, split: str = "test") -> tuple[Dataset, list[str] | None]:
    """
    The stories of a split and, where there is a split `train` beside it, the endings of that one. `data` is what
    `load_stories` takes, or a directory that `storyend prepare` wrote.
    """
    path = Path(data).expanduser()
    if not path.is_dir():
        return load_stories(data, split=split)[canonical_split(split)], None
    prepared = path / "stories"
    stories = load_stories(prepared if prepared.is_dir() else path)
    name = canonical_split(split)
    if name not in stories:
        raise ValueError(f"{data} has no split `{split}`; there is {', '.join(stories)}.")
    return stories[name], list(stories["train"]["ending"]) if "train" in stories else None


def first_stories(stories: Dataset, max_stories: int | None) -> Dataset:
    """The first so many rows, or all."""
    return stories if max_stories is None else stories.select(range(min(max_stories, len(stories))))


def read_endings(path: str | Path, stories: Dataset, max_stories: int | None = None) -> list[dict[str, Any]]:
    """
    The endings of a system for these stories, in their order: a text file with one a line, or JSON Lines with
    `ending` and, if it is there, `context`, which must then be that of the story. An empty ending is one, too. Where
    the stories are only the first `max_stories`, the file may have all.
    """
    lines = _LINE_END.split(read_text(path))
    if lines[-1] == "":
        lines.pop()
    is_json = Path(path).name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    records = [_record(path, number, line) for number, line in enumerate(lines, 1)] if is_json else _plain(lines)
    records = records[:max_stories]
    if len(records) != len(stories):
        raise ValueError(f"{path} has {len(records)} endings for {len(stories)} stories: one for each is needed.")
    for number, (record, context) in enumerate(zip(records, stories["context"], strict=True), start=1):
        with at_line(path, number):
            _check_context(record, context)
    return records


def _plain(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [{"ending": line.strip()} for line in lines]


def _record(path: str | Path, number: int, line: str) -> dict[str, Any]:
    with at_line(path, number):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"column {error.colno}: not JSON ({error.msg})") from error
        except RecursionError as error:
            raise ValueError(f"not JSON that anyone wrote ({error})") from error
        if not isinstance(record, dict) or not isinstance(record.get("ending"), str):
            raise ValueError("must be an object with `ending`, a string")
        return record


def _check_context(record: dict[str, Any], context: Sequence[str]) -> None:
    if "context" not in record:
        return
    own = record["context"]
    if not isinstance(own, list) or list(map(_comparable, own)) != list(map(_comparable, context)):
        raise ValueError(
            f"`context` is not that of this story, which starts {context[0]!r}: give endings of the same stories, "
            "in the same order"
        )


def _comparable(sentence: Any) -> list[str] | None:
    return words_of(sentence) if isinstance(sentence, str) else None


_DEFAULTS = EvaluationOptions()
_PERCENT = 100.0


class EndingScorer:
    """
    Scores endings of any systems for the same stories; what depends on the stories alone is made once.

    Args:
        stories: A split with `context` and `ending`, the reference.
        tokenizer: Whose knowledge the use of knowledge is measured with; without it that is left out.
        training_endings: Those that a system might recite; without them that is left out.
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
        self._reference_words = [words_of(reference) for reference in self.references]
        self._context_words = [[words_of(sentence) for sentence in context] for context in self.contexts]
        self._knowledge_use = KnowledgeUse(tokenizer, self.contexts) if tokenizer is not None else None
        self._recitable = None if training_endings is None else {tuple(words_of(text)) for text in training_endings}

    def ratios(self, endings: Sequence[str]) -> dict[str, Ratio]:
        """The metrics that are ratios of sums over stories."""
        self._check(endings)
        words = [words_of(ending) for ending in endings]
        rouge = [rouge_l(own, other) for own, other in zip(words, self._reference_words, strict=True)]
        copies = [is_copy(own, context) for own, context in zip(words, self._context_words, strict=True)]
        ratios = {
            "rouge_l": mean_of(rouge, _PERCENT),
            "repetition": mean_of([has_repetition(own) for own in words], _PERCENT),
            "length": mean_of([len(own) for own in words]),
            "context_copies": mean_of(copies, _PERCENT),
        }
        if self._recitable is not None:
            ratios["recited"] = mean_of([tuple(own) in self._recitable for own in words], _PERCENT)
        return ratios | self._knowledge_use.ratios(endings) if self._knowledge_use else ratios

    def metrics(self, endings: Sequence[str], ratios: Mapping[str, Ratio] | None = None) -> dict[str, float]:
        """All metrics of a system's endings; `ratios` are computed unless they are there already."""
        self._check(endings)
        values = {name: ratio.value for name, ratio in (ratios or self.ratios(endings)).items()}
        words = [words_of(ending) for ending in endings]
        return {
            **self.bleu.scores(endings),
            "rouge_l": values.pop("rouge_l"),
            "distinct_1": _PERCENT * distinct(words, 1),
            "distinct_2": _PERCENT * distinct(words, 2),
            **values,
        }

    def records(self, endings: Sequence[str]) -> list[dict[str, Any]]:
        """What is saved of each story."""
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


def score_endings(
    stories: Dataset,
    endings: Sequence[str],
    *,
    tokenizer: IncrementalEncoderTokenizer | None = None,
    training_endings: Sequence[str] | None = None,
    options: EvaluationOptions = _DEFAULTS,
) -> Evaluation:
    """
    Evaluate endings that any system wrote, one for each story, in order.

    Args:
        stories: A split with `context` and `ending`, the reference.
        endings: As text; spaces around marks make no difference.
        tokenizer: Whose knowledge the use of knowledge is measured with; without it that is left out.
        training_endings: Those that a system might recite; without them that is left out.
        options: Those of `evaluate` that do not concern a model.
    """
    scorer = EndingScorer(first_stories(stories, options.max_stories), tokenizer, training_endings)
    constant = options.constant_ending or best_constant_ending(scorer.references)
    ratios = scorer.ratios(endings)
    intervals = {}
    if options.bootstrap_samples:
        intervals = bleu_intervals(endings, scorer.references, options.bootstrap_samples)
        intervals |= ratio_intervals(ratios, options.bootstrap_samples, options.seed)
    others = {**trivial_systems(scorer.contexts, constant), "reference": scorer.references}
    return Evaluation(
        metrics=scorer.metrics(endings, ratios),
        endings=scorer.records(endings),
        intervals=intervals,
        floors={name: scorer.metrics(written) for name, written in others.items()},
        signatures=scorer.bleu.signatures,
        constant_ending=constant,
        num_stories=len(scorer.references),
    )


def compare_with_baseline(
    evaluation: Evaluation,
    baseline: Sequence[Mapping[str, Any]],
    *,
    tokenizer: IncrementalEncoderTokenizer | None = None,
    num_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """
    What `Evaluation.significance` holds: for each metric the baseline's value and the p-value of the difference, which
    is two-sided, paired by story and comes from random exchanges of endings between the systems. Distinct-n has none,
    for its n-grams belong to no single story; perplexity has one if both systems' records have their losses, and
    means something if their vocabularies are equal.

    Args:
        evaluation: Of the system.
        baseline: Records of the other system for the same stories, each with `ending`.
        tokenizer: Whose knowledge the use of knowledge is measured with.
        num_resamples, seed: Of the exchanges.
    """
    contexts, references = ([record[name] for record in evaluation.endings] for name in ("context", "reference"))
    scorer = EndingScorer(Dataset.from_dict({"context": contexts, "ending": references}), tokenizer)
    (own, own_ratios), (other, other_ratios) = (_parts(scorer, rows) for rows in (evaluation.endings, baseline))
    return {
        **compare_bleu(own, other, scorer.references, num_resamples),
        **compare_ratios(own_ratios, other_ratios, num_resamples, seed),
    }


def _parts(scorer: EndingScorer, records: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, Ratio]]:
    endings = [record["ending"] for record in records]
    ratios = scorer.ratios(endings)
    if all("loss" in record and "num_words" in record for record in records):
        likelihoods = [Likelihood(record["loss"], record["num_words"], []) for record in records]
        ratios = {"perplexity": perplexity_ratio(likelihoods), **ratios}
    return endings, ratios

"""Counterfactuals: what becomes of the ending if a sentence or a triple is removed, or a triple added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple
from ..story_text import split_story
from ..triple_tensors import remove_triples
from .explain_story import explain_ending
from .inference import ending_log_probabilities, generate_ending
from .markdown import counterfactual_markdown
from .result import Explanation
from .story import TokenizedStory, find_triples, reads_triples, tokenize_story


@dataclass(frozen=True)
class Counterfactual:
    """
    A story as given and as changed, the endings of both, and the probability of each ending in either story.

    Args:
        changes: The changes, in words.
        original, changed: Explanations of both endings, each in its own story.
        original_ending_after: Log probability of each word of the original ending in the changed story; None if a word
            that the ending copies is not in that story.
        changed_ending_before: The same for the changed story's ending in the original story.
    """

    changes: list[str]
    original: Explanation
    changed: Explanation
    original_ending_after: list[float] | None
    changed_ending_before: list[float] | None

    @property
    def is_same_ending(self) -> bool:
        """Whether both stories have the same ending."""
        return self.original.ending == self.changed.ending

    def log_probabilities(self) -> dict[str, dict[str, float | None]]:
        """Return the log probability of the `original` and `changed` ending in the `given` and `changed` story."""
        return {
            "original": {"given": self.original.log_probability, "changed": _sum(self.original_ending_after)},
            "changed": {"given": _sum(self.changed_ending_before), "changed": self.changed.log_probability},
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the content as lists, dictionaries, strings and numbers."""
        return {
            "changes": self.changes,
            "is_same_ending": self.is_same_ending,
            "endings": {"original": self.original.ending, "changed": self.changed.ending},
            "log_probabilities": self.log_probabilities(),
            "original_ending_after": self.original_ending_after,
            "changed_ending_before": self.changed_ending_before,
            "original": self.original.to_dict(),
            "changed": self.changed.to_dict(),
        }

    def to_json(self) -> str:
        """Return the content as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """Return a Markdown page: the changes, both endings, and the original ending's words in both stories."""
        return counterfactual_markdown(self)


def _sum(values: list[float] | None) -> float | None:
    return None if values is None else sum(values)


def counterfactual(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    *,
    without_sentence: int | None = None,
    without_triples: Sequence[Triple] | None = None,
    with_triples: Sequence[Triple] | None = None,
    **generate_arguments: Any,
) -> Counterfactual:
    """
    Change a story or its knowledge, and compare the endings.

    Args:
        model: A model of any system.
        tokenizer: Its tokenizer.
        story: One string, or the sentences of one story.
        without_sentence: Number, from 1, of a sentence to remove.
        without_triples: Triples to remove from every word of the story.
        with_triples: Triples to add, as `tokenizer(..., triples=...)` does.
        generate_arguments: Arguments of `generate()`, for both stories.
    """
    if without_sentence is None and not without_triples and not with_triples:
        raise ValueError("Nothing to change: give `without_sentence`, `without_triples` or `with_triples`.")
    sentences = split_story(story)
    original = tokenize_story(model, tokenizer, sentences)
    changed = tokenize_story(model, tokenizer, _remove_sentence(sentences, without_sentence), with_triples)
    if with_triples:
        find_triples(tokenizer, changed, "with_triples", with_triples)
    if without_triples:
        changed = _remove_triples(model, tokenizer, changed, without_triples)
    ids, changed_ids = (generate_ending(model, one, **generate_arguments) for one in (original, changed))
    return Counterfactual(
        changes=_describe(sentences, without_sentence, without_triples, with_triples),
        original=explain_ending(model, tokenizer, original, ids),
        changed=explain_ending(model, tokenizer, changed, changed_ids),
        original_ending_after=_log_probabilities_in(model, tokenizer, ids, original, changed),
        changed_ending_before=_log_probabilities_in(model, tokenizer, changed_ids, changed, original),
    )


def _remove_sentence(sentences: list[str], number: int | None) -> list[str]:
    if number is None:
        return sentences
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(sentences):
        raise ValueError(
            f"`without_sentence` must be a number from 1 to {len(sentences)}, the number of sentences; got {number!r}."
        )
    if len(sentences) == 1:
        raise ValueError("`without_sentence=1` would leave nothing: the story has one sentence.")
    return [*sentences[: number - 1], *sentences[number:]]


def _remove_triples(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: TokenizedStory,
    triples: Sequence[Triple],
) -> TokenizedStory:
    """Return the story without these triples; the others of a graph close up."""
    if not reads_triples(model):
        raise ValueError("`without_triples` were given, but this model reads no knowledge.")
    removed = find_triples(tokenizer, story, "without_triples", triples)
    return replace(story, tensors=remove_triples(story.tensors, removed, model.config.pad_token_id))


def _log_probabilities_in(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    ending_ids: list[int],
    story: TokenizedStory,
    other: TokenizedStory,
) -> list[float] | None:
    """Return the log probabilities of a story's ending in another story; None if a word to copy is not there."""
    ids = [_copy_id_in(tokenizer, word_id, story, other) for word_id in ending_ids]
    known = [word_id for word_id in ids if word_id is not None]
    return ending_log_probabilities(model, other, known) if len(known) == len(ids) else None


def _copy_id_in(
    tokenizer: IncrementalEncoderTokenizer, word_id: int, story: TokenizedStory, other: TokenizedStory
) -> int | None:
    """Return the id in another story of a word; out-of-vocabulary words are numbered by their order in a story."""
    if word_id < len(tokenizer):
        return word_id
    fold = str.lower if tokenizer.do_lower_case else str
    sentence, position = story.first_position(word_id) or (0, 0)
    copied = fold(story.words[sentence][position])
    ids = {
        fold(word): int(other.copy_ids[number, place])
        for number, words in enumerate(other.words)
        for place, word in enumerate(words)
    }
    found = ids.get(copied, tokenizer.unk_token_id)
    return None if found == tokenizer.unk_token_id else found


def _describe(
    sentences: list[str],
    without_sentence: int | None,
    without_triples: Iterable[Triple] | None,
    with_triples: Iterable[Triple] | None,
) -> list[str]:
    changes = []
    if without_sentence is not None:
        changes.append(f"without sentence {without_sentence}: {sentences[without_sentence - 1]}")
    changes += [f"without the triple ({', '.join(triple)})" for triple in without_triples or ()]
    changes += [f"with the triple ({', '.join(triple)})" for triple in with_triples or ()]
    return changes

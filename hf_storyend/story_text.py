"""Stories as text: their sentences, and how long they may be. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Sequence

from .modeling.text_processing import normalize_text, split_sentences, split_words


def split_story(story: str | Sequence[str]) -> list[str]:
    """Return the sentences of a story given as one string or as a list of sentences."""
    if isinstance(story, str):
        return split_sentences(normalize_text(story))
    sentences = list(story) if isinstance(story, Sequence) else None
    if sentences is None or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError(f"`story` must be a string or a list of sentences; got {story!r}.")
    return sentences


def check_story_size(story: str | Sequence[str], max_sentences: int, max_sentence_length: int) -> None:
    """Refuse stories that would take all time and memory; the arguments are options of commands, which errors name."""
    if _is_short(story, max_sentences, max_sentence_length):
        return
    sentences = split_story(story)
    if len(sentences) > max_sentences:
        raise ValueError(
            f"The story has {len(sentences):,} sentences, more than {max_sentences:,}: shorten it, or raise "
            "`max_sentences`."
        )
    for number, sentence in enumerate(sentences, start=1):
        if (num_words := len(split_words(sentence))) > max_sentence_length:
            raise ValueError(
                f"Sentence {number} of the story has {num_words:,} words, more than {max_sentence_length:,}: shorten "
                "it, or raise `max_sentence_length`."
            )


def _is_short(story: str | Sequence[str], max_sentences: int, max_sentence_length: int) -> bool:
    """Whether a string can't be too long, by its characters alone: splitting a million stories takes a minute."""
    if not isinstance(story, str):
        return False
    # No character becomes more than three when text is normalised.
    num_characters = len(story) if story.isascii() else 3 * len(story)
    num_ends = sum(story.count(mark) for mark in ".!?\n\u2026")
    return num_characters <= max_sentence_length and num_ends < max_sentences

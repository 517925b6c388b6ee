"""Stories as text: their sentences, how long they may be, unknown words, and text that is hardly English. No torch."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .modeling.text_processing import normalize_text, split_sentences, split_words

if TYPE_CHECKING:
    from .modeling import IncrementalEncoderTokenizer

# The most frequent words of English that no frequent word of a neighbouring language looks like.
_FUNCTION_WORDS = frozenset(
    "the to and of it his her he she they was were had for that my him them this with but at on be not as out when up "
    "got went all so there what from after would did could one their very get she's he's we our you your about been "
    "then because who said day before back decided wanted by found have if how into is are has i".split()
)
# A story is hardly English with so many letters of other scripts, or with so many unknown words and so few frequent
# ones; shorter texts may be of names only. `benchmarks/english_text.py` counts as not English, with the package's
# model: none of 24,081 stories of ROCStories, 0.2 % of their first sentences alone, and all of 3,600 stories in 18
# other languages.
_OTHER_LETTERS, _UNKNOWN_WORDS, _FREQUENT_WORDS, _FEWEST_WORDS = 0.5, 0.33, 0.25, 4


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
            "the limit `max_sentences`."
        )
    for number, sentence in enumerate(sentences, start=1):
        if (num_words := len(split_words(sentence))) > max_sentence_length:
            raise ValueError(
                f"Sentence {number} of the story has {num_words:,} words, more than {max_sentence_length:,}: shorten "
                "it, or raise the limit `max_sentence_length`."
            )


def check_ending_size(ending: str, number: int, max_length: int) -> None:
    """Refuse an ending to rank with too many words, however many sentences they are."""
    if (num_words := len(split_words(ending))) > max_length:
        raise ValueError(
            f"Ending {number} has {num_words:,} words, more than {max_length:,}: shorten it, or raise the limit "
            "`max_sentence_length`."
        )


def _is_short(story: str | Sequence[str], max_sentences: int, max_sentence_length: int) -> bool:
    """Whether a string can't be too long, by its characters alone: splitting a million stories takes a minute."""
    if not isinstance(story, str):
        return False
    # No character becomes more than three when text is normalised.
    num_characters = len(story) if story.isascii() else 3 * len(story)
    num_ends = sum(story.count(mark) for mark in ".!?\n\u2026")
    return num_characters <= max_sentence_length and num_ends < max_sentences


@dataclass(frozen=True)
class StoryNotes:
    """
    What a reader should know of a story.

    Args:
        unknown_words: Words that are not in the vocabulary, as the story writes them, each once.
        is_english: False if the text is hardly English.
    """

    unknown_words: list[str]
    is_english: bool = True

    def lines(self) -> list[str]:
        """Return the notes as sentences; none if there is nothing to say."""
        said = [] if self.is_english else [NOT_ENGLISH]
        return [*said, f"Not in the vocabulary: {', '.join(self.unknown_words)}."] if self.unknown_words else said


NOT_ENGLISH = "This hardly looks like English, which is all that the model has learnt: the ending will be guesswork."


def notes_on_story(tokenizer: IncrementalEncoderTokenizer, story: str | Sequence[str]) -> StoryNotes:
    """Return the unknown words of a story, and whether it looks English."""
    unknown = tokenizer.oov_words(story if isinstance(story, str) else list(story))
    if not unknown:
        return StoryNotes([])
    written = [word for sentence in split_story(story) for word in split_words(sentence, tokenizer.split_contractions)]
    as_written = {word.lower() if tokenizer.do_lower_case else word: word for word in reversed(written)}
    return StoryNotes([as_written.get(word, word) for word in unknown], looks_english(tokenizer, story))


def looks_english(tokenizer: IncrementalEncoderTokenizer, story: str | Sequence[str]) -> bool:
    """Return False for text that is hardly English, by its letters and words."""
    if non_latin_share(story) >= _OTHER_LETTERS:
        return False
    is_unknown = unknown_share(tokenizer, story) >= _UNKNOWN_WORDS and function_word_share(story) < _FREQUENT_WORDS
    return not (is_unknown and len(word_texts(story)) >= _FEWEST_WORDS)


def word_texts(story: str | Sequence[str]) -> list[str]:
    """Return the words of a story that have a letter, in lower case."""
    words = [word.lower() for sentence in split_story(story) for word in split_words(sentence)]
    return [word for word in words if any(map(str.isalpha, word))]


def unknown_share(tokenizer: IncrementalEncoderTokenizer, story: str | Sequence[str]) -> float:
    """Return the share of a story's words that are out of the vocabulary."""
    words, unknown = word_texts(story), {word.lower() for word in tokenizer.oov_words(story)}
    return sum(word in unknown for word in words) / max(1, len(words))


def function_word_share(story: str | Sequence[str]) -> float:
    """Return the share of a story's words that are frequent words of English."""
    words = word_texts(story)
    return sum(word in _FUNCTION_WORDS for word in words) / max(1, len(words))


def non_latin_share(story: str | Sequence[str]) -> float:
    """Return the share of a story's letters that are of other scripts than Latin."""
    letters = [character for sentence in split_story(story) for character in sentence if character.isalpha()]
    others = sum(not letter.isascii() and "LATIN" not in unicodedata.name(letter, "") for letter in letters)
    return others / max(1, len(letters))

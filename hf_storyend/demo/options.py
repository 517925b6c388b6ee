"""Options of `storyend demo`."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import MAX_SENTENCE_LENGTH, MAX_SENTENCES, check_at_least, option


@dataclass(frozen=True)
class StoryLimits:
    """
    Longest story that the demo takes. Each limit has the name of the option that raises it.

    Args:
        max_sentences: Sentences of a story.
        max_sentence_length: Words of a sentence.
        max_characters: Characters of a story: strangers wait for each other.
    """

    max_sentences: int = MAX_SENTENCES
    max_sentence_length: int = MAX_SENTENCE_LENGTH
    max_characters: int = 4000


DEFAULT_LIMITS = StoryLimits()


@dataclass(frozen=True)
class DemoOptions:
    """Options of `storyend demo`: which models it offers, and where it is served."""

    models: tuple[str, ...] = option(
        (),
        "Model directories or Hub names, to choose among; default: the model that comes with the package.",
        positional=True,
        metavar="MODEL",
    )
    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0 serves the whole network.")
    port: int | None = option(None, "Port to listen at; default: the first free one from 7860 on.")
    share: bool = option(False, "Serve a public address, through a tunnel of Gradio's servers.")
    open_browser: bool = option(True, "Open the page in a browser.", flag="open")
    space_dir: str | None = option(
        None, "Write a Hugging Face Space, ready to push, to this directory, and serve nothing.", flag="space"
    )

    max_sentences: int = option(DEFAULT_LIMITS.max_sentences, "Refuse stories with more sentences.")
    max_sentence_length: int = option(DEFAULT_LIMITS.max_sentence_length, "Refuse sentences with more words.")
    max_characters: int = option(DEFAULT_LIMITS.max_characters, "Refuse stories with more characters.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "max_sentences", "max_sentence_length", "max_characters")
        if self.space_dir is not None and self.limits != DEFAULT_LIMITS:
            raise ValueError("Limits of stories are not for `space`: change `LIMITS` in its app.py.")
        if self.port is not None and not 1 <= self.port <= 65535:
            raise ValueError(f"`port` must be a whole number from 1 to 65535; got {self.port!r}.")

    @property
    def limits(self) -> StoryLimits:
        """Longest story that the demo takes."""
        return StoryLimits(self.max_sentences, self.max_sentence_length, self.max_characters)

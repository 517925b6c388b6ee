"""Stories in plain text: one a line, or one a paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..modeling.sentences import split_sentences
from .embedded import StoryRecord
from .story_records import story_from_text
from .text_files import at_line, read_text, split_lines

Paragraph = tuple[int, list[str]]  # the number of its first line, and its lines


def read_plain_text(path: Path) -> Iterator[StoryRecord]:
    """Stories whose last sentence is the ending; if there are blank lines between them, paragraphs are stories."""
    for line, block in _stories(path):
        with at_line(path, line):
            story = story_from_text([("story", "\n".join(block))])
        yield story


def _stories(path: Path) -> list[Paragraph]:
    paragraphs = _paragraphs(split_lines(read_text(path)))
    if len(paragraphs) <= 1:
        return [(first + offset, [line]) for first, block in paragraphs for offset, line in enumerate(block)]
    longer = [paragraph for paragraph in paragraphs if len(paragraph[1]) > 1]
    # A stray blank line in a list of stories would make two giant stories of it.
    if longer and all(_is_story(line) for _, block in longer for line in block):
        first, block = longer[0]
        raise ValueError(
            f"{path}, lines {first} to {first + len(block) - 1}: one story, or {len(block)}? Every line could be one, "
            "but there are blank lines, as if a paragraph were. Take them out, or put one between all stories."
        )
    return paragraphs


def _paragraphs(lines: list[str]) -> list[Paragraph]:
    paragraphs: list[Paragraph] = []
    is_open = False
    for number, line in enumerate(lines, start=1):
        if line.strip() and is_open:
            paragraphs[-1][1].append(line)
        elif line.strip():
            paragraphs.append((number, [line]))
        is_open = bool(line.strip())
    return paragraphs


def _is_story(line: str) -> bool:
    return line.rstrip("\"') ").endswith((".", "!", "?")) and len(split_sentences(line)) > 1

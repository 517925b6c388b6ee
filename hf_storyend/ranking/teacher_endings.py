"""Endings that a teacher writes for training stories: what a small model can learn from beside those of people."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..files import atomic_write
from .candidates import count_complete_lines, read_lines

logger = logging.getLogger(__name__)

# Tokens of an ending; nearly all of people's have fewer.
MAX_LENGTH = 28
# Stories are grouped by length within pools of this many batches, so that little is spent on padding.
_POOL_SIZE = 10
_SENTENCE = re.compile(r"[\"']?\w.*[.!?][\"']?")


def save_teacher_endings(
    path: Path, model: Any, tokenizer: Any, contexts: Sequence[Sequence[str]], *, batch_size: int = 64
) -> None:
    """
    Write a story a line, `context` and `ending`, with the ending that a teacher writes greedily. An ending that
    `usable_ending` refuses is null. Stories that stand in the file are not written again.

    Args:
        path: The file.
        model: A causal language model that was fine-tuned on stories, in eval mode.
        tokenizer: Its tokenizer.
        contexts: The stories. The teacher should not have seen their endings.
        batch_size: Stories at a time.
    """
    pool = batch_size * _POOL_SIZE
    first = count_complete_lines(path)
    with path.open("a", encoding="utf-8") as file:
        for start in range(first, len(contexts), pool):
            stories = contexts[start : start + pool]
            endings = _write_endings(model, tokenizer, stories, batch_size)
            lines = [{"context": list(story), "ending": endings[place]} for place, story in enumerate(stories)]
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
            logger.info("endings of %d of %d stories", start + len(stories), len(contexts))


def save_usable_stories(path: Path, output: Path) -> int:
    """
    Write the stories that have an ending to another file, for `storyend train --extra_stories`.

    Returns:
        Their number.
    """
    stories = [story for story in read_lines(path) if story["ending"] is not None]
    atomic_write(output, "".join(json.dumps(story) + "\n" for story in stories))
    return len(stories)


def usable_ending(text: str, context: Sequence[str]) -> str | None:
    """The ending without white space around it; None if it is no whole sentence, or one of the story."""
    ending = text.strip()
    if not _SENTENCE.fullmatch(ending):
        return None
    if _letters(ending) in map(_letters, context):
        return None
    return ending


@torch.no_grad()
def _write_endings(model: Any, tokenizer: Any, stories: Sequence[Sequence[str]], batch_size: int) -> list[str | None]:
    prompts = [tokenizer(" ".join(story), add_special_tokens=False)["input_ids"] for story in stories]
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    endings: list[str | None] = [None] * len(prompts)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        length = max(len(prompts[place]) for place in places)
        # Padded on the left: generation goes on at the end of every story.
        rows = [[tokenizer.eos_token_id] * (length - len(prompts[place])) + prompts[place] for place in places]
        mask = [[0] * (length - len(prompts[place])) + [1] * len(prompts[place]) for place in places]
        written = model.generate(
            input_ids=torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            do_sample=False,
            max_new_tokens=MAX_LENGTH,
            pad_token_id=tokenizer.eos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        for place, ids in zip(places, written[:, length:], strict=True):
            endings[place] = usable_ending(tokenizer.decode(ids, skip_special_tokens=True), stories[place])
    return endings


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())

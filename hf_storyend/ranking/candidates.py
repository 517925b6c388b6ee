"""Candidates of a model for stories: the endings that a ranker is trained to choose among, as JSON lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ..modeling.candidates import write_candidates
from ..modeling.losses import IGNORED

logger = logging.getLogger(__name__)


def save_candidates(
    path: Path,
    model: Any,
    tokenizer: Any,
    contexts: Sequence[list[str]],
    *,
    num_candidates: int = 18,
    num_beams: int = 8,
    seed: int = 0,
    batch_size: int = 64,
) -> None:
    """
    Write the different endings of each story, a JSON object a line: `story`, its number from 0, and `endings`. Stories
    that stand in the file are not written again, so that an interrupted call goes on.

    Args:
        path: The file.
        model: The model whose endings are to be ranked, in eval mode.
        tokenizer: Its tokenizer.
        contexts: The stories.
        num_candidates: Endings of each story, duplicates included.
        num_beams: How many of them are beams; the others are samples.
        seed: Of the samples; those of another batch have another one.
        batch_size: Stories at a time.
    """
    first = count_complete_lines(path)
    with path.open("a", encoding="utf-8") as file:
        for start in range(first, len(contexts), batch_size):
            batch = contexts[start : start + batch_size]
            inputs = tokenizer(batch, return_tensors="pt")
            arguments = {"num_beams": num_beams, "length_penalty": 0.0}
            labels = write_candidates(model, inputs, num_candidates, seed=seed + start, **arguments)
            for number, (context, rows) in enumerate(zip(batch, labels, strict=True), start=start):
                file.write(json.dumps({"story": number, "endings": _texts(tokenizer, rows, context)}) + "\n")
            file.flush()
            logger.info("candidates of %d of %d stories", start + len(batch), len(contexts))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, up to a line that an interruption left incomplete."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return
            yield json.loads(line)


def count_complete_lines(path: Path) -> int:
    """The number of complete lines; what an interruption left behind them is cut off."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        path.write_bytes(complete)
    return complete.count(b"\n")


def _texts(tokenizer: Any, rows: torch.Tensor, context: list[str]) -> list[str]:
    ids = rows.masked_fill(rows == IGNORED, tokenizer.pad_token_id)
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True, context=[context] * len(ids))
    return [text for text in dict.fromkeys(texts) if text]

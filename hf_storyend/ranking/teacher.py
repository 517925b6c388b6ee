"""
Teacher of a ranker: a causal language model, fine-tuned on stories, whose log probability of an ending behind its
story says which candidates are good. It is used while a ranker is trained, and is no part of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import Trainer, TrainingArguments

from .candidates import count_complete_lines, read_lines

logger = logging.getLogger(__name__)

Story = tuple[Sequence[str], str]


class TeacherTrainer(Trainer):
    """Words of the ending have weight 1, those of the context less: they only teach how stories are told."""

    context_weight = 0.3

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        weights = inputs.pop("weights")[:, 1:]
        output = model(**inputs)
        losses = functional.cross_entropy(
            output.logits[:, :-1].float().transpose(1, 2), inputs["input_ids"][:, 1:], reduction="none"
        )
        loss = (losses * weights).sum() / weights.sum()
        return (loss, output) if return_outputs else loss


def fine_tune_teacher(
    model: Any, tokenizer: Any, stories: Sequence[Story], arguments: TrainingArguments, context_weight: float = 0.3
) -> None:
    """
    Fine-tune a causal language model on stories and their endings, once through; an interrupted run resumes.

    Args:
        model: A causal language model of transformers.
        tokenizer: Its tokenizer, with an end-of-sequence token.
        stories: Contexts and endings.
        arguments: Of transformers' `Trainer`; `output_dir` has the checkpoints.
        context_weight: Weight of a token of the context; that of an ending has 1.
    """
    rows = [_encode(tokenizer, context, ending, context_weight) for context, ending in stories]
    trainer = TeacherTrainer(model=model, args=arguments, train_dataset=rows, data_collator=_collate)
    output_dir = Path(arguments.output_dir)
    trainer.train(resume_from_checkpoint=any(output_dir.glob("checkpoint-*")) or None)


@torch.no_grad()
def score_endings(
    model: Any, tokenizer: Any, stories: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> list[list[float]]:
    """
    Log probability of each ending behind its story, end of sequence included.

    Args:
        model: A causal language model, in eval mode.
        tokenizer: Its tokenizer.
        stories: Contexts, each with its endings.
    """
    rows = [(context, ending) for context, endings in stories for ending in endings]
    batch = _collate([_encode(tokenizer, *row, context_weight=0.0) for row in rows])
    is_ending = batch.pop("weights")[:, 1:] > 0
    # Only where the words of an ending are predicted: the vocabulary is most of the work.
    hidden = model.base_model(**batch).last_hidden_state[:, :-1][is_ending]
    losses = functional.cross_entropy(
        model.get_output_embeddings()(hidden).float(), batch["input_ids"][:, 1:][is_ending], reduction="none"
    )
    by_row = torch.zeros(is_ending.shape).masked_scatter(is_ending, -losses).sum(dim=1).tolist()
    found = iter(by_row)
    return [[next(found) for _ in endings] for _, endings in stories]


def save_scores(
    path: Path,
    candidates: Path,
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
    batch_size: int = 4,
) -> None:
    """
    Write `story`, `endings` and `teacher_scores` for each line of a file of candidates, the human ending last; stories
    that stand in the file are not scored again.

    Args:
        path: The file.
        candidates: What `save_candidates` wrote.
        model: The teacher, in eval mode.
        tokenizer: Its tokenizer.
        stories: Contexts and endings, by the numbers in `candidates`.
        batch_size: Stories at a time.
    """
    lines = list(read_lines(candidates))
    with path.open("a", encoding="utf-8") as file:
        for start in range(count_complete_lines(path), len(lines), batch_size):
            batch = lines[start : start + batch_size]
            known = [stories[line["story"]] for line in batch]
            endings = [[*line["endings"], human] for line, (_, human) in zip(batch, known, strict=True)]
            pairs = [(context, texts) for (context, _), texts in zip(known, endings, strict=True)]
            for line, texts, scores in zip(batch, endings, score_endings(model, tokenizer, pairs), strict=True):
                rounded = [round(score, 3) for score in scores]
                scored = {"story": line["story"], "endings": texts, "teacher_scores": rounded}
                file.write(json.dumps(scored) + "\n")
            file.flush()
            logger.info("scored %d of %d stories", start + len(batch), len(lines))


def _encode(tokenizer: Any, context: Sequence[str], ending: str, context_weight: float) -> dict[str, list]:
    story = tokenizer(" ".join(context), add_special_tokens=False)["input_ids"]
    words = [*tokenizer(" " + ending, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    return {"input_ids": story + words, "weights": [context_weight] * len(story) + [1.0] * len(words)}


def _collate(rows: Sequence[dict[str, list]]) -> dict[str, torch.Tensor]:
    """Padded on the right: behind what counts, which causal attention never sees."""
    length = max(len(row["input_ids"]) for row in rows)
    return {
        name: torch.tensor([[*row[name], *[0] * (length - len(row[name]))] for row in rows])
        for name in ("input_ids", "weights")
    } | {
        "attention_mask": torch.tensor(
            [[int(place < len(row["input_ids"])) for place in range(length)] for row in rows]
        )
    }

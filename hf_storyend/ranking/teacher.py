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
def score_endings(model: Any, tokenizer: Any, context: Sequence[str], endings: Sequence[str]) -> list[float]:
    """
    Log probability of each ending behind its story, end of sequence included. The story is read once.

    Args:
        model: A causal language model, in eval mode.
        tokenizer: Its tokenizer.
        context: Sentences of the story.
        endings: Its endings.
    """
    rows = [_encode(tokenizer, context, ending, context_weight=0.0) for ending in endings]
    story = torch.tensor([rows[0]["input_ids"][: rows[0]["weights"].count(0.0)]])
    read = model.base_model(story, use_cache=True)
    read.past_key_values.batch_repeat_interleave(len(endings))
    words = _collate([{name: values[story.shape[1] :] for name, values in row.items()} for row in rows])
    ids, is_word = words["input_ids"], words["attention_mask"].bool()
    # Behind an ending is padding, which causal attention never sees.
    hidden = model.base_model(ids[:, :-1], past_key_values=read.past_key_values).last_hidden_state
    hidden = torch.cat((read.last_hidden_state[:, -1:].expand(len(endings), -1, -1), hidden), dim=1)[is_word]
    losses = functional.cross_entropy(model.get_output_embeddings()(hidden).float(), ids[is_word], reduction="none")
    return torch.zeros(ids.shape).masked_scatter(is_word, -losses).sum(dim=1).tolist()


def save_scores(
    path: Path,
    candidates: Path,
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
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
    """
    lines = list(read_lines(candidates))
    first = count_complete_lines(path)
    with path.open("a", encoding="utf-8") as file:
        for number, line in enumerate(lines[first:], start=first + 1):
            context, human = stories[line["story"]]
            endings = [*line["endings"], human]
            scores = [round(score, 3) for score in score_endings(model, tokenizer, context, endings)]
            scored = {"story": line["story"], "endings": endings, "teacher_scores": scores}
            file.write(json.dumps(scored) + "\n")
            file.flush()
            if number % 50 == 0 or number == len(lines):
                logger.info("scored %d of %d stories", number, len(lines))


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

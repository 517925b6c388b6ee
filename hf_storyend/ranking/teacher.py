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
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

from ..files import atomic_directory
from .candidates import count_complete_lines, read_lines

logger = logging.getLogger(__name__)

Story = tuple[Sequence[str], str]


class TeacherTrainer(Trainer):
    """Learns all tokens of the ending, and a sample of those of the context: they only teach how stories are told."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        ids, weights = inputs["input_ids"], inputs["weights"][:, 1:]
        is_learnt = torch.rand_like(weights) < weights
        # Padding is on the right, which causal attention never sees: no mask is needed.
        output = model(input_ids=ids)
        loss = functional.cross_entropy(output.logits[:, :-1][is_learnt].float(), ids[:, 1:][is_learnt])
        return (loss, output) if return_outputs else loss


def fine_tune_teacher(
    model: Any,
    tokenizer: Any,
    stories: Sequence[Story],
    arguments: TrainingArguments,
    *,
    context_share: float = 0.3,
    num_frozen_layers: int = 0,
) -> None:
    """
    Fine-tune a causal language model on stories and their endings; an interrupted run resumes.

    Args:
        model: A causal language model of transformers.
        tokenizer: Its tokenizer, with an end-of-sequence token.
        stories: Contexts and endings.
        arguments: Of transformers' `Trainer`; `output_dir` has the checkpoints.
        context_share: Share of the tokens of contexts that are learnt, sampled at each update.
        num_frozen_layers: Layers that stay as they are, counted from the word vectors, which then stay, too: a step
            takes less time.
    """
    if num_frozen_layers:
        model.get_input_embeddings().requires_grad_(False)
        model.base_model.layers[:num_frozen_layers].requires_grad_(False)
    rows = [_encode(tokenizer, context, ending, context_share) for context, ending in stories]
    trainer = TeacherTrainer(model=model, args=arguments, train_dataset=rows, data_collator=_collate)
    output_dir = Path(arguments.output_dir)
    trainer.train(resume_from_checkpoint=any(output_dir.glob("checkpoint-*")) or None)


def tuned_teacher(
    source: str | Path, output_dir: Path, stories: Sequence[Story], arguments: TrainingArguments, **settings: Any
) -> tuple[Any, Any]:
    """
    Return a causal language model that was fine-tuned on stories, in eval mode, and its tokenizer.

    Args:
        source: The model to start from: a directory, or a name on the Hub.
        output_dir: Where the result is, or is going to be.
        stories: Contexts and endings.
        arguments: Of transformers' `Trainer`.
        settings: Of `fine_tune_teacher`.
    """
    tokenizer = AutoTokenizer.from_pretrained(source)
    if output_dir.is_dir():
        return AutoModelForCausalLM.from_pretrained(output_dir, dtype=torch.float32).eval(), tokenizer
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    fine_tune_teacher(model, tokenizer, stories, arguments, **settings)
    with atomic_directory(output_dir) as folder:
        model.save_pretrained(folder)
    return model.eval(), tokenizer


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
    rows = [_encode(tokenizer, context, ending, context_share=0.0) for ending in endings]
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


def _encode(tokenizer: Any, context: Sequence[str], ending: str, context_share: float) -> dict[str, list]:
    story = tokenizer(" ".join(context), add_special_tokens=False)["input_ids"]
    words = [*tokenizer(" " + ending, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    return {"input_ids": story + words, "weights": [context_share] * len(story) + [1.0] * len(words)}


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

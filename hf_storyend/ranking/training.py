"""Training of an ending ranker, while the model that it reads stays as it is."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import Trainer, TrainingArguments

from ..modeling.ending_ranker import EndingRanker, ending_log_probabilities, ranker_inputs
from .contrasts import with_person_changed, with_polarity_changed
from .neighbours import endings_of_neighbours

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoredStory:
    """
    A story with its endings: candidates with the scores of a teacher, which may be missing, then the human one, then
    wrong ones: those of similar stories, and the human one with its meaning changed.
    """

    context: Sequence[str]
    candidates: Sequence[str]
    teacher_scores: Sequence[float]
    human: str
    wrong: Sequence[str] = field(default=())

    @property
    def endings(self) -> list[str]:
        return [*self.candidates, self.human, *self.wrong]


@dataclass(frozen=True)
class RankerLoss:
    """
    Two losses of the scores of a story's endings.

    Args:
        temperature: Of the teacher's distribution over candidates, which the ranker's has to match.
        human_weight: Weight of the human ending being the best among the wrong ones.
    """

    temperature: float = 3.0
    human_weight: float = 0.3

    def __call__(self, scores: torch.Tensor, story: ScoredStory) -> torch.Tensor:
        """The loss of one story from the scores of its endings."""
        number = len(story.candidates)
        among_wrong = -scores[number : len(story.endings)].log_softmax(dim=0)[0]
        if not number:
            return self.human_weight * among_wrong
        teacher = (scores.new_tensor(story.teacher_scores) / self.temperature).softmax(dim=0)
        divergence = functional.kl_div(scores[:number].log_softmax(dim=0), teacher, reduction="sum")
        return divergence + self.human_weight * among_wrong


class RankerTraining(nn.Module):
    """A ranker with its loss, as `Trainer` takes it."""

    def __init__(self, ranker: EndingRanker, loss: RankerLoss):
        super().__init__()
        self.ranker, self._loss = ranker, loss

    def forward(self, stories: Sequence[ScoredStory], **read: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.ranker(**read)
        losses = [self._loss(row, story) for row, story in zip(scores, stories, strict=True)]
        return {"loss": torch.stack(losses).mean(), "scores": scores}


def add_ranker(model: Any, **settings: Any) -> None:
    """
    Give a model a new ranker, which scores endings by the model's own log probability until it is trained.

    Args:
        model: The model.
        settings: `ranker_size` and the other settings of rankers in the configuration.
    """
    model.config.update({"ranker_size": 384, **settings})
    model.ranker = EndingRanker(model.config)
    model.ranker.apply(model._init_weights)
    with torch.no_grad():
        model.ranker.scorer.weight.zero_()
        model.ranker.likelihood.weight.copy_(torch.tensor([[1.0, 0.0, 0.0]]))


def with_wrong_endings(stories: Sequence[ScoredStory], number: int = 4, seed: int = 0) -> list[ScoredStory]:
    """The stories with wrong endings: those of similar stories, and the human one with polarity or person changed."""
    contexts, endings = [story.context for story in stories], [story.human for story in stories]
    found = endings_of_neighbours(contexts, endings, number)
    draw = random.Random(seed)
    changed = [(with_polarity_changed(ending, draw), with_person_changed(ending)) for ending in endings]
    return [
        replace(story, wrong=(*neighbours, *(text for text in opposites if text is not None)))
        for story, neighbours, opposites in zip(stories, found, changed, strict=True)
    ]


def train_ranker(
    model: Any,
    tokenizer: Any,
    stories: Sequence[ScoredStory],
    arguments: TrainingArguments,
    loss: RankerLoss | None = None,
) -> None:
    """
    Train the ranker of a model; an interrupted run resumes. What the model makes of the stories is computed once.

    Args:
        model: A model with a ranker, whose other weights stay as they are.
        tokenizer: Its tokenizer.
        stories: With the scores of a teacher.
        arguments: Of transformers' `Trainer`; `output_dir` has the checkpoints.
        loss: Temperature and weights.
    """
    rows = read_stories(model.eval(), tokenizer, stories)
    training = RankerTraining(model.ranker, loss or RankerLoss())
    trainer = Trainer(model=training, args=arguments, train_dataset=rows, data_collator=collate)
    trainer.train(resume_from_checkpoint=any(Path(arguments.output_dir).glob("checkpoint-*")) or None)
    model.ranker.eval()


def read_stories(
    model: Any, tokenizer: Any, stories: Sequence[ScoredStory], batch_size: int = 16
) -> list[dict[str, Any]]:
    """Ids of each story and its endings, and the model's log probabilities of them, without padding."""
    order = sorted(range(len(stories)), key=lambda number: max(map(len, stories[number].context)))
    rows: list[dict[str, Any]] = [{} for _ in stories]
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = [stories[number] for number in numbers]
        for row, number in zip(_read(model, tokenizer, batch), numbers, strict=True):
            rows[number] = row
        logger.info("read %d of %d stories", start + len(batch), len(stories))
    return rows


def collate(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A batch of what `read_stories` gave, padded."""
    reads = [row["read"] for row in rows]
    batch: dict[str, Any] = {name: _pad([read[name] for read in reads]) for name in reads[0]}
    # An ending that only fills up has no word; a mean needs one.
    batch["ending_mask"][..., 0] = True
    batch["num_words"].clamp_(min=1)
    return {"stories": [row["story"] for row in rows], **batch}


def _read(model: Any, tokenizer: Any, batch: Sequence[ScoredStory]) -> list[dict[str, Any]]:
    num_candidates = max(len(story.candidates) for story in batch)
    contexts = [list(story.context) for story in batch]
    inputs = dict(tokenizer(contexts, return_triples=num_candidates > 0, return_tensors="pt"))
    words = {name: inputs[name] for name in ("input_ids", "attention_mask", "copy_ids") if name in inputs}
    read = ranker_inputs(model.config, _labels(tokenizer, batch, [story.endings for story in batch]), **words)
    # People's endings are surprising: what the model thinks of them is not to be learnt from. One value for all of a
    # story changes no order among them.
    log_probabilities = torch.zeros(read["num_words"].shape)
    num_words = torch.full_like(log_probabilities, 10.0)
    if num_candidates:
        labels = _labels(tokenizer, batch, [story.candidates or [story.human] for story in batch])
        by_model = ending_log_probabilities(model, labels, **inputs)
        for row, story in enumerate(batch):
            number = min(len(story.candidates), num_candidates)
            log_probabilities[row, :number] = by_model[row, :number]
            num_words[row, :number] = read["num_words"][row, :number].float()
    read["log_probabilities"], read["num_words"] = log_probabilities, num_words
    return [{"story": story, "read": _unpadded(read, row, len(story.endings))} for row, story in enumerate(batch)]


def _labels(tokenizer: Any, batch: Sequence[ScoredStory], endings: Sequence[Sequence[str]]) -> torch.Tensor:
    """[B, C, T]: endings of stories that have fewer are filled up with the first one."""
    most = max(map(len, endings))
    filled = [[*texts, *[texts[0]] * (most - len(texts))] for texts in endings]
    contexts = [list(story.context) for story in batch for _ in range(most)]
    texts = [text for row in filled for text in row]
    read = tokenizer(contexts, text_target=texts, return_triples=False, return_tensors="pt")
    return read["labels"].unflatten(0, (len(batch), most))


def _unpadded(read: dict[str, torch.Tensor], row: int, num_endings: int) -> dict[str, torch.Tensor]:
    is_read = read["story_mask"][row]
    longest = int(read["ending_mask"][row, :num_endings].any(dim=0).sum())
    return {
        "story_ids": read["story_ids"][row, is_read],
        "story_mask": is_read[is_read],
        "ending_ids": read["ending_ids"][row, :num_endings, :longest].clone(),
        "ending_mask": read["ending_mask"][row, :num_endings, :longest].clone(),
        "log_probabilities": read["log_probabilities"][row, :num_endings].clone(),
        "num_words": read["num_words"][row, :num_endings].clone(),
    }


def _pad(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors of different sizes in one, zeros elsewhere."""
    shape = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
    padded = tensors[0].new_zeros(len(tensors), *shape)
    for row, tensor in enumerate(tensors):
        padded[(row, *(slice(size) for size in tensor.shape))] = tensor
    return padded

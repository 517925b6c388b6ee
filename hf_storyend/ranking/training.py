"""Training of an ending ranker, while the model that it reads stays as it is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import Trainer, TrainingArguments

from ..modeling.ending_ranker import EndingRanker, read_endings
from .neighbours import endings_of_neighbours

logger = logging.getLogger(__name__)

_FLOATS = ("story", "ending", "log_probabilities")


@dataclass(frozen=True)
class ScoredStory:
    """A story with its endings: candidates, then the human one, then those of similar stories."""

    context: Sequence[str]
    candidates: Sequence[str]
    teacher_scores: Sequence[float]
    human: str
    neighbours: Sequence[str] = field(default=())

    @property
    def endings(self) -> list[str]:
        return [*self.candidates, self.human, *self.neighbours]


@dataclass(frozen=True)
class RankerLoss:
    """
    Three losses of the scores of a story's endings.

    Args:
        temperature: Of the teacher's distribution over candidates, which the ranker's has to match.
        human_weight: Weight of the human ending being better than each candidate.
        neighbour_weight: Weight of the human ending being the best among endings of similar stories.
    """

    temperature: float = 3.0
    human_weight: float = 0.3
    neighbour_weight: float = 0.3

    def __call__(self, scores: torch.Tensor, story: ScoredStory) -> torch.Tensor:
        """The loss of one story from the scores of its endings."""
        number = len(story.candidates)
        teacher = scores.new_tensor(story.teacher_scores) / self.temperature
        of_candidates, human, of_others = scores[:number], scores[number], scores[number : len(story.endings)]
        loss = functional.kl_div(of_candidates.log_softmax(dim=0), teacher.softmax(dim=0), reduction="sum")
        loss = loss - self.human_weight * functional.logsigmoid(human - of_candidates).mean()
        return loss - self.neighbour_weight * of_others.log_softmax(dim=0)[0]


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
    Give a model a new ranker.

    Args:
        model: The model.
        settings: `ranker_size`, `num_ranker_layers`, `ranker_dropout`.
    """
    model.config.update({"ranker_size": 256, **settings})
    model.ranker = EndingRanker(model.config)
    model.ranker.apply(model._init_weights)
    with torch.no_grad():
        # It starts as the model's own log probability.
        model.ranker.scorer.weight.zero_()
        model.ranker.likelihood.weight.copy_(torch.tensor([[1.0, 0.0, 0.0]]))


def with_neighbours(stories: Sequence[ScoredStory], number: int = 3) -> list[ScoredStory]:
    """The stories with human endings of similar ones among them."""
    found = endings_of_neighbours([story.context for story in stories], [story.human for story in stories], number)
    return [
        ScoredStory(story.context, story.candidates, story.teacher_scores, story.human, neighbours)
        for story, neighbours in zip(stories, found, strict=True)
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
    """What the model makes of each story and of its endings, without padding, in half precision."""
    order = sorted(range(len(stories)), key=lambda number: max(map(len, stories[number].context)))
    rows: list[dict[str, Any]] = [{} for _ in stories]
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = [stories[number] for number in numbers]
        read = read_endings(model, _labels(tokenizer, batch), **_inputs(tokenizer, batch))
        for row, number in enumerate(numbers):
            rows[number] = {"story": stories[number], "read": _unpadded(read, row, len(stories[number].endings))}
        logger.info("read %d of %d stories", start + len(batch), len(stories))
    return rows


def collate(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A batch of what `read_stories` gave, padded."""
    reads = [row["read"] for row in rows]
    batch = {name: _pad([read[name] for read in reads]) for name in reads[0]}
    # An ending that only fills up has no word; attention needs one.
    batch["ending_mask"][..., 0] = True
    return {"stories": [row["story"] for row in rows]} | {
        name: tensor.float() if name in _FLOATS else tensor for name, tensor in batch.items()
    }


def _inputs(tokenizer: Any, batch: Sequence[ScoredStory]) -> dict[str, torch.Tensor]:
    return dict(tokenizer([list(story.context) for story in batch], return_tensors="pt"))


def _labels(tokenizer: Any, batch: Sequence[ScoredStory]) -> torch.Tensor:
    """[B, C, T]: endings of stories that have fewer are filled up with the first one."""
    most = max(len(story.endings) for story in batch)
    filled = [[*story.endings, *[story.endings[0]] * (most - len(story.endings))] for story in batch]
    contexts = [list(story.context) for story in batch for _ in range(most)]
    texts = [text for endings in filled for text in endings]
    read = tokenizer(contexts, text_target=texts, return_triples=False, return_tensors="pt")
    return read["labels"].unflatten(0, (len(batch), most))


def _unpadded(read: dict[str, torch.Tensor], row: int, num_endings: int) -> dict[str, torch.Tensor]:
    sentences, words = (int(read["story_mask"][row].any(dim=dim).sum()) for dim in (1, 0))
    longest = int(read["ending_mask"][row, :num_endings].any(dim=0).sum())
    return {
        "story": read["story"][row, :sentences, :words].half(),
        "story_mask": read["story_mask"][row, :sentences, :words],
        "ending": read["ending"][row, :num_endings, :longest].half(),
        "ending_mask": read["ending_mask"][row, :num_endings, :longest],
        "log_probabilities": read["log_probabilities"][row, :num_endings, : longest + 1].clone(),
    }


def _pad(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors of different sizes in one, zeros elsewhere."""
    shape = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
    padded = tensors[0].new_zeros(len(tensors), *shape)
    for row, tensor in enumerate(tensors):
        padded[(row, *(slice(size) for size in tensor.shape))] = tensor
    return padded

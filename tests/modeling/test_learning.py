"""The model learns what it was made for: endings that only knowledge, or only the first sentence, can tell."""

import pytest
import torch
from story_cases import batch_for, context_of, tiny_system

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

NUM_ANSWERS, NUM_FILLERS, NUM_HEADS = 6, 10, 30
ANSWERS = range(4, 4 + NUM_ANSWERS)
FILLERS = range(ANSWERS.stop, ANSWERS.stop + NUM_FILLERS)
TRAINING_HEADS = range(FILLERS.stop, FILLERS.stop + NUM_HEADS)
UNSEEN_HEADS = range(TRAINING_HEADS.stop, TRAINING_HEADS.stop + NUM_HEADS)
CHANCE = 1 / NUM_ANSWERS


def draw(choices: range, *shape: int) -> torch.Tensor:
    return torch.randint(choices.start, choices.stop, shape)


def with_ending(batch: dict, answers: torch.Tensor) -> dict:
    return {**batch, "labels": torch.stack((answers, torch.full_like(answers, 3)), dim=1)}


def knowledge_stories(num_stories: int, heads: range) -> dict:
    """A head word stands in the last sentence; the answer is the tail of its triple, drawn for each story."""
    words = draw(FILLERS, num_stories, 2, 3)
    place = torch.randint(3, (num_stories,))
    rows, head, answers = torch.arange(num_stories), draw(heads, num_stories), draw(ANSWERS, num_stories)
    words[rows, 1, place] = head
    triple_ids = torch.zeros(num_stories, 2, 3, 2, 3, dtype=torch.long)
    triple_mask = torch.zeros(num_stories, 2, 3, 2, dtype=torch.long)
    triple_ids[rows, 1, place, 0] = torch.stack((head, torch.zeros_like(head), answers), dim=1)
    triple_mask[rows, 1, place, 0] = 1
    batch = {"input_ids": words, "triple_ids": triple_ids, "triple_mask": triple_mask}
    return with_ending(batch, answers)


def clue_stories(num_stories: int) -> dict:
    """The answer is a word of the first of four sentences; the others tell nothing."""
    words, answers = draw(FILLERS, num_stories, 4, 3), draw(ANSWERS, num_stories)
    words[torch.arange(num_stories), 0, torch.randint(3, (num_stories,))] = answers
    return with_ending({"input_ids": words}, answers)


def learn(knowledge: str | None, make_batch, steps: int) -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(0)
    config = IncrementalEncoderConfig(
        vocab_size=UNSEEN_HEADS.stop,
        num_relations=1,
        embedding_size=24,
        hidden_size=32,
        num_layers=1,
        knowledge=knowledge,
        encoder_loss_weight=0.0,
    )
    model = IncrementalEncoderForEndingGeneration(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
    for _ in range(steps):
        model(**make_batch()).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model.eval()


def accuracy(model: IncrementalEncoderForEndingGeneration, batch: dict) -> float:
    context = {name: tensor for name, tensor in batch.items() if name != "labels"}
    endings = model.generate(**context, max_new_tokens=2)
    return (endings[:, 1] == batch["labels"][:, 0]).float().mean().item()


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_knowledge_is_used_for_words_never_seen(knowledge):
    model = learn(knowledge, lambda: knowledge_stories(64, TRAINING_HEADS), steps=250)
    assert accuracy(model, knowledge_stories(500, UNSEEN_HEADS)) > 0.95


def test_without_knowledge_it_is_a_guess():
    model = learn(None, lambda: knowledge_stories(64, TRAINING_HEADS), steps=100)
    assert accuracy(model, knowledge_stories(500, UNSEEN_HEADS)) < CHANCE + 0.08


def test_a_clue_of_the_first_sentence_reaches_the_ending():
    model = learn(None, lambda: clue_stories(64), steps=250)
    stories = clue_stories(500)
    assert accuracy(model, stories) > 0.95
    stories["input_ids"] = stories["input_ids"][:, 1:]
    assert accuracy(model, stories) < CHANCE + 0.08, "the other sentences tell nothing"


@pytest.mark.parametrize("name", SYSTEMS)
def test_four_stories_are_learnt_by_heart(name):
    torch.manual_seed(0)
    model = tiny_system(name, torch.float32, hidden_size=32, embedding_size=24).train()
    batch = batch_for(name, 2, num_stories=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(80):
        loss = model(**batch).ending_loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss < 0.1
    endings = model.eval().generate(**context_of(batch), max_new_tokens=batch["labels"].shape[1])
    for row, labels in zip(endings[:, 1:], batch["labels"], strict=True):
        real = labels[labels != -100]
        assert row[: len(real)].tolist() == real.tolist()

"""Masked softmax, packed tokens, distinct triples, and what a fast path checks first."""

from __future__ import annotations

import pytest
import torch
from story_cases import as_tensors, context_of, random_stories, tiny_model
from torch import nn

from hf_storyend.modeling.tensor_utils import (
    PackedTokens,
    distinct_triples,
    is_eager_mode,
    is_unmodified,
    masked_softmax,
    upcast,
    weighted_sum,
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_masked_softmax(dtype):
    scores = torch.tensor([[1.0, 2.0, 900.0], [5.0, 6.0, 7.0]], dtype=dtype, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights[0, :2], scores[0, :2].softmax(0))
    assert weights[0, 2] == 0 and (weights[1] == 0).all(), "no real entry, no weight"
    weights[:, 0].sum().backward()
    assert scores.grad.isfinite().all() and (scores.grad[1] == 0).all() and scores.grad[0, 2] == 0


def test_weighted_sum():
    weights, vectors = torch.rand(2, 3, 4), torch.rand(2, 3, 4, 5)
    torch.testing.assert_close(weighted_sum(weights, vectors), (weights.unsqueeze(-1) * vectors).sum(-2))


def test_upcast():
    assert upcast(torch.ones(1, dtype=torch.float16)).dtype == torch.float32
    assert upcast(torch.ones(1, dtype=torch.bfloat16)).dtype == torch.float32
    assert upcast(torch.ones(1, dtype=torch.float64)).dtype == torch.float64


def test_eager_mode():
    assert is_eager_mode(torch.zeros(1))
    assert not is_eager_mode(torch.zeros(1, device="meta"))


def test_unmodified_modules():
    module = nn.Linear(2, 2)
    assert is_unmodified(module, nn.Linear)
    assert not is_unmodified(module, nn.Module)
    for register in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
        handle = getattr(module, f"register_{register}")(lambda *_: None)
        assert not is_unmodified(module, nn.Linear), register
        handle.remove()
        assert is_unmodified(module, nn.Linear)
    module.forward = module.forward
    assert not is_unmodified(module, nn.Linear), "offloading replaces `forward`"


def test_gathered_and_scattered():
    mask = torch.tensor([[True, False, True], [False, False, True]])
    tokens = PackedTokens.where(mask, mask.device)
    numbers = torch.arange(1.0, 13.0).view(2, 3, 2)
    assert tokens.positions.tolist() == [0, 2, 5]
    assert tokens.gather(numbers).tolist() == [[1, 2], [5, 6], [11, 12]]
    assert torch.equal(tokens.scatter(tokens.gather(numbers)), numbers * mask.unsqueeze(-1))


def test_no_token_at_all():
    tokens = PackedTokens.where(torch.zeros(2, 3, dtype=torch.bool), torch.device("cpu"))
    assert len(tokens.positions) == 0
    assert torch.equal(tokens.scatter(torch.ones(0, 4)), torch.zeros(2, 3, 4))


def test_every_token_where_control_flow_may_not_depend_on_data():
    mask = torch.zeros(2, 3, dtype=torch.bool, device="meta")
    assert len(PackedTokens.where(mask, mask.device).positions) == 6


def test_distinct_triples():
    ids = torch.tensor([[[[[5, 1, 6], [7, 0, 5]], [[5, 1, 6], [9, 9, 9]]]]])
    mask = torch.tensor([[[[True, True], [True, False]]]])
    triples = distinct_triples(ids, mask, num_relations=10, num_words=10)
    distinct = triples.first(int(triples.count))
    assert distinct.ids.tolist() == [[5, 1, 6], [7, 0, 5]], "what is masked is no triple"
    assert torch.equal(distinct.ids[distinct.index[mask]], ids[mask])
    assert distinct.index.max() < 2, "padding points to some triple"


def test_no_distinct_triple_where_there_is_none():
    triples = distinct_triples(torch.ones(2, 3, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool), 10, 10)
    assert triples.count == 0 and (triples.index == 0).all()


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_a_triple_is_encoded_once(knowledge):
    """However often its words occur in the story; nothing is scored at words without triples."""
    stories = [([[5, 5, 6], [5, 6, 5]], [[[(5, 1, 7)], [], [(5, 1, 7)]], [[(5, 1, 7)]] * 3], [7, 3])]
    model, encoded, scored = tiny_model(knowledge=knowledge), [], []
    encode, score = model.encoder.knowledge.encode, model.encoder.knowledge.score
    model.encoder.knowledge.encode = lambda *parts: encoded.append(len(parts[0])) or encode(*parts)
    model.encoder.knowledge.score = lambda scores, states: scored.append(len(states)) or score(scores, states)
    model(**as_tensors(stories))
    assert encoded == [1] and scored == [2, 3]


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_triple_attention_is_a_distribution_where_there_are_triples(knowledge):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(4))
    weights = model.encoder(**context_of(batch), output_attentions=True).attentions[2]
    mask = batch["triple_mask"].bool()
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), mask.any(dim=-1).to(weights.dtype))

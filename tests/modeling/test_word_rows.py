"""Words in rows of their own, and graphs once for all words that have the same triples."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from story_cases import as_tensors, context_of, random_stories, tiny_model

from hf_storyend.modeling.knowledge_encoders import distinct_triples
from hf_storyend.modeling.word_rows import distinct_graphs, find_known_words, find_words


def test_picked_and_spread():
    mask = torch.tensor([[True, False, True], [False, False, True]])
    words = find_words(mask)
    numbers = torch.arange(1.0, 13.0).view(2, 3, 2)
    assert words.places.tolist() == [0, 2, 5]
    assert words.pick(numbers).tolist() == [[1, 2], [5, 6], [11, 12]]
    assert torch.equal(words.spread(words.pick(numbers)), numbers * mask.unsqueeze(-1))


def test_no_word_at_all():
    words = find_words(torch.zeros(2, 3, dtype=torch.bool))
    assert words.num_rows == 0
    assert torch.equal(words.spread(torch.ones(0, 4)), torch.zeros(2, 3, 4))


def test_every_word_where_data_may_not_be_looked_at():
    assert find_words(torch.zeros(2, 3, dtype=torch.bool, device="meta")).num_rows == 6


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), num_rows=st.integers(0, 12), num_triples=st.integers(1, 4))
def test_distinct_graphs(seed, num_rows, num_triples):
    generator = torch.Generator().manual_seed(seed)
    triples = torch.randint(3, (num_rows, num_triples), generator=generator)
    mask = torch.rand(num_rows, num_triples, generator=generator) < 0.7
    distinct, distinct_mask, which = distinct_graphs(triples, mask)

    def graphs(triples, mask):
        return [tuple(row) for row in triples.masked_fill(~mask, -1).tolist()]

    expected = graphs(triples, mask)
    assert [graphs(distinct, distinct_mask)[row] for row in which.tolist()] == expected
    assert len(distinct) == len(set(expected))


def test_distinct_triples():
    ids = torch.tensor([[[[[5, 1, 6], [7, 0, 5]], [[5, 1, 6], [9, 9, 9]]]]])
    mask = torch.tensor([[[[True, True], [True, False]]]])
    triples, index = distinct_triples(ids, mask, num_relations=10, num_words=10)
    assert sorted(map(tuple, triples.tolist())) == [(5, 1, 6), (7, 0, 5)], "what is masked is no triple"
    assert torch.equal(triples[index[mask]], ids[mask])


def test_only_words_with_triples_are_known():
    mask = torch.tensor([[[True, False], [False, False], [True, True]]])
    known = find_known_words(torch.tensor([[[4, 0], [0, 0], [5, 6]]]), mask)
    assert known.words.places.tolist() == [0, 2]
    assert known.triples.tolist() == [[4, 0], [5, 6]]


def test_equal_words_share_a_graph_vector():
    """Graph attention multiplies each distinct graph once, however often its word stands in the story."""
    stories = [([[5, 5, 6], [5, 6, 5]], [[[(5, 1, 7)]] * 3, [[(5, 1, 7)]] * 3], [7, 3])]
    model, rows = tiny_model(knowledge="graph_attention"), []
    model.encoder.knowledge.head_projection.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    model(**as_tensors(stories))
    assert rows == [1]


def test_triple_weights_are_those_of_the_places():
    for knowledge in ("graph_attention", "contextual_attention"):
        model, stories = tiny_model(knowledge=knowledge), random_stories(4)
        batch = as_tensors(stories)
        weights = model.encoder(**context_of(batch), output_attentions=True).attentions[2]
        mask = batch["triple_mask"].bool()
        assert (weights[~mask] == 0).all()
        has_triples = mask.any(dim=-1)
        torch.testing.assert_close(weights.sum(dim=-1), has_triples.to(weights.dtype))

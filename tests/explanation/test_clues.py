"""Clues: relevance propagated through the attentions, and links at the highest weights."""

from __future__ import annotations

import pytest
import torch


def test_relevance_is_propagated_sentence_by_sentence(explain_story, tokenizer):
    """Computed once more, from the matrices."""
    explanation = explain_story("ie-msa-ca")
    num_words = sum(word.word != tokenizer.eos_token for word in explanation.words)
    relevance = torch.ones(num_words) / num_words
    for clues in explanation.clues:
        number = clues.sentence
        propagated = torch.zeros(len(explanation.sentences[number - 1]))
        for matrix in explanation.attentions:
            if (matrix.query_sentence, matrix.key_sentence) == (number + 1, number):
                weights = torch.tensor(matrix.weights)[: len(relevance)]
                if matrix.kind == "knowledge":
                    weights = weights * torch.tensor([bool(graph) for graph in explanation.graphs[number - 1]])
                propagated += relevance @ weights
        relevance = propagated / propagated.sum()
        by_position = sorted(clues.words, key=lambda word: word.position)
        torch.testing.assert_close(torch.tensor([word.weight for word in by_position]), relevance, atol=1e-5, rtol=0)
    assert [clues.sentence for clues in explanation.clues] == [4, 3, 2, 1]


@pytest.mark.parametrize("system", ["seq2seq", "hlstm"])
def test_without_a_chain_relevance_sums_to_1_over_the_story(system, explain_story):
    explanation = explain_story(system)
    assert sum(word.weight for clues in explanation.clues for word in clues.words) == pytest.approx(1)
    assert {link.query_sentence for link in explanation.links} <= {5}


def test_links_are_the_highest_weights_of_words_that_are_no_punctuation(explain_story, tokenizer):
    explanation = explain_story("ie-msa-ga")
    matrices = {(m.kind, m.query_sentence, m.key_sentence): m.weights for m in explanation.attentions}
    assert {link.query_sentence for link in explanation.links} == {2, 3, 4, 5}
    for link in explanation.links:
        row = matrices[link.kind, link.query_sentence, link.key_sentence][link.query_position - 1]
        assert row[link.key_position - 1] == pytest.approx(link.weight)
        if link.kind == "state":
            assert link.weight == pytest.approx(max(row))
        else:
            assert explanation.has_triples(link.key_sentence, link.key_position)
        assert explanation.words_of(link.query_sentence)[link.query_position - 1] not in (".", tokenizer.eos_token)

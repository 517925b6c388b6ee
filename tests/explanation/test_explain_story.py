"""Explanations: the measured numbers with words in the place of ids, for every system and kind of story."""

from __future__ import annotations

import json
import math

import pytest
import torch

from hf_storyend.explanation import explain
from hf_storyend.explanation.inference import generate_endings, teacher_forced_pass
from hf_storyend.explanation.story import tokenize_story
from hf_storyend.systems import SYSTEMS

WITH_KNOWLEDGE = [name for name, system in SYSTEMS.items() if system.knowledge]
GENERATION = {"max_new_tokens": 6, "num_beams": 1}


def as_tensor(explanation, words):
    """Weights as the model orders them: [K, L]."""
    weights = torch.zeros(len(explanation.sentences), max(map(len, explanation.sentences)))
    for word in words:
        weights[word.sentence - 1, word.position - 1] = word.weight
    return weights


@pytest.mark.parametrize("system", SYSTEMS)
def test_weights_and_probabilities_are_those_of_the_teacher_forced_pass(system, make_system, tokenizer, story):
    model = make_system(system)
    explanation = explain(model, tokenizer, story, **GENERATION)
    tokenized = tokenize_story(model, tokenizer, story)
    (ids,) = generate_endings(model, tokenized, **GENERATION)
    output = teacher_forced_pass(model, tokenized, ids)
    assert len(explanation.words) == len(ids)
    for number, word in enumerate(explanation.words):
        torch.testing.assert_close(as_tensor(explanation, word.state_attention), output.state_attention[number])
        assert word.probability == pytest.approx(math.exp(output.log_probabilities[number]), rel=1e-5)
        if SYSTEMS[system].knowledge:
            total = sum(graph.weight for graph in word.knowledge_attention) + word.empty_graph_attention
            assert total == pytest.approx(float(output.knowledge_attention[number].sum()))
    assert explanation.log_probability == pytest.approx(sum(word.log_probability for word in explanation.words))


@pytest.mark.parametrize("system", WITH_KNOWLEDGE)
def test_triples_share_the_weight_of_their_graph(system, explain_story, tokenizer):
    for word in explain_story(system).words:
        for graph in word.knowledge_attention:
            own = [t for t in word.triple_attention if (t.sentence, t.position) == (graph.sentence, graph.position)]
            assert sum(triple.weight for triple in own) == pytest.approx(graph.weight, rel=1e-4)
            known = set(tokenizer.knowledge.of(graph.word.lower()))
            assert {(triple.head, triple.relation, triple.tail) for triple in own} == known
        weights = [triple.weight for triple in word.triple_attention]
        assert weights == sorted(weights, reverse=True)


def test_an_incremental_ending_attends_to_the_last_sentence_only(explain_story):
    explanation = explain_story("ie-msa-ga")
    assert {read.sentence for word in explanation.words for read in word.state_attention} == {4}
    graphs = {graph.word for word in explanation.words for graph in word.knowledge_attention}
    assert graphs == {"burnt", "cake", "oven"}


@pytest.mark.parametrize("system", ["seq2seq", "hlstm"])
def test_endings_of_other_systems_attend_to_all_sentences(system, explain_story):
    explanation = explain_story(system)
    assert {read.sentence for word in explanation.words for read in word.state_attention} == {1, 2, 3, 4}
    assert sum(read.weight for read in explanation.words[0].state_attention) == pytest.approx(1, abs=1e-5)
    pairs = {(matrix.query_sentence, matrix.key_sentence) for matrix in explanation.attentions}
    assert pairs == {(5, n) for n in (1, 2, 3, 4)}
    assert any("no chain of clues" in note for note in explanation.notes)


def test_a_model_without_knowledge_has_no_graphs(explain_story):
    explanation = explain_story("ie")
    assert explanation.graphs is None
    assert {matrix.kind for matrix in explanation.attentions} == {"state"}
    for word in explanation.words:
        assert word.knowledge_attention is word.triple_attention is word.empty_graph_attention is None
    assert any("no knowledge" in note for note in explanation.notes)


def test_oov_words_are_listed_and_can_be_copied(make_system, tokenizer, story):
    model = make_system("ie-msa-ga-copy")
    copy_id = int(tokenizer([story], return_tensors="pt")["copy_ids"][0, 1, 3])
    explanation = explain(model, tokenizer, story, max_new_tokens=2, prefix_allowed_tokens_fn=lambda *_: [copy_id])
    assert explanation.oov_positions == [(2, 4)]
    assert [word.word for word in explanation.words] == ["Zorba", "Zorba"]
    assert [(place.sentence, place.position) for place in explanation.words[0].sources.story] == [(2, 4)]
    assert explanation.words[0].sources.vocabulary == 0 and explanation.words[0].sources.main == "story"
    assert "Not in the vocabulary: Zorba." in explanation.notes
    assert "cut off" in explanation.notes[-1]


@pytest.mark.parametrize("system", SYSTEMS)
def test_sources_are_the_parts_of_the_models_probability(system, make_system, tokenizer, story):
    model = make_system(system)
    explanation = explain(model, tokenizer, story, **GENERATION)
    tokenized = tokenize_story(model, tokenizer, story)
    (ids,) = generate_endings(model, tokenized, **GENERATION)
    parts = model.word_sources(labels=torch.tensor([ids]), **tokenized.tensors)
    for step, word in enumerate(explanation.words):
        sources, totals = word.sources, word.sources.totals()
        assert sum(totals.values()) == pytest.approx(1, abs=1e-12)
        assert sources.vocabulary * word.probability == pytest.approx(float(parts.vocabulary[0, step]), rel=1e-4)
        assert totals["story"] * word.probability == pytest.approx(float(parts.places[0, step].sum()), rel=1e-4)
        assert totals["knowledge"] * word.probability == pytest.approx(float(parts.triples[0, step].sum()), rel=1e-4)
        assert all(place.word.lower() == word.word.lower() for place in sources.story)
    assert explanation.has_sources == (SYSTEMS[system].copy or SYSTEMS[system].tail_pointer)


def test_a_tail_pointer_alone_has_graphs_without_attention(explain_story):
    explanation = explain_story("ie-copy-tails")
    oven = explanation.graphs[0][6]
    assert [(triple.head, triple.relation, triple.tail) for triple in oven] == [
        ("oven", "UsedFor", "cake"),
        ("oven", "AtLocation", "kitchen"),
    ]
    assert {triple.weight for triple in oven} == {None}
    assert {matrix.kind for matrix in explanation.attentions} == {"state"}
    assert all(word.triple_attention is None for word in explanation.words)


@pytest.mark.parametrize(
    ("system", "expected", "unexpected"),
    [
        ("ie", ["reads no knowledge", "All words come from the vocabulary"], ["tail pointer"]),
        ("ie-copy", ["reads no knowledge"], ["tail pointer", "All words"]),
        ("ie-msa-ga", ["no word comes from one", "All words come from the vocabulary"], ["reads no knowledge"]),
        ("ie-copy-tails", ["by its tail pointer alone"], ["reads no knowledge", "All words", "no word comes"]),
        ("ie-msa-ca-copy-tails", [], ["reads no knowledge", "All words", "no word comes", "tail pointer"]),
    ],
)
def test_notes_are_right_for_the_system(system, expected, unexpected, explain_story):
    notes = " ".join(explain_story(system).notes)
    assert all(text in notes for text in expected) and not any(text in notes for text in unexpected)


@pytest.mark.parametrize("system", ["ie-copy-tails", "ie-msa-ga-copy-tails"])
def test_evidence_is_the_triples_that_words_came_from(system, make_system, tokenizer, story):
    model, triple = make_system(system), ("film", "Causes", "burn")
    tokenizer.knowledge.user_weight = 30.0
    tokenizer.knowledge.forms = {"burn": ["burn", "cakes"]}
    tokenizer.add_triples([])
    explanation = explain(model, tokenizer, story, triples=[triple], max_new_tokens=2)
    best = explanation.evidence[0]
    assert best.triple == triple and best.ending_word in ("burn", "cakes") and best.share > 0.9
    assert (best.word, best.sentence, best.position) == ("film", 2, 8)
    assert explanation.effects.of_triple(triple).factor > 10
    shares = [item.share for item in explanation.evidence]
    assert shares == sorted(shares, reverse=True)


def test_triples_of_one_call_are_in_the_graphs(make_system, tokenizer, story):
    model = make_system("ie-msa-ga")
    triple = ("oven", "Causes", "smoke")
    without, with_triple = (explain(model, tokenizer, story, triples=own, **GENERATION) for own in (None, [triple]))

    def triples_of(explanation):
        return {(t.head, t.relation, t.tail) for word in explanation.words for t in word.triple_attention}

    assert triple in triples_of(with_triple) and triple not in triples_of(without)
    with pytest.raises(ValueError, match="`triples`: no word of the story has the triple"):
        explain(model, tokenizer, story, triples=[("friday", "RelatedTo", "smoke")])
    with pytest.raises(ValueError, match="reads no knowledge"):
        explain(make_system("ie"), tokenizer, story, triples=[triple])


def test_a_string_and_its_sentences_are_one_story(explain_story, story):
    assert explain_story("ie-msa-ga", " ".join(story)) == explain_story("ie-msa-ga", story)


def test_one_sentence_is_enough(explain_story):
    explanation = explain_story("ie-msa-ga", "Anna put a cake in the oven.")
    assert [(matrix.query_sentence, matrix.key_sentence) for matrix in explanation.attentions] == [(2, 1), (2, 1)]
    assert {link.query_sentence for link in explanation.links} == {2}


def test_an_ending_without_words_is_explained(explain_story, tokenizer):
    end = tokenizer.eos_token_id
    explanation = explain_story("ie-msa-ga", max_new_tokens=2, prefix_allowed_tokens_fn=lambda *_: [end])
    assert explanation.ending == "" and [word.word for word in explanation.words] == ["</s>"]
    assert "an ending without words" in explanation.to_markdown()


@pytest.mark.parametrize(
    ("story", "message"),
    [("", "no sentence"), ([], "no sentence"), ([1], "`story` must be"), (["Anna.", " "], "Sentence 2")],
)
def test_invalid_stories_are_refused(make_system, tokenizer, story, message):
    with pytest.raises(ValueError, match=message):
        explain(make_system("ie"), tokenizer, story)


def test_several_endings_at_once_are_refused(explain_story):
    with pytest.raises(ValueError, match="`num_return_sequences` gave 2"):
        explain_story("ie", num_beams=2, num_return_sequences=2)


def test_json_has_all_content(explain_story):
    explanation = explain_story("ie-msa-ca-copy")
    content = json.loads(explanation.to_json())
    assert content == explanation.to_dict()
    assert content["sentences"][0] == ["Anna", "put", "a", "cake", "in", "the", "oven", "."]
    assert content["words"][0]["triple_attention"][0].keys() == {
        *("sentence", "position", "word", "head", "relation", "tail", "weight")
    }
    assert math.exp(content["log_probability"]) <= 1

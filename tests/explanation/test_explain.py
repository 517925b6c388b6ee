"""What an explanation says is what the model did: weights, probabilities, triples, copies and clues."""

from __future__ import annotations

import json
import math

import pytest
import torch

from hf_storyend.explanation import explain
from hf_storyend.systems import SYSTEMS

KNOWING = [name for name, system in SYSTEMS.items() if system.knowledge]
GENERATION = {"max_new_tokens": 6}


def spread(explanation, reads):
    """Weights as the model orders them: [K, L], zero where nothing was read."""
    num_words = max(map(len, explanation.sentences))
    weights = torch.zeros(len(explanation.sentences), num_words)
    for read in reads:
        weights[read.sentence - 1, read.position - 1] = read.weight
    return weights


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_says_what_generating_step_by_step_did(system, make_system, tokenizer, story):
    """The teacher-forced pass sees the same attentions and probabilities as `generate()` had."""
    model = make_system(system)
    explanation = explain(model, tokenizer, story, **GENERATION)
    inputs = tokenizer([story], return_tensors="pt")
    steps = model.generate(
        **inputs, **GENERATION, return_dict_in_generate=True, output_attentions=True, output_logits=True
    )
    ids = steps.sequences[0, 1:].tolist()
    assert len(explanation.words) == len(ids)
    for number, (word, word_id) in enumerate(zip(explanation.words, ids, strict=True)):
        given = steps.cross_attentions[number][0].flatten()  # of the one layer that attends
        weights = spread(explanation, word.words)
        weights = weights[-1] if system.startswith("ie") else weights.flatten()
        torch.testing.assert_close(weights, given, atol=1e-6, rtol=1e-4)
        probability = steps.logits[number][0].softmax(dim=-1)[word_id]
        assert word.probability == pytest.approx(float(probability), rel=1e-4)
        if SYSTEMS[system].knowledge:
            given = steps.decoder_attentions[number][0].flatten()
            assert sum(read.weight for read in word.graphs) + word.empty_graphs == pytest.approx(float(given.sum()))
    assert explanation.log_probability == pytest.approx(sum(word.log_probability for word in explanation.words))


@pytest.mark.parametrize("system", ["seq2seq", "ie-msa-ca-copy"])
def test_it_says_what_the_winning_beam_did(system, make_system, tokenizer, story):
    model, settings = make_system(system), {**GENERATION, "num_beams": 3}
    explanation = explain(model, tokenizer, story, **settings)
    inputs = tokenizer([story], return_tensors="pt")
    steps = model.generate(
        **inputs, **settings, return_dict_in_generate=True, output_attentions=True, output_logits=True
    )
    rows, ids = steps.beam_indices[0].tolist(), steps.sequences[0, 1:].tolist()
    for number, word in enumerate(explanation.words):
        given = steps.cross_attentions[number][0][rows[number]].flatten()
        weights = spread(explanation, word.words)
        weights = weights[-1] if system.startswith("ie") else weights.flatten()
        torch.testing.assert_close(weights, given, atol=1e-6, rtol=1e-4)
        probability = steps.logits[number][rows[number]].softmax(dim=-1)[ids[number]]
        assert word.probability == pytest.approx(float(probability), rel=1e-4)


@pytest.mark.parametrize("system", KNOWING)
def test_triples_share_the_weight_of_their_graph(system, make_system, tokenizer, story):
    explanation = explain(make_system(system), tokenizer, story, **GENERATION)
    for word in explanation.words:
        for graph in word.graphs:
            own = [t for t in word.triples if (t.sentence, t.position) == (graph.sentence, graph.position)]
            assert sum(triple.weight for triple in own) == pytest.approx(graph.weight, rel=1e-4)
            known = set(tokenizer.knowledge.of(graph.word.lower()))
            assert {(triple.head, triple.relation, triple.tail) for triple in own} == known
        assert [triple.weight for triple in word.triples] == sorted((t.weight for t in word.triples), reverse=True)


def test_the_incremental_ending_reads_the_last_sentence_only(make_system, tokenizer, story):
    explanation = explain(make_system("ie-msa-ga"), tokenizer, story, **GENERATION)
    assert {read.sentence for word in explanation.words for read in word.words} == {4}
    assert {graph.word for word in explanation.words for graph in word.graphs} == {"burnt", "cake", "oven"}


@pytest.mark.parametrize("system", ["seq2seq", "hlstm"])
def test_other_readers_read_all_sentences_and_say_so(system, make_system, tokenizer, story):
    explanation = explain(make_system(system), tokenizer, story, **GENERATION)
    assert {read.sentence for word in explanation.words for read in word.words} == {1, 2, 3, 4}
    assert sum(read.weight for read in explanation.words[0].words) == pytest.approx(1, abs=1e-5)
    assert {(matrix.reader, matrix.source) for matrix in explanation.attentions} == {(5, n) for n in (1, 2, 3, 4)}
    assert any("no chain of clues" in note for note in explanation.notes)
    assert sum(read.weight for clues in explanation.clues for read in clues.words) == pytest.approx(1)


def test_without_knowledge_nothing_is_said_of_it(make_system, tokenizer, story):
    explanation = explain(make_system("ie"), tokenizer, story, **GENERATION)
    assert explanation.graphs is None
    assert {matrix.kind for matrix in explanation.attentions} == {"state"}
    assert all(word.graphs is word.triples is word.empty_graphs is None for word in explanation.words)
    assert any("no knowledge" in note for note in explanation.notes)
    assert "triples" not in explanation.to_markdown().split("## Notes")[0]


def test_clues_are_followed_back_sentence_by_sentence(make_system, tokenizer, story):
    """Computed once more by hand from the matrices."""
    explanation = explain(make_system("ie-msa-ca"), tokenizer, story, **GENERATION)
    ids = [word for word in explanation.words if word.word != tokenizer.eos_token]
    relevance = torch.ones(len(ids)) / len(ids)
    for clues in explanation.clues:
        number = clues.sentence
        read = torch.zeros(len(explanation.sentences[number - 1]))
        for matrix in explanation.attentions:
            if (matrix.reader, matrix.source) == (number + 1, number):
                weights = torch.tensor(matrix.weights)[: len(relevance)]
                if matrix.kind == "knowledge":
                    weights = weights * torch.tensor([bool(graph) for graph in explanation.graphs[number - 1]])
                read += relevance @ weights
        relevance = read / read.sum()
        by_position = sorted(clues.words, key=lambda word: word.position)
        torch.testing.assert_close(torch.tensor([word.weight for word in by_position]), relevance, atol=1e-5, rtol=0)
    assert [clues.sentence for clues in explanation.clues] == [4, 3, 2, 1]


def test_links_point_at_what_was_read_most(make_system, tokenizer, story):
    explanation = explain(make_system("ie-msa-ga"), tokenizer, story, **GENERATION)
    matrices = {(m.kind, m.reader, m.source): m.weights for m in explanation.attentions}
    assert {link.reader for link in explanation.links} == {2, 3, 4, 5}
    for link in explanation.links:
        row = matrices[link.kind, link.reader, link.source][link.reader_position - 1]
        assert row[link.source_position - 1] == pytest.approx(link.weight)
        if link.kind == "state":
            assert link.weight == pytest.approx(max(row))
        else:
            assert explanation.graphs[link.source - 1][link.source_position - 1]
        assert explanation.words_of(link.reader)[link.reader_position - 1] not in (".", tokenizer.eos_token)


@pytest.mark.parametrize("system", ["hlstm-copy", "ie-msa-ca-copy"])
def test_copied_words_are_the_story_s(system, make_system, tokenizer, story):
    """A model that does nothing but copy: all of a word's probability comes from where it stands."""
    model = make_system(system)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.fill_(-30)
    explanation = explain(model, tokenizer, story, **GENERATION)
    for word in explanation.words:
        assert sum(read.weight for read in word.copied) == pytest.approx(1, abs=1e-4)
        assert {read.word.lower() for read in word.copied} == {word.word.lower()}


def test_unknown_words_are_named_and_can_be_copied(make_system, tokenizer, story):
    model = make_system("ie-msa-ga-copy")
    read = tokenizer([story], return_tensors="pt")
    slot = int(read["copy_ids"][0, 1, 3])
    assert slot == len(tokenizer)
    explanation = explain(model, tokenizer, story, max_new_tokens=2, prefix_allowed_tokens_fn=lambda *_: [slot])
    assert explanation.unknown == [(2, 4)]
    assert [word.word for word in explanation.words] == ["Zorba", "Zorba"]
    assert [(r.sentence, r.position) for r in explanation.words[0].copied] == [(2, 4)]
    assert explanation.notes[0].endswith("read as unknown words: Zorba.")
    assert "cut off" in explanation.notes[1]


def test_a_triple_of_one_call_is_read(make_system, tokenizer, story):
    model = make_system("ie-msa-ga")
    triple = ("oven", "Causes", "smoke")
    plain, told = (explain(model, tokenizer, story, triples=own, **GENERATION) for own in (None, [triple]))

    def read(explanation):
        return {(t.head, t.relation, t.tail) for word in explanation.words for t in word.triples}

    assert triple in read(told) and triple not in read(plain)
    with pytest.raises(ValueError, match="`triples`: no word of the story reads"):
        explain(model, tokenizer, story, triples=[("friday", "RelatedTo", "smoke")])
    with pytest.raises(ValueError, match="reads no knowledge"):
        explain(make_system("ie"), tokenizer, story, triples=[triple])


def test_a_string_and_its_sentences_are_one_story(make_system, tokenizer, story):
    model = make_system("ie-msa-ga")
    assert explain(model, tokenizer, " ".join(story), **GENERATION) == explain(model, tokenizer, story, **GENERATION)


def test_one_sentence_is_enough(make_system, tokenizer):
    explanation = explain(make_system("ie-msa-ga"), tokenizer, "Anna put a cake in the oven.", **GENERATION)
    assert [(matrix.reader, matrix.source) for matrix in explanation.attentions] == [(2, 1), (2, 1)]
    assert {link.reader for link in explanation.links} == {2}


def test_an_ending_without_words_is_explained_too(make_system, tokenizer, story):
    end = tokenizer.eos_token_id
    explanation = explain(
        make_system("ie-msa-ga"), tokenizer, story, max_new_tokens=2, prefix_allowed_tokens_fn=lambda *_: [end]
    )
    assert explanation.ending == "" and [word.word for word in explanation.words] == ["</s>"]
    assert "an ending without words" in explanation.to_markdown()


def test_the_model_stays_as_it_was(make_system, tokenizer, story):
    model = make_system("ie-msa-ga", dropout=0.5).train()
    first, second = (explain(model, tokenizer, story, **GENERATION) for _ in range(2))
    assert model.training and first == second
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("story", "message"),
    [("", "no sentence"), ([], "no sentence"), ([1], "`story` must be"), (["Anna.", " "], "Sentence 2")],
)
def test_what_is_no_story_is_refused(make_system, tokenizer, story, message):
    with pytest.raises(ValueError, match=message):
        explain(make_system("ie"), tokenizer, story)


def test_one_ending_at_a_time(make_system, tokenizer, story):
    with pytest.raises(ValueError, match="`num_return_sequences` gave 2"):
        explain(make_system("ie"), tokenizer, story, num_beams=2, num_return_sequences=2, **GENERATION)


def test_json_holds_all_of_it(make_system, tokenizer, story):
    explanation = explain(make_system("ie-msa-ca-copy"), tokenizer, story, **GENERATION)
    content = json.loads(explanation.to_json())
    assert content == explanation.to_dict()
    assert content["sentences"][0] == ["Anna", "put", "a", "cake", "in", "the", "oven", "."]
    assert content["words"][0]["triples"][0].keys() == {
        *("sentence", "position", "word", "head", "relation", "tail", "weight")
    }
    assert math.exp(content["log_probability"]) <= 1


def test_markdown_prints_words_as_they_are(make_system, tokenizer):
    explanation = explain(make_system("ie"), tokenizer, ["Anna saw | and *stars* <b>."], **GENERATION)
    page = explanation.to_markdown()
    assert r"Anna saw \| and \*stars\* \<b\>." in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}

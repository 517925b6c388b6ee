"""Counterfactuals: the change is the one asked for, and both endings are scored in both stories."""

from __future__ import annotations

import json

import pytest
import torch

from hf_storyend import KnowledgeTable
from hf_storyend.explanation import counterfactual, explain

GENERATION = {"max_new_tokens": 6, "num_beams": 1}
USED_FOR = ("oven", "UsedFor", "cake")


def log_probability(model, tokenizer, story, ending_ids, **arguments):
    """By the model's own loss."""
    inputs = tokenizer([story], return_tensors="pt", **arguments)
    with torch.no_grad():
        output = model(**inputs, labels=torch.tensor([ending_ids]))
    return -float(output.ending_loss) * len(ending_ids)


def ids_of(model, tokenizer, story, **arguments):
    return model.generate(**tokenizer([story], return_tensors="pt", **arguments), **GENERATION)[0, 1:].tolist()


@pytest.mark.parametrize("system", ["seq2seq", "hlstm-msa-ga", "ie", "ie-msa-ca"])
@pytest.mark.parametrize("number", [1, 4])
def test_without_a_sentence(system, number, make_system, tokenizer, story):
    model = make_system(system)
    compared = counterfactual(model, tokenizer, story, without_sentence=number, **GENERATION)
    rest = [sentence for place, sentence in enumerate(story, start=1) if place != number]
    assert compared.original == explain(model, tokenizer, story, **GENERATION)
    assert compared.changed == explain(model, tokenizer, rest, **GENERATION)
    values = compared.log_probabilities()
    before, after = ids_of(model, tokenizer, story), ids_of(model, tokenizer, rest)
    for name, ids in (("original", before), ("changed", after)):
        assert values[name]["given"] == pytest.approx(log_probability(model, tokenizer, story, ids), rel=1e-4)
        assert values[name]["changed"] == pytest.approx(log_probability(model, tokenizer, rest, ids), rel=1e-4)
    assert compared.changes == [f"without sentence {number}: {story[number - 1]}"]


@pytest.mark.parametrize("system", ["ie-msa-ga", "ie-msa-ca", "hlstm-msa-ca", "ie-copy-tails"])
def test_without_a_triple_equals_a_knowledge_table_that_lacks_it(system, make_system, tokenizer, story):
    model = make_system(system)
    compared = counterfactual(model, tokenizer, story, without_triples=[USED_FOR], **GENERATION)
    table = tokenizer.knowledge
    triples = {word: [triple for triple in rows if triple != USED_FOR] for word, rows in table.triples.items()}
    tokenizer.knowledge = KnowledgeTable(table.relations, table.max_triples, triples, table.concepts, table.phrases)
    without = explain(model, tokenizer, story, **GENERATION)
    assert compared.changed.ending == without.ending
    assert compared.changed.graphs == without.graphs
    assert compared.changed.log_probability == pytest.approx(without.log_probability, rel=1e-4)
    original = compared.original.graphs[3][6]
    assert USED_FOR in [(triple.head, triple.relation, triple.tail) for triple in original]


def test_with_a_triple(make_system, tokenizer, story):
    model, triple = make_system("ie-msa-ga"), ("oven", "Causes", "smoke")
    compared = counterfactual(model, tokenizer, story, with_triples=[triple], **GENERATION)
    assert compared.changed == explain(model, tokenizer, story, triples=[triple], **GENERATION)
    original = ids_of(model, tokenizer, story)
    after = log_probability(model, tokenizer, story, original, triples=[triple])
    assert compared.log_probabilities()["original"]["changed"] == pytest.approx(after, rel=1e-4)
    assert sum(compared.original_ending_after) == pytest.approx(after, rel=1e-4)


def test_copied_words_are_mapped_to_their_ids_in_the_other_story(make_system, tokenizer):
    """Without the first sentence, the second out-of-vocabulary word has the id of the first one."""
    story = ["Zorba saw mice.", "The kraken was in the kitchen.", "Anna saw the kraken."]
    model, first_copy_id = make_system("ie-msa-ga-copy"), len(tokenizer)
    calls = iter([[tokenizer.eos_token_id], [first_copy_id]])
    compared = counterfactual(
        model,
        tokenizer,
        story,
        without_sentence=1,
        prefix_allowed_tokens_fn=lambda *_: next(calls),
        max_new_tokens=1,
        num_beams=1,
    )
    assert compared.changed.words[0].word == "kraken"
    before = explain(
        model, tokenizer, story, prefix_allowed_tokens_fn=lambda *_: [first_copy_id + 1], max_new_tokens=1
    )
    assert before.words[0].word == "kraken"
    assert compared.changed_ending_before == pytest.approx([before.words[0].log_probability], rel=1e-5)


def test_an_ending_that_copies_a_removed_word_has_no_probability(make_system, tokenizer):
    story = ["Zorba saw mice.", "Anna was in the kitchen."]
    model, copy_id = make_system("hlstm-copy"), len(tokenizer)
    calls = iter([[copy_id], [tokenizer.eos_token_id]])
    compared = counterfactual(
        model,
        tokenizer,
        story,
        without_sentence=1,
        prefix_allowed_tokens_fn=lambda *_: next(calls),
        max_new_tokens=1,
        num_beams=1,
    )
    assert compared.original.ending == "Zorba"
    assert compared.original_ending_after is None
    assert compared.log_probabilities()["original"]["changed"] is None
    assert "can't be generated any more" in compared.to_markdown()
    json.loads(compared.to_json())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "Nothing to change"),
        ({"without_sentence": 0}, "from 1 to 4, .* got 0"),
        ({"without_sentence": 5}, "from 1 to 4, .* got 5"),
        (
            {"without_triples": [("oven", "UsedFor", "smoke")]},
            r"no word of the story has the triple .*\(oven, UsedFor, cake\)",
        ),
        ({"without_triples": [("oven", "Unheard", "of")]}, "no word of the story has the triple"),
        ({"without_triples": [("oven", "UsedFor")]}, "three strings"),
        ({"with_triples": [("friday", "RelatedTo", "smoke")]}, "`with_triples`: no word of the story has the triple"),
        ({"with_triples": [("oven", "Unheard", "smoke")]}, "relation 'Unheard' is not one of"),
    ],
)
def test_invalid_changes_are_refused(make_system, tokenizer, story, change, message):
    with pytest.raises(ValueError, match=message):
        counterfactual(make_system("ie-msa-ga"), tokenizer, story, **change, **GENERATION)


def test_a_model_without_knowledge_has_no_triples_to_remove(make_system, tokenizer, story):
    with pytest.raises(ValueError, match="reads no knowledge"):
        counterfactual(make_system("ie-copy"), tokenizer, story, without_triples=[USED_FOR])


def test_a_triple_whose_head_is_out_of_the_vocabulary_can_be_added_and_removed(make_system, tokenizer, story):
    model, triple = make_system("ie-copy-tails"), ("Zorba", "Causes", "burn")
    added = counterfactual(model, tokenizer, story, with_triples=[triple], **GENERATION)
    assert [one.head for one in added.changed.graphs[1][3]] == ["zorba"]
    tokenizer.add_triples([triple])
    removed = counterfactual(model, tokenizer, story, without_triples=[triple], **GENERATION)
    assert removed.changed.graphs[1][3] == []
    assert removed.changed.log_probability == pytest.approx(added.original.log_probability, rel=1e-5)


def test_the_only_sentence_can_not_be_removed(make_system, tokenizer):
    with pytest.raises(ValueError, match="would leave nothing"):
        counterfactual(make_system("ie"), tokenizer, "Anna saw mice.", without_sentence=1)


def test_markdown_and_json_have_both_endings(make_system, tokenizer, story):
    compared = counterfactual(make_system("ie-msa-ga"), tokenizer, story, without_sentence=2, **GENERATION)
    page, content = compared.to_markdown(), json.loads(compared.to_json())
    assert f"without sentence 2: {story[1]}" in page
    assert content["endings"] == {"original": compared.original.ending, "changed": compared.changed.ending}
    assert content["log_probabilities"] == compared.log_probabilities()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 + 2 + len(compared.original.words)
    assert content["is_same_ending"] == (compared.original.ending == compared.changed.ending)

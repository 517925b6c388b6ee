"""Effects: each equals two calls of the model, with and without the part, for every system."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
import torch

from hf_storyend import KnowledgeTable
from hf_storyend.explanation import Effect, effects, explain
from hf_storyend.explanation.wording import effect_text
from hf_storyend.modeling.evidence import _MAX_ROWS, _MAX_WORDS, removal_effects
from hf_storyend.systems import SYSTEMS
from hf_storyend.triple_tensors import remove_triples

ENDING = "The burnt cake was in Zorba's kitchen."
TRIPLES = [("oven", "UsedFor", "cake"), ("cake", "ReceivesAction", "burn"), ("burn", "Causes", "smoke")]
READING_TRIPLES = [name for name, system in SYSTEMS.items() if system.knowledge or system.tail_pointer]


def log_probability(model, tokenizer, story, **arguments):
    """By the model's own loss."""
    inputs = tokenizer([story], text_target=[ENDING], return_tensors="pt", **arguments)
    with torch.no_grad():
        return -float(model(**inputs).ending_loss) * inputs["labels"].shape[1]


def without(table: KnowledgeTable, *triples) -> KnowledgeTable:
    kept = {word: [triple for triple in rows if triple not in triples] for word, rows in table.triples.items()}
    return KnowledgeTable(table.relations, table.max_triples, kept, table.concepts, table.phrases)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_sentence(system, make_system, tokenizer, story):
    # Zorba's name stands in sentence 3 as well, under the same id: it can be copied whichever sentence is gone.
    story[2] = "Zorba's kitchen was full of smoke."
    model = make_system(system).double()
    measured = effects(model, tokenizer, story, ENDING)
    as_given = log_probability(model, tokenizer, story)
    for number, effect in enumerate(measured.sentences, start=1):
        rest = [sentence for place, sentence in enumerate(story, start=1) if place != number]
        assert effect.sentence == number
        assert effect.effect == pytest.approx(as_given - log_probability(model, tokenizer, rest), abs=1e-6)
        assert effect.factor == pytest.approx(math.exp(effect.effect))
    assert len(measured.sentences) == 4


@pytest.mark.parametrize("system", READING_TRIPLES)
def test_a_triple_and_all_of_them(system, make_system, tokenizer, story):
    model, table = make_system(system).double(), tokenizer.knowledge
    measured = effects(model, tokenizer, story, ENDING)
    as_given = log_probability(model, tokenizer, story)
    assert {(one.head, one.relation, one.tail) for one in measured.triples} == {
        *TRIPLES,
        ("oven", "AtLocation", "kitchen"),
    }
    for triple in TRIPLES:
        tokenizer.knowledge = without(table, triple)
        expected = as_given - log_probability(model, tokenizer, story)
        assert measured.of_triple(triple).effect == pytest.approx(expected, abs=1e-6)
    assert any(abs(one.effect) > 1e-6 for one in measured.triples)
    tokenizer.knowledge = KnowledgeTable(table.relations)
    assert measured.knowledge.effect == pytest.approx(as_given - log_probability(model, tokenizer, story), abs=1e-6)


@pytest.mark.parametrize("system", ["ie-msa-ca", "ie-copy-tails"])
def test_masks_remove_triples_as_closing_up_does(system, make_system, tokenizer, story):
    model = make_system(system).double()
    inputs = dict(tokenizer([story], return_tensors="pt"))
    labels = tokenizer([story], text_target=[ENDING], return_tensors="pt")["labels"]
    removed = torch.zeros_like(inputs["triple_mask"], dtype=torch.bool)
    removed[0, 0, 3, 0] = True
    ((effect,), _) = removal_effects(model, inputs, labels[0].tolist(), [removed[0]])
    with torch.no_grad():
        losses = [
            model(**tensors, labels=labels).ending_loss
            for tensors in (inputs, remove_triples(inputs, removed, tokenizer.pad_token_id))
        ]
    assert effect["effect"] == pytest.approx(float(losses[1] - losses[0]) * labels.shape[1], abs=1e-6)
    assert abs(effect["effect"]) > 1e-6


def test_more_parts_than_fit_a_batch(make_system, tokenizer, story):
    model = make_system("ie-copy-tails").double()
    inputs = dict(tokenizer([story], return_tensors="pt"))
    masks = [torch.zeros_like(inputs["triple_mask"][0], dtype=torch.bool) for _ in range(_MAX_ROWS + 3)]
    masks[-1][0, 3, 0] = True
    found, _ = removal_effects(model, inputs, [5, 6, tokenizer.eos_token_id], masks)
    assert len(found) == len(masks) and {abs(one["effect"]) < 1e-9 for one in found[:-1]} == {True}
    assert abs(found[-1]["effect"]) > 1e-9


@pytest.mark.slow
def test_parts_of_long_stories_are_removed_few_at_a_time(make_system, tokenizer):
    """Memory does not grow with the square of the number of sentences."""
    model, sizes = make_system("ie-msa-ga"), []
    model.register_forward_pre_hook(
        lambda _, __, inputs: sizes.append(inputs["input_ids"].numel()) if "input_ids" in inputs else None,
        with_kwargs=True,
    )
    measured = effects(model, tokenizer, ["The cake in the oven was burnt " + "again " * 100] * 40, ENDING)
    assert len(measured.sentences) == 40 and len(sizes) > 20 and max(sizes) <= _MAX_WORDS


def test_triples_of_the_call(make_system, tokenizer, story):
    model, own = make_system("ie-copy-tails").double(), ("Zorba", "Causes", "burn")
    measured = effects(model, tokenizer, story, ENDING, triples=[own], without_triples=[own])
    (one,) = measured.triples
    expected = log_probability(model, tokenizer, story, triples=[own]) - log_probability(model, tokenizer, story)
    assert one.effect == pytest.approx(expected, abs=1e-6)


def test_a_copied_word_that_is_gone_makes_the_ending_impossible(make_system, tokenizer, story):
    measured = effects(make_system("ie-copy"), tokenizer, story, ENDING)
    assert [one.effect is None for one in measured.sentences] == [False, True, False, False]
    assert measured.sentences[1].factor is None and measured.knowledge is None and measured.triples == []


def test_one_sentence_can_not_be_removed(make_system, tokenizer):
    assert effects(make_system("ie"), tokenizer, "Anna put a cake in the oven.", ENDING).sentences == []


def test_triples_that_are_not_there_are_refused(make_system, tokenizer, story):
    with pytest.raises(ValueError, match="`without_triples`: no word of the story has the triple"):
        effects(make_system("ie-copy-tails"), tokenizer, story, ENDING, without_triples=[("oven", "IsA", "cake")])
    with pytest.raises(ValueError, match="reads no knowledge"):
        effects(make_system("ie-copy"), tokenizer, story, ENDING, without_triples=TRIPLES)


@pytest.mark.parametrize("system", ["ie-copy", "ie-msa-ga", "ie-copy-tails"])
def test_explanations_have_them(system, make_system, tokenizer, story):
    model = make_system(system)
    explanation = explain(model, tokenizer, story, max_new_tokens=6)
    assert explanation.to_dict()["effects"] == asdict(explanation.effects)
    assert len(explanation.effects.sentences) == 4
    if system == "ie-msa-ga":
        assert len(explanation.effects.triples) == 3 and explanation.evidence == []


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (3.14, "3.1 times less likely"),
        (0.5, "2.0 times more likely"),
        (1.04, "as likely"),
        (0.96, "as likely"),
        (1234.5, "1,234 times less likely"),
        (2e9, "2e+09 times less likely"),
    ],
)
def test_effects_in_words(factor, text):
    assert effect_text(Effect(math.log(factor), factor)) == text


def test_effects_without_a_factor_in_words():
    assert effect_text(Effect(None, None)) == "impossible"
    assert effect_text(Effect(800.0, None)) == "practically impossible"

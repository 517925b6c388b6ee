"""Words from triples: what is offered, and the exact split of a word's probability into its sources."""

import pytest
import torch
from reference import run_system, tail_masses
from story_cases import (
    END,
    NUM_SLOTS,
    START,
    TAIL_POINTING,
    UNKNOWN,
    as_tensors,
    batch_for,
    context_of,
    stories_for,
    tail_forms,
    tiny_system,
    triple_weight,
)

from hf_storyend import KnowledgeTable
from hf_storyend.systems import SYSTEMS

every_pointer = pytest.mark.parametrize("name", TAIL_POINTING)
SOMETIMES_POINTING = [*TAIL_POINTING, "seq2seq", "hlstm", "hlstm-copy", "ie-msa-ga"]


@pytest.mark.parametrize("name", SOMETIMES_POINTING)
def test_sources_make_up_the_probability_of_every_word(name):
    model, batch = tiny_system(name), batch_for(name, 1, num_stories=4)
    sources = model.word_sources(batch["labels"], **context_of(batch))
    labels, is_real = batch["labels"], batch["labels"] >= 0
    logits = model(**batch).logits.log_softmax(dim=-1)
    expected = logits.gather(2, labels.clamp(min=0).unsqueeze(2)).squeeze(2).exp() * is_real
    torch.testing.assert_close(sources.probabilities, expected)
    parts = sources.vocabulary + sources.places.sum(dim=(2, 3)) + sources.triples.sum(dim=(2, 3, 4))
    torch.testing.assert_close(parts, expected)
    assert (sources.places.sum() > 0) == SYSTEMS[name].copy
    assert (sources.triples.sum() > 0) == SYSTEMS[name].tail_pointer
    assert sources.triples.shape == (*labels.shape, *batch["triple_mask"].shape[1:])


@every_pointer
def test_every_triple_gives_what_the_equation_says(name):
    stories, system = stories_for(name, 11, num_stories=3), SYSTEMS[name]
    model, batch = tiny_system(name), as_tensors(stories)
    weights = {key.removeprefix("encoder."): value for key, value in model.state_dict().items()}
    given = {"triple_weight": triple_weight, "tail_forms": tail_forms, "num_slots": NUM_SLOTS}
    symbols = {"start_id": START, "end_id": END, "unk_id": UNKNOWN}
    _, endings = run_system(weights, system.story_encoder, system.knowledge, stories, **given, **symbols)
    sources = model.word_sources(batch["labels"], **context_of(batch))
    for row, (story, expected) in enumerate(zip(stories, endings, strict=True)):
        sentences, graphs, ending, _ = story
        for step, target in enumerate(ending):
            if target >= len(expected.logits[step]):
                assert sources.triples[row, step].sum() == 0, "a word out of the vocabulary is no tail"
                continue
            # exp(psi_g) / Z is what the vocabulary gives.
            normalizer = expected.logits[step][target].exp() / sources.vocabulary[row, step]
            shares = iter(tail_masses(weights, expected.logits[step], expected.outputs[step], expected.tails))
            for i, graph_row in enumerate(graphs):
                for j, graph in enumerate(graph_row):
                    for n in range(len(graph)):
                        mass = sum(mass for form, mass in next(shares) if form == target)
                        torch.testing.assert_close(
                            sources.triples[row, step, i, j, n], torch.as_tensor(mass / normalizer).double()
                        )


@every_pointer
def test_words_of_the_story_are_copied_and_not_offered(name):
    model, batch = tiny_system(name), batch_for(name, 2)
    encoded = model.get_encoder()(**context_of(batch))
    for row, offered in enumerate(encoded.tail_ids):
        words = set(batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist())
        assert not words & set(offered[offered >= 0].tolist())
    model.encoder.tail_pointer.is_copying = False
    unlimited = model.get_encoder()(**context_of(batch))
    assert (unlimited.tail_ids >= 0).sum() > (encoded.tail_ids >= 0).sum()


@every_pointer
def test_the_weight_of_a_triple_raises_its_tail(name):
    model, batch = tiny_system(name), batch_for(name, 3)
    with torch.no_grad():
        model.encoder.tail_pointer.gate.bias.copy_(torch.tensor([0.0, 1.0]))
    heavier = {**batch, "triple_weights": batch["triple_weights"] + 2}
    before, after = (model.word_sources(batch["labels"], **context_of(given)) for given in (batch, heavier))
    for row in range(len(batch["labels"])):
        shares = [own.triples[row].sum(dim=(1, 2, 3)) / own.probabilities[row] for own in (before, after)]
        came_from_triples = shares[0] > 0
        assert (shares[1] > shares[0])[came_from_triples].all()


@every_pointer
def test_without_forms_a_triple_offers_its_tail(name):
    model, batch = tiny_system(name), batch_for(name, 4)
    tails = batch["triple_ids"][..., 2:].where(batch["triple_mask"].unsqueeze(-1) == 1, 1)
    missing = model(**{**batch, "tail_form_ids": None})
    torch.testing.assert_close(missing.logits, model(**{**batch, "tail_form_ids": tails}).logits)
    zero = torch.zeros_like(batch["triple_weights"])
    torch.testing.assert_close(
        model(**{**batch, "triple_weights": None}).logits, model(**{**batch, "triple_weights": zero}).logits
    )


@pytest.mark.parametrize(
    "name, values, message",
    [
        ("tail_form_ids", lambda ids: ids.float(), "`tail_form_ids` must hold whole numbers"),
        ("tail_form_ids", lambda ids: ids + 1000, "`tail_form_ids` holds 10"),
        ("tail_form_ids", lambda ids: ids[:, :, :, :1], "`tail_form_ids` have one dimension more"),
        ("triple_weights", lambda weights: weights[:, :1], "`triple_weights` must be"),
        ("triple_weights", lambda weights: weights * torch.inf, "not finite"),
    ],
)
def test_bad_inputs_are_refused(name, values, message):
    model, batch = tiny_system("ie-copy-tails"), batch_for("ie-copy-tails", 5)
    with pytest.raises(ValueError, match=message):
        model(**{**batch, name: values(batch[name])})


def test_a_triple_of_the_user_takes_part_with_the_weight_of_the_strongest(tokenizer):
    tokenizer.tail_pointer = True
    tokenizer.knowledge = KnowledgeTable(
        ["UsedFor", "Causes"],
        triples={"cake": [("cake", "Causes", "film")]},
        weights={("cake", "Causes", "film"): 2.5},
        forms={"film": ["film", "watched"]},
    )
    ids = tokenizer.get_vocab()
    batch = tokenizer(
        "Anna baked a cake. Anna saw a zorbl.", triples=[("zorbl", "UsedFor", "film")], return_tensors="pt"
    )
    places = batch["triple_mask"].nonzero().tolist()
    words = [tokenizer.tokenize(sentence) for sentence in ("Anna baked a cake.", "Anna saw a zorbl.")]
    assert [words[i][j] for _, i, j, _ in places] == ["cake", "zorbl"], "a head may be out of the vocabulary"
    for _, i, j, n in places:
        assert batch["triple_weights"][0, i, j, n] == 2.5
        assert batch["tail_form_ids"][0, i, j, n].tolist() == [ids["film"], ids["watched"]]
    assert batch["triple_ids"][0, 1, -2 if words[1][-1] == "." else -1, 0, 0] == tokenizer.unk_token_id


@pytest.mark.parametrize("weight", ["strong", True, float("nan")])
def test_the_weight_of_own_triples_is_a_number(tokenizer, weight):
    with pytest.raises(ValueError, match="`triple_weight` must be a finite number"):
        tokenizer("They saw smoke.", triples=[("smoke", "Causes", "cake")], triple_weight=weight)
    with pytest.raises(ValueError, match="`triple_weight` is the weight of `triples`, and there are none"):
        tokenizer("They saw smoke.", triple_weight=3.0)


def test_the_weight_of_own_triples_can_be_chosen(tokenizer):
    tokenizer.tail_pointer = True
    own = [("smoke", "/r/Causes", "cake")]
    batch = tokenizer("They saw smoke.", triples=own, triple_weight=7.5, return_tensors="pt")
    assert batch["triple_weights"][batch["triple_mask"] == 1].tolist() == [7.5]
    assert tokenizer("They saw smoke.", triples=own, triple_weight=7.5)["triple_weights"][0][2] == [7.5]


def test_weights_counted_without_the_story_itself(tokenizer):
    tokenizer.tail_pointer = True
    triples = [("cake", "UsedFor", tail) for tail in ("film", "smoke", "cake")]
    tokenizer.knowledge = KnowledgeTable(
        ["UsedFor"], triples={"cake": triples[:2]}, weights=dict.fromkeys(triples[:2], 2.0)
    )
    ids = tokenizer.get_vocab()
    story = {"input_ids": [[ids["anna"], ids["cake"]]]}
    held_out = {"held_out_rows": [ids["cake"]] * 2, "held_out_tails": [ids["film"], ids["smoke"]]}
    batch = tokenizer.pad([{**story, **held_out, "held_out_weights": [float("nan"), 0.5]}], return_tensors="pt")
    assert batch["triple_mask"][0, 0].tolist() == [[0, 0], [0, 1]], "the first triple owes itself to this story alone"
    assert batch["triple_weights"][0, 0, 1, 1] == 0.5
    plain = tokenizer.pad([story], return_tensors="pt")
    assert plain["triple_weights"][0, 0, 1].tolist() == [2.0, 2.0], "the table itself is unchanged"

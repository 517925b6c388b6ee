"""Ablations against the model's own losses on inputs and weights that were changed by other means."""

import copy
import json
import math

import pytest
import torch
from datasets import Dataset
from small_model import small_model

from hf_storyend.data.batching import StoryCollator
from hf_storyend.evaluation import Ablations, Evaluation, ablate
from hf_storyend.evaluation.ablations import AblationRow
from hf_storyend.evaluation.triple_ablations import OtherTriples, RandomTails, are_tails, exchange_words
from hf_storyend.evaluation.uniform_attention import uniform_attention
from hf_storyend.triple_tensors import words_with_triples

KNOWLEDGE_ROWS = ["no triples", "other words' triples", "random tails"]
WITH_KNOWLEDGE = ["hlstm-msa-ga", "hlstm-msa-ca", "ie-msa-ga", "ie-msa-ca", "ie-msa-ca-copy"]
WITHOUT_KNOWLEDGE = ["seq2seq", "hlstm", "hlstm-copy", "ie", "ie-copy"]
# Words that the vocabulary lacks, in one sentence only and in two.
OOV_STORY = {
    "context": ["Anna saw Xerxes.", "Yolanda saw Anna.", "Yolanda saw mice."],
    "ending": "Xerxes saw Yolanda.",
}


# More words with triples.
TRIPLES_STORY = {"context": ["They burn cakes, trick or treat.", "Burnt oven cakes."], "ending": "The smoke was full."}


@pytest.fixture
def stories(stories) -> Dataset:
    return Dataset.from_list([*stories, OOV_STORY, TRIPLES_STORY])


def rows_of(ablations: Ablations, subset: int = 0) -> dict[str, AblationRow]:
    return {row.name: row for row in ablations.subsets[subset].rows}


def perplexity(model, batches) -> float:
    """Perplexity from the probabilities of batches of labelled inputs; copied words count as the unknown one."""
    losses = []
    for batch in batches:
        with torch.no_grad():
            probabilities = model(**batch).logits.double().softmax(dim=-1)
        for row, labels in zip(probabilities, batch["labels"], strict=True):
            for place, word in enumerate(labels[labels != -100].tolist()):
                losses.append(-math.log(probability(row[place], word, model.config)))
    return math.exp(sum(losses) / len(losses))


def probability(probabilities: torch.Tensor, word: int, config) -> float:
    if not config.copy or (word < config.vocab_size and word != config.unk_token_id):
        return float(probabilities[word])
    return float(probabilities[config.unk_token_id] + probabilities[config.vocab_size :].sum())


def batches(tokenizer, contexts, endings) -> list[dict[str, torch.Tensor]]:
    """Each story as a batch of its own."""
    pairs = zip(contexts, endings, strict=True)
    return [dict(tokenizer([context], text_target=[ending], return_tensors="pt")) for context, ending in pairs]


@pytest.mark.parametrize("system", [*WITHOUT_KNOWLEDGE, *WITH_KNOWLEDGE])
def test_every_row_against_the_models_own_probabilities(system, tokenizer, stories):
    model = small_model(system, tokenizer)
    found = rows_of(ablate(model, tokenizer, stories, batch_size=5))
    contexts, endings = stories["context"], stories["ending"]
    as_they_are = batches(tokenizer, contexts, endings)
    expected = {"as it is": perplexity(model, as_they_are)}
    if model.config.knowledge:
        without = [{name: one[name] for name in one if not name.startswith("triple")} for one in as_they_are]
        expected["no triples"] = perplexity(model, without)
    for source in ("state", "knowledge") if model.config.knowledge else ("state",):
        expected[f"uniform {source} attention"] = perplexity(with_zero_scorers(model, source), as_they_are)
    for number in (1, 2, 3):
        shortened = [remove(context, number - 1) for context in contexts]
        expected[f"without sentence {number}"] = perplexity(model, batches(tokenizer, shortened, endings))
    assert {name: found[name].perplexity for name in expected} == pytest.approx(expected, rel=1e-5)
    before = expected["as it is"]
    changes = {name: 100 * (value / before - 1) for name, value in expected.items() if name != "as it is"}
    assert {name: found[name].change for name in changes} == pytest.approx(changes, abs=1e-2)
    assert found["as it is"].change is None
    # An ablation that changed nothing would measure nothing.
    assert len({round(row.perplexity, 6) for row in found.values()}) == len(found)


def remove(context: list[str], index: int) -> list[str]:
    """The story without a sentence; as it is if it lacks that sentence or has no other."""
    shorter = [sentence for place, sentence in enumerate(context) if place != index]
    return shorter or context


def with_zero_scorers(model, source: str):
    """With weights of zero all scores are equal, which softmax turns into uniform attention."""
    changed = copy.deepcopy(model)
    names = ("state_scorer.weight", "sentence_scorer.weight") if source == "state" else ("knowledge_scorer.weight",)
    for name, weight in changed.named_parameters():
        if name.endswith(names):
            torch.nn.init.zeros_(weight)
    return changed


@pytest.mark.parametrize("system", WITHOUT_KNOWLEDGE)
def test_rows_that_do_not_apply_are_left_out(system, tokenizer, stories):
    names = list(rows_of(ablate(small_model(system, tokenizer), tokenizer, stories)))
    assert names == ["as it is", "uniform state attention", *(f"without sentence {number}" for number in (1, 2, 3))]


def test_all_rows_of_a_system_with_knowledge(tokenizer, stories):
    names = list(rows_of(ablate(small_model("ie-msa-ga", tokenizer), tokenizer, stories)))
    uniform = ["uniform state attention", "uniform knowledge attention"]
    assert names == ["as it is", *KNOWLEDGE_ROWS, *uniform, *(f"without sentence {number}" for number in (1, 2, 3))]


def test_stories_of_one_sentence_have_none_to_remove(tokenizer):
    stories = Dataset.from_list([{"context": ["Tom saw mice."], "ending": "They burn cakes."}])
    names = list(rows_of(ablate(small_model("seq2seq", tokenizer), tokenizer, stories)))
    assert names == ["as it is", "uniform state attention"]


def test_neither_batches_nor_another_run_change_the_result(tokenizer, stories):
    model = small_model("ie-msa-ca-copy", tokenizer)
    first, second = (rows_of(ablate(model, tokenizer, stories, batch_size=size)) for size in (2, 128))
    assert {name: row.perplexity for name, row in first.items()} == pytest.approx(
        {name: row.perplexity for name, row in second.items()}, rel=1e-5
    )
    other = rows_of(ablate(model, tokenizer, stories, seed=1))
    for name in KNOWLEDGE_ROWS[1:]:
        assert other[name].perplexity != pytest.approx(first[name].perplexity, rel=1e-5)


def test_no_stories(model, tokenizer, stories):
    with pytest.raises(ValueError, match="`stories` is empty"):
        ablate(model, tokenizer, stories.select([]))


@pytest.mark.parametrize("implementation", ["eager", "fused"])
@pytest.mark.parametrize("system", ["ie-msa-ga", "hlstm-msa-ca", "seq2seq"])
def test_uniform_attention_is_uniform(implementation, system, tokenizer, contexts):
    model = small_model(system, tokenizer, recurrence_implementation=implementation)
    batch = tokenizer(contexts, text_target=["Tom saw mice."] * 3, return_tensors="pt")
    before = model(**batch, output_attentions=True)
    with uniform_attention(model, "state"):
        output = model(**batch, output_attentions=True)
    after = model(**batch, output_attentions=True)
    weights = output.state_attentions
    for story, row in enumerate(weights):
        real = row[row > 0].view(row.shape[0], -1)
        assert real.shape[1] > 1
        assert_uniform(system, real, contexts[story], tokenizer)
    assert not torch.allclose(before.state_attentions, weights)
    assert torch.equal(before.logits, after.logits)
    if system == "ie-msa-ga":
        assert not torch.allclose(before.encoder_state_attentions, output.encoder_state_attentions)
        steps = output.encoder_state_attentions[0, 1]
        assert all(len(set(step[step > 0].tolist())) == 1 for step in steps if step.any())


def assert_uniform(system: str, weights: torch.Tensor, context: list[str], tokenizer) -> None:
    """The same weight for all words; in a hierarchy for all sentences, and within each for all words."""
    if system != "hlstm-msa-ca":
        assert torch.allclose(weights, torch.full_like(weights, 1 / weights.shape[1]))
        return
    lengths = [len(tokenizer.tokenize(sentence)) for sentence in context]
    expected = [1 / len(context) / length for length in lengths for _ in range(length)]
    assert torch.allclose(weights, torch.tensor(expected).expand_as(weights))


def test_uniform_attention_ends_with_an_error(tokenizer, contexts):
    model = small_model("ie-msa-ga", tokenizer)
    batch = tokenizer(contexts, text_target=["Tom saw mice."] * 3, return_tensors="pt")
    before = model(**batch).logits
    with pytest.raises(RuntimeError), uniform_attention(model, "knowledge"):
        assert not torch.equal(model(**batch).logits, before)
        raise RuntimeError
    assert torch.equal(model(**batch).logits, before)
    with (
        pytest.raises(ValueError, match="no knowledge attention"),
        uniform_attention(small_model("ie", tokenizer), "knowledge"),
    ):
        pass


def graphs_of(batch) -> list[list[list[int]]]:
    """The triples of each word that has any."""
    words = zip(batch["triple_ids"].flatten(0, 2), batch["triple_mask"].flatten(0, 2), strict=True)
    return [ids[mask == 1].tolist() for ids, mask in words if mask.any()]


def test_other_words_triples_are_the_same_triples_at_other_words(tokenizer, tokenised):
    batch = StoryCollator(tokenizer)(list(tokenised))
    change = OtherTriples(tokenizer, tokenised, seed=3)
    changed, rows = change(batch, list(range(len(tokenised)))), list(range(len(tokenised)))
    assert sorted(graphs_of(changed)) == sorted(graphs_of(batch)) != graphs_of(batch)
    assert torch.equal(words_with_triples(changed), words_with_triples(batch))
    again = OtherTriples(tokenizer, tokenised, seed=3)(batch, rows)
    assert torch.equal(changed["triple_ids"], again["triple_ids"])
    some = change(StoryCollator(tokenizer)([tokenised[row] for row in (7, 2)]), [7, 2])
    assert graphs_of(some) == graphs_of({name: changed[name][[7, 2]] for name in ("triple_ids", "triple_mask")})


@pytest.mark.parametrize("words", [[4, 4, 9, 9], [1, 2, 3], [5, 6, 5, 7, 5, 8, 6], [2, 1]])
def test_words_are_exchanged_for_different_ones(words):
    for seed in range(20):
        sources = exchange_words(torch.tensor(words), seed)
        assert sorted(sources.tolist()) == list(range(len(words)))
        assert all(words[source] != word for word, source in zip(words, sources.tolist(), strict=True))


@pytest.mark.parametrize("words", [[], [3], [3, 3, 3, 4]])
def test_words_without_enough_others_are_still_permuted(words):
    assert sorted(exchange_words(torch.tensor(words, dtype=torch.int64), 0).tolist()) == list(range(len(words)))


def test_random_tails_are_other_words_and_no_symbols(tokenizer, tokenised):
    batch = StoryCollator(tokenizer)(list(tokenised))
    vocab_size = len(tokenizer)
    changed = RandomTails(tokenizer, vocab_size, seed=5)(batch, list(range(len(tokenised))))
    mask = batch["triple_mask"] == 1
    before, after = batch["triple_ids"][mask], changed["triple_ids"][mask]
    assert torch.equal(before[:, :2], after[:, :2]) and (before[:, 2] != after[:, 2]).all()
    assert not set(after[:, 2].tolist()) & set(tokenizer.all_special_ids)
    assert len(after[:, 2].unique()) == len(before[:, 2].unique())
    again = RandomTails(tokenizer, vocab_size, seed=5)(batch, [])
    assert torch.equal(again["triple_ids"], changed["triple_ids"])


def test_random_tails_bring_their_forms(tokenizer, tokenised):
    batch = StoryCollator(tokenizer)(list(tokenised))
    forms = {word: [word, "smoke"] for word in tokenizer.get_vocab()}
    tokenizer.knowledge.forms = forms
    batch["tail_form_ids"] = batch["triple_ids"][..., 2:]
    changed = RandomTails(tokenizer, len(tokenizer))(batch, [])
    smoke, pad = tokenizer.convert_tokens_to_ids("smoke"), tokenizer.pad_token_id
    for story, *place in batch["triple_mask"].nonzero().tolist():
        tail = int(changed["triple_ids"][(story, *place)][2])
        in_story = batch["input_ids"][story].unique().tolist()
        expected = [pad if word in in_story else word for word in (tail, smoke)]
        assert changed["tail_form_ids"][(story, *place)].tolist() == expected


def test_tails_are_words_that_a_triple_of_the_story_offers(tokenizer):
    contexts = [["Anna put a cake in the oven."], ["Tom saw mice."]]
    batch = tokenizer(contexts, text_target=["The kitchen was full.", "The kitchen was full."], return_tensors="pt")
    expected = torch.zeros_like(batch["labels"], dtype=torch.bool)
    expected[0, 1] = True  # (oven, AtLocation, kitchen)
    assert torch.equal(are_tails(batch, len(tokenizer)), expected)
    full = tokenizer.convert_tokens_to_ids("full")
    forms = batch["triple_ids"][..., 2:].expand(-1, -1, -1, -1, 2).clone()
    forms[..., 1] = full
    expected[0, 3] = True
    # The other story has no triple: what stands at its padding counts for nothing.
    assert torch.equal(are_tails({**batch, "tail_form_ids": forms}, len(tokenizer)), expected)
    without = {name: batch[name] for name in ("input_ids", "labels")}
    assert not are_tails(without, len(tokenizer)).any()


def test_perplexity_of_tails(tokenizer, stories):
    model = small_model("ie-msa-ca", tokenizer)
    ablations = ablate(model, tokenizer, stories)
    found, losses, shortened_losses = rows_of(ablations), [], []
    for context, ending in zip(stories["context"], stories["ending"], strict=True):
        (batch,) = batches(tokenizer, [context], [ending])
        offered = batch["triple_ids"][..., 2][batch["triple_mask"] == 1].tolist()
        (shortened,) = batches(tokenizer, [remove(context, 0)], [ending])
        with torch.no_grad():
            own, other = (model(**one).logits[0].log_softmax(dim=-1) for one in (batch, shortened))
        for place, word in enumerate(batch["labels"][0].tolist()):
            if word in offered:
                losses.append(-float(own[place, word]))
                shortened_losses.append(-float(other[place, word]))
    assert ablations.subsets[0].num_tails == len(losses) > 0
    expected, shortened_expected = (math.exp(sum(some) / len(some)) for some in (losses, shortened_losses))
    assert found["as it is"].tail_perplexity == pytest.approx(expected, rel=1e-5)
    # Which words are tails is decided by the story as it is, though the sentence with their triples is gone.
    assert found["without sentence 1"].tail_perplexity == pytest.approx(shortened_expected, rel=1e-5)
    change = 100 * (shortened_expected / expected - 1)
    assert found["without sentence 1"].tail_change == pytest.approx(change, abs=1e-2)


def test_stories_with_rare_words_are_a_subset(tokenizer, stories):
    """In the training stories every word but the mice's is frequent."""
    model = small_model("ie", tokenizer)
    frequent = [
        {"context": story["context"], "ending": story["ending"]} for story in stories if "mice" not in str(story)
    ] * 20
    ablations = ablate(model, tokenizer, stories, training_stories=Dataset.from_list(frequent))
    is_rare = ["mice" in " ".join(context[-2:]) for context in stories["context"]]
    rare = [row for row, flag in enumerate(is_rare) if flag]
    assert 0 < len(rare) < len(stories)
    alone = ablate(model, tokenizer, stories.select(rare))
    everything, subset = ablations.subsets
    assert (everything.num_stories, subset.num_stories) == (len(stories), len(rare))
    assert subset.num_words == alone.subsets[0].num_words < everything.num_words
    found, expected = rows_of(ablations, 1), rows_of(alone)
    assert {name: found[name].perplexity for name in expected} == pytest.approx(
        {name: row.perplexity for name, row in expected.items()}, rel=1e-5
    )
    assert ablations.metrics() == {"perplexity_rare_words": subset.rows[0].perplexity}
    assert ablations.notes == ()


def test_what_was_not_measured_is_said(tokenizer, stories):
    model = small_model("seq2seq", tokenizer)
    without = ablate(model, tokenizer, stories)
    assert len(without.subsets) == 1 and without.metrics() == {}
    assert "not measured, there are no training stories" in without.to_markdown()
    frequent = Dataset.from_list([*stories] * 20)
    none = ablate(model, tokenizer, stories, training_stories=frequent)
    assert len(none.subsets) == 1 and "stories with rare words: there are none" in none.to_markdown()


def test_as_a_table_and_as_json(tokenizer, stories):
    ablations = ablate(small_model("ie-msa-ga", tokenizer), tokenizer, stories)
    row, first = rows_of(ablations)["no triples"], ablations.subsets[0]
    table = ablations.to_markdown()
    assert table.startswith(f"| ablation, {len(stories)} stories | perplexity | change | ... of the {first.num_tails}")
    assert f"| no triples | {row.perplexity:.2f} | {row.change:+.1f} % | {row.tail_perplexity:.2f} |" in table
    assert f"| as it is | {first.rows[0].perplexity:.2f} |  | {first.rows[0].tail_perplexity:.2f} |  |" in table
    assert Ablations.from_dict(json.loads(json.dumps(ablations.to_dict()))) == ablations
    evaluation = Evaluation({"perplexity": 3.0}, ablations=ablations)
    assert table in evaluation.to_markdown() and json.loads(evaluation.to_json())["ablations"] == ablations.to_dict()

"""Several endings of a story are written, and the ending ranker chooses: scores, candidates, and the choice."""

import pytest
import torch
from small_model import small_model
from small_tokenizer import small_tokenizer

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.modeling.candidates import GumbelNoise, choose_endings, generate_endings, rank_endings
from hf_storyend.modeling.decoding import NUM_CANDIDATES, default_arguments
from hf_storyend.modeling.ending_ranker import MAX_STORY_WORDS, ranker_inputs
from hf_storyend.modeling.endings import write_endings
from hf_storyend.systems import SYSTEMS

STORIES = [
    "Anna put a cake in the oven. Then Anna and Zorba watched a long film. They didn't hear the timer!",
    "Tom opened the window.",
]
ENDINGS = [
    ["The kitchen was full of smoke.", "Zorba!", "They burn cakes."],
    ["We saw mice.", "Why?", "Tom asked Anna."],
]
SEARCH = {"num_beams": 3, "max_new_tokens": 5}
SIZES = {"ranker_size": 8, "ranker_embedding_size": 6, "num_ranker_layers": 2, "num_ranker_heads": 2}


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def ranking_model(tokenizer, system="ie-msa-ca-copy-tails", **settings):
    return small_model(system, tokenizer, **SIZES, **settings)


def labels_of(tokenizer, stories=STORIES, endings=ENDINGS):
    rows = [(story, text) for story, texts in zip(stories, endings, strict=True) for text in texts]
    read = tokenizer([row[0] for row in rows], text_target=[row[1] for row in rows], return_tensors="pt")
    return read["labels"].unflatten(0, (len(stories), -1))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_can_have_a_ranker(system, tokenizer):
    model = ranking_model(tokenizer, system)
    inputs = tokenizer(STORIES, return_tensors="pt")
    ranked = model.rank_endings(labels_of(tokenizer), **inputs)
    assert ranked.scores.shape == ranked.log_probabilities.shape == (2, 3)
    assert ranked.scores.isfinite().all()


def test_log_probabilities_are_the_model_s(tokenizer):
    model, inputs, labels = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt"), labels_of(tokenizer)
    ranked = model.rank_endings(labels, **inputs)
    for row in range(2):
        for number in range(3):
            one = {name: tensor[row : row + 1] for name, tensor in inputs.items()}
            ending = labels[row, number][labels[row, number] >= 0][None]
            loss = model(**one, labels=ending).ending_loss
            torch.testing.assert_close(ranked.log_probabilities[row, number], -loss * ending.shape[1])


def test_a_score_depends_on_neither_company_nor_padding(tokenizer):
    model, inputs = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt")
    together = model.rank_endings(labels_of(tokenizer), **inputs).scores
    for row, (story, texts) in enumerate(zip(STORIES, ENDINGS, strict=True)):
        alone = tokenizer([story], return_tensors="pt")
        for number, text in enumerate(texts):
            score = model.rank_endings(labels_of(tokenizer, [story], [[text]]), **alone).scores
            torch.testing.assert_close(score[0, 0], together[row, number], rtol=1e-4, atol=1e-5)


def read_by_ranker(model, tokenizer, stories=STORIES, endings=ENDINGS):
    """The arguments of the ranker, with log probabilities that say nothing."""
    inputs = tokenizer(stories, return_tensors="pt")
    words = {name: inputs[name] for name in ("input_ids", "attention_mask", "copy_ids")}
    read = ranker_inputs(model.config, labels_of(tokenizer, stories, endings), **words)
    return {**read, "log_probabilities": torch.zeros(read["num_words"].shape)}


def test_scores_read_every_word_of_story_and_ending(tokenizer):
    """A change of any word changes the score of the story's endings, and no other one."""
    model = ranking_model(tokenizer).double()
    read = read_by_ranker(model, tokenizer)
    scores = model.ranker(**read)
    for name in ("story", "ending"):
        ids, mask = read[f"{name}_ids"], read[f"{name}_mask"]
        for place in torch.nonzero(torch.ones_like(ids)).tolist():
            changed = ids.clone()
            changed[tuple(place)] = 7 if ids[tuple(place)] != 7 else 8
            differs = (model.ranker(**{**read, f"{name}_ids": changed}) - scores).abs() > 1e-12
            expected = torch.zeros_like(differs)
            expected[tuple(place[: 1 if name == "story" else 2])] = bool(mask[tuple(place)])
            assert differs.equal(expected), (name, place)


def test_words_out_of_the_vocabulary_are_told_apart(tokenizer):
    """The same name in story and ending is the same word."""
    model = ranking_model(tokenizer).double()
    stories = ["Anna and Zorba met Quentin. Anna asked Zorba."]
    read = read_by_ranker(model, tokenizer, stories, [["Zorba!", "Quentin!"]])
    zorba, quentin = read["ending_ids"][0, :, 1].tolist()
    assert zorba != quentin and {zorba, quentin} <= set(read["story_ids"][0].tolist())
    assert min(zorba, quentin) >= model.config.vocab_size
    scores = model.ranker(**read)[0]
    assert (scores[0] - scores[1]).abs() > 1e-12


def test_of_a_long_story_the_end_is_read(tokenizer):
    model = ranking_model(tokenizer).double()
    end = "Tom opened the window. " * 40
    texts = [f"They burn cakes. {end}", f"We saw mice. {end}", f"{end} We saw mice."]
    scores = [model.ranker(**read_by_ranker(model, tokenizer, [text], ENDINGS[:1])) for text in texts]
    torch.testing.assert_close(scores[0], scores[1])
    assert (scores[0] - scores[2]).abs().max() > 1e-9
    assert (
        read_by_ranker(model, tokenizer, texts, ENDINGS[:1] * 3)["story_mask"].sum(dim=1).tolist()
        == [MAX_STORY_WORDS] * 3
    )


def test_positions_count_from_the_start_of_the_story_through_its_ending(tokenizer):
    model = ranking_model(tokenizer)
    read = read_by_ranker(model, tokenizer, STORIES[1:], [["They burn cakes."]])
    model.ranker(**read).sum().backward()
    is_used = model.ranker.position_embeddings.weight.grad.abs().sum(dim=1) > 0
    number = int(read["story_mask"].sum() + read["ending_mask"].sum())
    assert is_used.tolist() == [True] * number + [False] * (len(is_used) - number)


def test_only_the_ranker_is_trained_by_its_scores(tokenizer):
    model = ranking_model(tokenizer)
    model.ranker(**read_by_ranker(model, tokenizer)).sum().backward()
    assert {name.split(".")[0] for name, weight in model.named_parameters() if weight.grad is not None} == {"ranker"}


def test_a_ranker_is_saved_with_its_model(tokenizer, tmp_path):
    model, inputs, labels = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt"), labels_of(tokenizer)
    model.save_pretrained(tmp_path)
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path).eval()
    assert torch.equal(loaded.rank_endings(labels, **inputs).scores, model.rank_endings(labels, **inputs).scores)


def test_a_ranker_does_not_change_what_the_model_writes(tokenizer):
    inputs = tokenizer(STORIES, return_tensors="pt")
    plain = small_model("ie-msa-ca-copy-tails", tokenizer)
    ranking = ranking_model(tokenizer)
    ranking.load_state_dict(plain.state_dict(), strict=False)
    for settings in ({}, {"num_beams": 3}):
        assert torch.equal(plain.generate(**inputs, **settings), ranking.generate(**inputs, **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"ranker_size": 8}, "multiple of `num_ranker_heads`"), ({"ranker_size": 0}, "at least 1")],
)
def test_sizes_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        IncrementalEncoderConfig(**settings)


def test_the_chosen_ending_has_the_highest_score_of_all_candidates(tokenizer):
    model, inputs = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt")
    every, scores = choose_endings(model, inputs, 9, num_best=9, **SEARCH)
    best, score = choose_endings(model, inputs, 9, **SEARCH)
    every, scores = every.unflatten(0, (2, 9)), scores.view(2, 9)
    assert torch.equal(score, scores[:, 0]) and (scores.diff(dim=1) <= 0).all()
    assert [tokenizer.decode(row) for row in best] == [tokenizer.decode(row[0]) for row in every]
    texts = [[tokenizer.decode(row, skip_special_tokens=True) for row in rows] for rows in every]
    for story, rows, values in zip(STORIES, texts, scores.tolist(), strict=True):
        different = [value for value in values if value > float("-inf")]
        assert len(set(rows)) == len(different) > 3
        beams = model.generate(**tokenizer([story], return_tensors="pt"), num_return_sequences=3, **SEARCH)
        assert {tokenizer.decode(row, skip_special_tokens=True) for row in beams} <= set(rows)


def test_candidates_are_the_same_in_every_batch(tokenizer):
    model = ranking_model(tokenizer)
    together, scores = choose_endings(model, tokenizer(STORIES, return_tensors="pt"), 9, num_best=4, **SEARCH)
    for row, story in enumerate(STORIES):
        alone, score = choose_endings(model, tokenizer([story], return_tensors="pt"), 9, num_best=4, **SEARCH)
        torch.testing.assert_close(score, scores[4 * row : 4 * row + 4], rtol=1e-4, atol=1e-5)
        assert [tokenizer.decode(ids) for ids in alone] == [
            tokenizer.decode(ids[: alone.shape[1]]) for ids in together[4 * row : 4 * row + 4]
        ]


def test_another_seed_gives_other_samples(tokenizer):
    model, inputs = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt")
    endings = [choose_endings(model, inputs, 9, num_best=9, seed=seed, **SEARCH)[0].tolist() for seed in (0, 0, 1)]
    assert endings[0] == endings[1] != endings[2]


def test_noise_draws_from_the_distribution():
    """Shares of 4,000 draws are those of softmax(log p / temperature) over the likeliest words."""
    scores = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05]).log()
    noisy = GumbelNoise(4000, seed=0, temperature=0.5, top_k=3)(None, scores.repeat(4000, 1))
    shares = noisy.argmax(dim=1).bincount(minlength=5) / 4000
    expected = (scores[:3] / 0.5).softmax(dim=0)
    torch.testing.assert_close(shares[:3], expected, rtol=0, atol=0.03)
    assert not shares[3:].any()


def test_endings_of_the_user_are_ranked(tokenizer):
    model = ranking_model(tokenizer)
    ranked = rank_endings(model, tokenizer, STORIES[0], ENDINGS[0])
    assert sorted(item["ending"] for item in ranked) == sorted(ENDINGS[0])
    scores = [item["score"] for item in ranked]
    assert scores == sorted(scores, reverse=True)
    for endings in ([], "The kitchen was full of smoke."):
        with pytest.raises(ValueError, match="list of at least one ending"):
            rank_endings(model, tokenizer, STORIES[0], endings)


def test_what_is_written_for_readers_is_chosen(tokenizer):
    model = ranking_model(tokenizer)
    [[ending]] = write_endings(model, tokenizer, STORIES[:1], max_new_tokens=5)
    inputs = tokenizer(STORIES[:1], return_tensors="pt")
    chosen, score = choose_endings(model, inputs, NUM_CANDIDATES, num_beams=8, length_penalty=0.0, max_new_tokens=5)
    assert ending["rank_score"] == pytest.approx(score.item(), rel=1e-4)
    assert ending["ending"] == tokenizer.decode(chosen[0], skip_special_tokens=True, context=STORIES[0])
    [[plain]] = write_endings(model, tokenizer, STORIES[:1], max_new_tokens=5, rerank=False)
    [[own_search]] = write_endings(model, tokenizer, STORIES[:1], max_new_tokens=5, num_beams=2)
    assert "rank_score" not in plain and "rank_score" not in own_search
    [several] = write_endings(
        model, tokenizer, STORIES[:1], max_new_tokens=5, num_candidates=6, num_return_sequences=2
    )
    assert several[0]["rank_score"] >= several[1]["rank_score"]


def test_defaults_depend_on_the_ranker(tokenizer):
    plain, ranking = small_model("ie", tokenizer), ranking_model(tokenizer)
    assert "num_candidates" not in default_arguments(plain, {})
    assert default_arguments(ranking, {})["num_candidates"] == NUM_CANDIDATES
    assert default_arguments(ranking, {"num_return_sequences": 30})["num_candidates"] == 30
    for given, decoding in (({"num_beams": 4}, None), ({"do_sample": True}, None), ({}, "paper")):
        assert "num_candidates" not in default_arguments(ranking, given, decoding)


@pytest.mark.parametrize(
    ("number", "message"), [(0, "at least 1"), (True, "at least 1"), (2, "`num_return_sequences` \\(3\\)")]
)
def test_impossible_numbers_of_candidates_are_refused(number, message, tokenizer):
    model, inputs = ranking_model(tokenizer), tokenizer(STORIES, return_tensors="pt")
    with pytest.raises(ValueError, match=message):
        generate_endings(model, inputs, {"num_candidates": number, "num_return_sequences": 3})


def test_without_a_ranker_there_is_no_choice(tokenizer):
    model, inputs = small_model("ie", tokenizer), tokenizer(STORIES, return_tensors="pt")
    with pytest.raises(ValueError, match="needs a model with an ending ranker"):
        generate_endings(model, inputs, {"num_candidates": 4})
    with pytest.raises(ValueError, match="has no ending ranker"):
        model.rank_endings(labels_of(tokenizer), **inputs)

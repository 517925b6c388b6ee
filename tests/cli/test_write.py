"""`storyend generate` and `storyend explain`, as a person starts them."""

import io
import json
import re
import sys

import pytest
from small_model import small_model

import hf_storyend
from hf_storyend.pretrained import EXAMPLE_STORIES

STORY = "Anna put a cake in the oven. The kitchen was full of smoke."


@pytest.fixture
def saved(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    return str(tmp_path / "saved")


@pytest.fixture
def generate(storyend, saved):
    return lambda *arguments, code=0: storyend("generate", *arguments, "--model", saved, code=code)


@pytest.fixture
def pointing(tokenizer, tmp_path):
    """A model with a tail pointer, and a table with a weight so high that added triples are sure to give words."""
    tokenizer.knowledge.weights = {("treat", "RelatedTo", "friday"): 30.0}
    small_model("ie-copy-tails", tokenizer, max_ending_length=4).save_pretrained(tmp_path / "pointing")
    tokenizer.save_pretrained(tmp_path / "pointing")
    return str(tmp_path / "pointing")


def test_an_ending_with_its_score_and_sources(generate):
    story = "The kitchen was full of smoke. Anna put a cake in the oven."
    (result,) = json.loads(generate(story, "--json", "--evidence_top_k", "2").out)
    assert result["story"] == story
    (ending,) = result["endings"]
    assert set(ending) == {
        *("ending", "score", "words", "evidence", "attention", "sentence_effects", "knowledge_effect")
    }
    assert ending["score"] < 0 and len(ending["attention"]) == 2
    assert {word["vocabulary"] for word in ending["words"]} == {1.0}
    printed = generate(story, "--evidence_top_k", "2").out
    assert story in printed and ending["ending"] in printed
    assert "No word of this ending came from a triple; without all triples it is " in printed


def test_words_from_triples_are_printed_with_effects(storyend, pointing):
    arguments = ("generate", STORY, "--triple", "oven,Causes,burnt", "--model", pointing)
    (result,) = json.loads(storyend(*arguments, "--json").out)
    best = result["endings"][0]["evidence"][0]
    assert (best["head"], best["relation"], best["tail"], best["ending_word"]) == ("oven", "Causes", "burnt", "burnt")
    assert best["share"] > 0.9 and best["factor"] > 1 and best["effect"] > 0
    printed = storyend(*arguments).out
    assert re.search(r"burnt: (100|9\d) % from oven Causes burnt", printed)
    assert re.search(r"without oven Causes burnt the ending is .* times less likely", printed)
    assert re.search(r"without all triples the ending is .* times less likely", printed)


def test_a_model_that_reads_no_triples_says_that_none_gave_a_word(storyend, tokenizer, tmp_path):
    small_model("hlstm-copy", tokenizer).save_pretrained(tmp_path / "copying")
    tokenizer.save_pretrained(tmp_path / "copying")
    printed = storyend("generate", STORY, "--model", str(tmp_path / "copying")).out
    assert "No word of this ending came from a triple.\n" in printed


def test_several_stories_and_endings(generate):
    arguments = ("--num_beams", "3", "--num_return_sequences", "2", "--json")
    results = json.loads(generate(STORY, "Anna put a cake.", *arguments).out)
    assert [len(result["endings"]) for result in results] == [2, 2]
    assert all(endings[0]["ending"] != endings[1]["ending"] for endings in (result["endings"] for result in results))


def test_the_models_own_beams_count(generate, saved, model):
    model.generation_config.num_beams = 3
    model.save_pretrained(saved)
    assert len(json.loads(generate(STORY, "--num_return_sequences", "3", "--json").out)[0]["endings"]) == 3


def test_without_a_story_there_are_three_examples(generate):
    assert [result["story"] for result in json.loads(generate("--json").out)] == list(EXAMPLE_STORIES)


def test_a_seed_samples_the_same_endings_again(generate):
    def sample(seed):
        arguments = ("--do_sample", "--temperature", "2.0", "--num_return_sequences", "4", "--seed", seed, "--json")
        return [ending["ending"] for ending in json.loads(generate(STORY, *arguments).out)[0]["endings"]]

    assert sample("1") == sample("1") != sample("2")


def test_triples_are_added(generate):
    arguments = (STORY, "--triple", "smoke,AtLocation,kitchen", "--evidence_top_k", "50", "--json")
    attention = json.loads(generate(*arguments).out)[0]["endings"][0]["attention"]
    assert ("smoke", "AtLocation", "kitchen") in {(item["head"], item["relation"], item["tail"]) for item in attention}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((STORY, "--num_return_sequences", "9"), "9 endings need `do_sample` or `num_beams` of at least 9"),
        (
            (STORY, "--num_return_sequences", "3", "--decoding", "paper"),
            "3 endings need `do_sample` or `num_beams` of at least 3",
        ),
        (
            (STORY, "--num_return_sequences", "0"),
            "`--num_return_sequences` must be a whole number of at least 1",
        ),
        ((STORY, "--temperature", "0.5"), "give `--do_sample`, too"),
        ((STORY, "--temperature", "0", "--do_sample"), "`--temperature` must be above 0; got 0.0"),
        ((STORY, "--triple", "smoke AtLocation kitchen"), "must be `head,Relation,tail`"),
        ((STORY, "--triple", "smoke,AtLocation,xylophone"), "xylophone"),
        (("",), "Story 1 is empty"),
    ],
)
def test_errors_of_the_user_are_a_line_and_exit_code_2(generate, arguments, message):
    printed = generate(*arguments, code=2)
    assert message in printed.err and "Traceback" not in printed.err and not printed.out


def test_explain_without_arguments(storyend):
    explained = json.loads(storyend("explain", "--json").out)
    assert " ".join(explained["story"]) == EXAMPLE_STORIES[0] and explained["words"]


def test_explain_a_story_with_or_without_a_model(storyend):
    story = "Anna put a cake in the oven. She fell asleep."
    alone = json.loads(storyend("explain", story, "--json").out)
    assert " ".join(alone["story"]) == story
    assert json.loads(storyend("explain", story, "--model", hf_storyend.default_model(), "--json").out) == alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["my_model"], "`STORY` is a single word, 'my_model'. If that is a model, give it as `--model`"),
        (["Anna", "fell", "asleep."], "(fell asleep.)"),
    ],
)
def test_explain_refuses_what_is_no_story(storyend, arguments, message):
    printed = storyend("explain", *arguments, code=2)
    assert message in printed.err and "Traceback" not in printed.err and not printed.out


def test_endings_are_ranked(storyend):
    given = ["--ending", "The oven swam.", "--ending", "She burned the cake."]
    story = "Mei put a cake in the oven. Then she smelled smoke."
    lines = storyend("rank", story, *given).out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == ["She burned the cake.", "The oven swam."]
    ranked = json.loads(storyend("rank", story, *given, "--json").out)
    assert ranked[0]["ending"] == "She burned the cake." and ranked[0]["score"] > ranked[1]["score"]


def test_ranking_needs_an_ending(storyend):
    assert "`--ending` is missing" in storyend("rank", "Mei put a cake in the oven.", code=2).err


def test_errors_of_standard_input_name_no_file_that_nobody_has_heard_of(storyend, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Anna ran.\n\nShe fell.\n")))
    assert storyend("generate", "--input", "-", code=2).err.startswith("Error: Standard input, line 2: a blank line")

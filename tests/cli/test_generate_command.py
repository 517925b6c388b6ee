"""`storyend generate`, as a person starts it."""

import json
import sys

import pytest
from hf_storyend.cli.main import main

from hf_storyend.pretrained import EXAMPLE_STORIES

STORY = "Anna put a cake in the oven. The kitchen was full of smoke."


@pytest.fixture
def saved(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.fixture
def storyend(saved, capsys, monkeypatch, wide_terminal):
    """What the command printed, on both streams."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["storyend", "generate", *arguments, "--model", saved])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        return capsys.readouterr()

    return run


def test_an_ending_with_its_score_and_evidence(storyend):
    (result,) = json.loads(storyend(STORY, "--json", "--num-evidence", "2").out)
    assert result["story"] == STORY
    (ending,) = result["endings"]
    assert set(ending) == {"ending", "score", "evidence"} and ending["score"] < 0
    printed = storyend(STORY, "--num-evidence", "2").out
    assert STORY in printed and ending["ending"] in printed
    for item in ending["evidence"]:
        assert f"{item['head']} {item['relation']} {item['tail']}" in printed


def test_several_stories_and_endings(storyend):
    results = json.loads(storyend(STORY, "Anna put a cake.", "--num-beams", "3", "--num-endings", "2", "--json").out)
    assert [len(result["endings"]) for result in results] == [2, 2]
    assert all(endings[0]["ending"] != endings[1]["ending"] for endings in (result["endings"] for result in results))


def test_the_model_s_own_beams_count(storyend, saved, model):
    model.generation_config.num_beams = 3
    model.save_pretrained(saved)
    assert len(json.loads(storyend(STORY, "--num-endings", "3", "--json").out)[0]["endings"]) == 3


def test_without_a_story_there_are_three_of_our_own(storyend):
    assert [result["story"] for result in json.loads(storyend("--json").out)] == list(EXAMPLE_STORIES)


def test_a_seed_draws_the_same_endings_again(storyend):
    def draw(seed):
        arguments = ("--sample", "--temperature", "2.0", "--num-endings", "4", "--seed", seed, "--json")
        return [ending["ending"] for ending in json.loads(storyend(STORY, *arguments).out)[0]["endings"]]

    assert draw("1") == draw("1") != draw("2")


def test_own_triples_are_known(storyend):
    arguments = (STORY, "--triple", "smoke,AtLocation,kitchen", "--num-evidence", "50", "--json")
    evidence = json.loads(storyend(*arguments).out)[0]["endings"][0]["evidence"]
    assert ("smoke", "AtLocation", "kitchen") in {(item["head"], item["relation"], item["tail"]) for item in evidence}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((STORY, "--num-endings", "3"), "3 endings need `--sample` or `--num-beams 3`"),
        ((STORY, "--temperature", "0.5"), "give `--sample`, too"),
        ((STORY, "--triple", "smoke AtLocation kitchen"), "must be `head,Relation,tail`"),
        ((STORY, "--triple", "smoke,AtLocation,xylophone"), "xylophone"),
        (("",), "Story 0 is empty"),
    ],
)
def test_what_can_be_mended_is_a_line_and_exit_code_2(storyend, arguments, message):
    printed = storyend(*arguments, code=2)
    assert message in printed.err and "Traceback" not in printed.err and not printed.out

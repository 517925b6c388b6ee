"""Models are saved with greedy decoding; presets are the business of the pipeline and of the commands."""

import json
from pathlib import Path
from typing import get_args

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig, TextStreamer, pipeline

import hf_storyend
from hf_storyend.evaluation import EvaluateOptions, evaluate
from hf_storyend.modeling.decoding import PRESETS, default_arguments, preset_arguments
from hf_storyend.modeling.stop_strings import StopAtStrings
from hf_storyend.options import DecodingPreset
from hf_storyend.pretrained import EXAMPLE_STORIES

STORY = EXAMPLE_STORIES[0]
READERS = {"num_beams": 8, "length_penalty": 0.0}


@pytest.fixture(scope="module")
def loaded():
    hf_storyend.register()
    folder = hf_storyend.default_model()
    return AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def test_the_saved_settings_are_greedy():
    saved = json.loads((Path(hf_storyend.default_model()) / "generation_config.json").read_text())
    assert not {"num_beams", "do_sample", "length_penalty"} & saved.keys() and saved["max_new_tokens"] == 30


def test_streaming_sampling_and_several_sequences_by_plain_transformers(loaded, capsys):
    model, tokenizer = loaded
    inputs = tokenizer(STORY, return_tensors="pt")
    greedy = model.generate(**inputs, streamer=TextStreamer(tokenizer, skip_special_tokens=True))
    assert capsys.readouterr().out.strip().split() == tokenizer.decode(greedy[0], skip_special_tokens=True).split()
    torch.manual_seed(0)
    output = model.generate(**inputs, do_sample=True, num_return_sequences=5, return_dict_in_generate=True)
    assert type(output).__name__ == "GenerateEncoderDecoderOutput"  # sampling, not beam sampling
    assert len({tuple(row) for row in output.sequences.tolist()}) == 5


def written(loaded, stories=(STORY,), **settings) -> str:
    model, tokenizer = loaded
    ids = model.generate(**tokenizer(stories, return_tensors="pt"), **settings)
    return tokenizer.decode(ids[0], skip_special_tokens=True, context=stories[0])


def test_the_pipeline_writes_for_readers_unless_told_otherwise(loaded):
    model, tokenizer = loaded
    write = pipeline("story-ending", model=model, tokenizer=tokenizer)
    assert written(loaded, **READERS) != written(loaded)
    assert write(STORY)[0]["ending"] == hf_storyend.generate(STORY, model=write) == written(loaded, **READERS)
    assert write(STORY, decoding="paper")[0]["ending"] == write(STORY, num_beams=1)[0]["ending"] == written(loaded)
    three = {"num_beams": 3, "length_penalty": 2.0}
    assert write(STORY, **three)[0]["ending"] == written(loaded, **three)
    assert hf_storyend.explain(model, tokenizer, STORY).ending == written(loaded, **READERS)
    assert len(write(STORY, do_sample=True, num_return_sequences=9)) == 9
    with pytest.raises(ValueError, match="`decoding` must be one of readers, paper, sampling; got 'magic'"):
        write(STORY, decoding="magic")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, READERS),
        ({"max_new_tokens": 5}, {**READERS, "max_new_tokens": 5}),
        ({"num_beams": 4}, {"num_beams": 4, "length_penalty": 0.0}),
        ({"num_beams": 1}, {"num_beams": 1}),
        ({"do_sample": True}, {"do_sample": True}),
    ],
)
def test_options_of_the_user_win(given, expected):
    assert preset_arguments("readers", given) == expected


def test_settings_that_a_model_was_saved_with_win_over_the_default_preset(model):
    model.generation_config = GenerationConfig(num_beams=3)
    assert default_arguments(model, {}) == {}
    assert default_arguments(model, {}, "readers") == READERS


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, READERS), ({"decoding": "paper"}, {}), ({"num_beams": 1}, {})],
)
def test_evaluation_decodes_for_readers_unless_told_otherwise(loaded, given, expected, tmp_path):
    (tmp_path / "one.jsonl").write_text(json.dumps({"context": STORY.split(". "), "ending": "It burnt."}) + "\n")
    settings = {"data_dir": str(tmp_path / "one.jsonl"), "num_seeds": 0, "bootstrap_samples": 0}
    evaluate(EvaluateOptions(**settings, output_dir=str(tmp_path / "out"), **given))
    (line,) = (tmp_path / "out" / "endings.jsonl").read_text().splitlines()
    story = json.loads((tmp_path / "one.jsonl").read_text())["context"]
    assert json.loads(line)["ending"] == written(loaded, [story], **expected)


def test_commands_know_all_presets():
    assert get_args(DecodingPreset) == tuple(PRESETS)


def test_a_string_that_was_there_before_the_last_word_stops_nothing(loaded):
    """As in an ending that goes on from a prompt."""
    _, tokenizer = loaded
    words = tokenizer.convert_tokens_to_ids(["he", "was", "happy", "and", "she", "was"])
    stop = StopAtStrings("was", tokenizer)
    ends = [stop(torch.tensor([words[:length]]), None).item() for length in range(1, 7)]
    assert ends == [False, True, False, False, False, True]


@pytest.mark.parametrize("settings", [{}, {"num_beams": 2}])
@pytest.mark.parametrize("in_config", [False, True])
def test_stop_strings(loaded, settings, in_config):
    """An ending stops with the word that completes the string, two words or one that was copied."""
    model, tokenizer = loaded
    inputs = tokenizer(STORY, return_tensors="pt")
    whole = tokenizer.decode(model.generate(**inputs, **settings)[0], skip_special_tokens=True)
    wanted = " ".join(whole.split()[1:3])
    given = {"generation_config": GenerationConfig(**{**model.generation_config.to_dict(), "stop_strings": wanted})}
    given = given if in_config else {"stop_strings": [wanted, "never"]}
    ids = model.generate(**inputs, **settings, **given, tokenizer=tokenizer)
    text = tokenizer.decode(ids[0], skip_special_tokens=True)
    # With beams another ending, without the string, may be likelier than the one that was cut.
    assert text != whole and (text.endswith(wanted) or ("num_beams" in settings and wanted not in text))
    with pytest.raises(ValueError, match="`stop_strings` needs the `tokenizer`"):
        model.generate(**inputs, **settings, **given)
    # Generic code gives the tokenizer always.
    assert tokenizer.decode(model.generate(**inputs, **settings, tokenizer=tokenizer)[0], True) == whole


def test_the_pipeline_stops_at_strings(loaded):
    model, tokenizer = loaded
    write = pipeline("story-ending", model=model, tokenizer=tokenizer)
    whole = write(STORY, decoding="paper")[0]["ending"]
    wanted = " ".join(whole.split()[1:3])
    assert whole.startswith(write(STORY, decoding="paper", stop_strings=[wanted])[0]["ending"].removesuffix(wanted))
    assert write(STORY, decoding="paper", stop_strings=[wanted])[0]["ending"].endswith(wanted)

"""The model that comes with the package."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from datasets import Dataset

import hf_storyend
from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer, explain
from hf_storyend.cli.main import main
from hf_storyend.data.embedded import embedded_stories
from hf_storyend.evaluation.user_triples import measure_user_triples
from hf_storyend.modeling.decoding import PRESETS
from hf_storyend.pretrained import EXAMPLE_STORIES

DIRECTORY = Path(hf_storyend.default_model())


@pytest.fixture(scope="module")
def loaded():
    return (
        IncrementalEncoderForEndingGeneration.from_pretrained(hf_storyend.default_model()),
        IncrementalEncoderTokenizer.from_pretrained(hf_storyend.default_model()),
    )


def test_it_is_small_and_whole():
    files = {path.name for path in DIRECTORY.iterdir()}
    assert sum(path.stat().st_size for path in DIRECTORY.iterdir()) <= 30_000_000
    assert {"model.safetensors", "config.json", "vocab.json", "knowledge.json", "README.md"} <= files
    assert not [name for name in files if name.endswith((".py", ".jsonl", ".bin"))]


def test_it_computes_in_single_precision_and_writes_the_same_every_time(loaded):
    model, tokenizer = loaded
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    inputs = tokenizer(list(EXAMPLE_STORIES), return_tensors="pt")
    endings = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True, context=list(EXAMPLE_STORIES))
    for ending in endings:
        assert re.fullmatch(r"[A-Z][^<>]*[.!?\"']", ending), ending
        assert 3 <= len(ending.split()) <= 30
    assert len(set(endings)) == 3
    again = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True, context=list(EXAMPLE_STORIES))
    assert endings == again


def test_names_out_of_the_vocabulary_are_copied_from_the_story(loaded):
    model, tokenizer = loaded
    name = "Quendolyn"
    assert name.lower() not in tokenizer.get_vocab()
    story = f"{name} wanted a new dog. {name} went to the shelter. {name} saw a puppy. {name} took the puppy home."
    inputs = tokenizer(story, return_tensors="pt")
    endings = tokenizer.batch_decode(
        model.generate(**inputs, num_beams=8, num_return_sequences=8), skip_special_tokens=True, context=[story] * 8
    )
    assert any(name in ending for ending in endings), endings


def test_words_come_from_the_story_and_from_triples(loaded):
    model, tokenizer = loaded
    words = [word for story in EXAMPLE_STORIES for word in explain(model, tokenizer, story).words]
    assert max(share.share for word in words for share in word.sources.story) > 0.5
    assert max(share.share for word in words for share in word.sources.triples) > 0.1


def test_a_triple_of_the_user_s_raises_its_tail(loaded):
    model, tokenizer = loaded
    stories = Dataset.from_list(embedded_stories()[:20])
    assert measure_user_triples(model, tokenizer, stories).median > 1


def test_the_command_uses_it(capsys, monkeypatch, wide_terminal):
    monkeypatch.setattr(sys, "argv", ["storyend", "generate", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    results = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and [result["story"] for result in results] == list(EXAMPLE_STORIES)
    assert all(result["endings"][0]["words"] and result["endings"][0]["sentence_effects"] for result in results)


def test_its_card_has_measured_numbers_and_twenty_endings_that_it_writes(loaded):
    model, tokenizer = loaded
    card = (DIRECTORY / "README.md").read_text(encoding="utf-8")
    # The first column is validation.
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]*) \| [^|]* \|$", card, flags=re.MULTILINE))
    for metric in ("Perplexity, full softmax", "BLEU-1", "BLEU-2", "Distinct-2, %", "Endings with a repeated bigram"):
        (value,) = [value for name, value in rows.items() if name.startswith(metric) and "cased" not in name]
        assert float(value) >= 0
    shown = card.split("endings, not picked")[1].split("## Limitations")[0]
    stories = re.findall(r"^\| (.+?) \| (.+?) \|$", shown, flags=re.MULTILINE)[2:]
    assert [story for story, _ in stories] == [" ".join(story["context"]) for story in embedded_stories()[:20]]
    first = embedded_stories()[0]["context"]
    ending = model.generate(**tokenizer([first], return_tensors="pt"), **PRESETS["readers"])
    assert tokenizer.batch_decode(ending, skip_special_tokens=True, context=[first]) == [stories[0][1]]

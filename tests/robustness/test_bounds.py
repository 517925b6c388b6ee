"""Sizes, options and files that are out of all proportion are refused before they take memory or time."""

import dataclasses
import gzip
import json
import math
import re
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
from safetensors.torch import save_file
from small_model import small_model

import hf_storyend
from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.annotation import options as annotation_options
from hf_storyend.cli.write import GenerateOptions, RankOptions
from hf_storyend.comparison.options import ComparisonOptions
from hf_storyend.data import options as data_options
from hf_storyend.data.embeddings import load_word_vectors
from hf_storyend.demo import options as demo_options
from hf_storyend.evaluation import options as evaluation_options
from hf_storyend.evaluation.notes import EvaluationNote
from hf_storyend.explanation import ExplainOptions
from hf_storyend.explanation import options as explanation_options
from hf_storyend.hub import options as hub_options
from hf_storyend.hub.card import render_card
from hf_storyend.knowledge.conceptnet import read_edges
from hf_storyend.modeling import loading
from hf_storyend.modeling.candidates import choose_endings
from hf_storyend.modeling.text_processing import join_words
from hf_storyend.options import REQUIRED
from hf_storyend.story_text import check_story_size
from hf_storyend.training import options as training_options

STORY = "Anna put a cake in the oven. They watched a long film."


@pytest.fixture
def allocations(monkeypatch) -> list[int]:
    """Sizes that were asked for; a machine with a hundred megabytes."""
    monkeypatch.setattr(loading, "_available_memory", lambda: 100 * 2**20)
    asked: list[int] = []
    monkeypatch.setattr(torch.nn.Embedding, "reset_parameters", lambda self: asked.append(self.weight.numel()))
    return asked


@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "embedding_size", "num_relations"])
def test_a_model_that_the_memory_can_not_hold(allocations, name):
    with pytest.raises(ValueError, match=rf"`{name}` 3,000,000.* would need [\d,.]+ GB of memory; 0\.1 GB are free"):
        IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig(**{name: 3_000_000}))
    assert not allocations


@pytest.mark.parametrize("name", ["ranker_size", "ranker_embedding_size"])
def test_a_ranker_that_the_memory_can_not_hold(allocations, name):
    with pytest.raises(ValueError, match=rf"`{name}` 3,000,000.* would need [\d,.]+ GB of memory; 0\.1 GB are free"):
        IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig(**{"ranker_size": 12, name: 3_000_000}))
    assert not allocations


@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "embedding_size"])
@pytest.mark.parametrize("subfolder", ["", "best"])
def test_sizes_that_the_file_can_not_hold(model, tmp_path, monkeypatch, name, subfolder):
    """The weights are few enough for the memory, and absent: transformers would make them up."""
    monkeypatch.setattr(loading, "_available_memory", lambda: 2**50)
    model.save_pretrained(tmp_path / subfolder)
    save_file({"a": torch.zeros(100)}, tmp_path / subfolder / "model.safetensors", metadata={"format": "pt"})
    path = tmp_path / subfolder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: 20_000}))
    with pytest.raises(ValueError, match=rf"the weights have \d+ bytes, too few for .*`{name}` 20,000"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path, subfolder=subfolder)


def test_layers_are_limited():
    with pytest.raises(ValueError, match="`num_layers` must be at most 1000; got 3000000"):
        IncrementalEncoderConfig(num_layers=3_000_000)


def test_slots_for_words_of_the_story_are_limited():
    IncrementalEncoderConfig(num_copy_slots=65_536)
    with pytest.raises(ValueError, match="`num_copy_slots` must be at most 65536; got 100000000"):
        IncrementalEncoderConfig(num_copy_slots=100_000_000)
    for more in (65_537, 1 << 62):
        with pytest.raises(ValueError, match=f"`num_copy_slots` must be a whole number from 0 to 65536; got {more}"):
            IncrementalEncoderTokenizer(vocab={"<unk>": 0, "<pad>": 1, "<s>": 2, "</s>": 3}, num_copy_slots=more)


@pytest.mark.parametrize("where", ["argument", "the model's settings", "settings given"])
def test_beams_that_the_memory_can_not_hold(model, tokenizer, allocations, where):
    inputs = tokenizer([STORY, STORY], return_tensors="pt")
    settings = {}
    if where == "argument":
        settings = {"num_beams": 100_000}
    elif where == "the model's settings":
        model.generation_config.num_beams = 100_000
    else:
        config = type(model.generation_config).from_dict(model.generation_config.to_dict())
        config.num_beams = 100_000
        settings = {"generation_config": config}
    with pytest.raises(ValueError, match="`num_beams` 100,000.* for 2 stories would need"):
        model.generate(**inputs, **settings)


def test_endings_of_a_story_that_the_memory_can_not_hold(model, tokenizer, allocations):
    inputs = tokenizer([STORY], return_tensors="pt")
    with pytest.raises(ValueError, match="`num_return_sequences` 1,000,000.* for 1 stories would need"):
        model.generate(**inputs, do_sample=True, num_return_sequences=1_000_000)


def test_candidates_that_the_memory_can_not_hold(tokenizer, allocations):
    sizes = {"ranker_size": 8, "ranker_embedding_size": 6, "num_ranker_layers": 1, "num_ranker_heads": 2}
    model = small_model("ie-copy", tokenizer, **sizes)
    inputs = tokenizer([STORY], return_tensors="pt")
    with pytest.raises(ValueError, match="`num_candidates` 9,999,999 beside those of the beam search would need"):
        choose_endings(model, inputs, 10_000_000)
    assert len(choose_endings(model, inputs, 3, max_new_tokens=2)[0]) == 1


@pytest.mark.parametrize("name", ["max_new_tokens", "max_length"])
def test_beams_of_endings_that_the_memory_can_not_hold(model, tokenizer, allocations, name):
    """Beam search takes the memory of the longest ending at once."""
    inputs = tokenizer([STORY], return_tensors="pt")
    with pytest.raises(ValueError, match=rf"`num_beams` 2, .*`{name}` 10,000,000.* would need"):
        model.generate(**inputs, num_beams=2, **{name: 10_000_000})


@pytest.mark.parametrize("in_config", [False, True])
@pytest.mark.parametrize("name", ["length_penalty", "temperature", "top_p", "repetition_penalty"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_settings_of_generation_that_are_no_numbers(model, tokenizer, in_config, name, value):
    inputs = tokenizer([STORY], return_tensors="pt")
    given = {name: value}
    if in_config:
        given = {"generation_config": type(model.generation_config).from_dict({**model.generation_config.to_dict()})}
        setattr(given["generation_config"], name, value)
    with pytest.raises(ValueError, match=f"`{name}` must be a finite number; got {value}"):
        model.generate(**inputs, num_beams=2, do_sample=True, **given)


@pytest.mark.parametrize("name", ["num_beams", "num_return_sequences", "max_new_tokens"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3"])
def test_settings_of_generation_that_are_no_counts(model, tokenizer, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1; got {value!r}"):
        model.generate(**tokenizer([STORY], return_tensors="pt"), **{name: value})


def test_the_memory_of_this_machine_is_known():
    if not Path("/proc/meminfo").is_file():
        pytest.skip("Linux alone tells.")
    assert loading._available_memory() > 2**20


def test_memory_is_named_in_gigabytes(allocations):
    with pytest.raises(ValueError, match=r"^This would need 3\.0 GB of memory; 0\.1 GB are free\.$"):
        loading.check_memory(3 * 2**30, "This")


@pytest.mark.parametrize(
    ("folder", "limit", "usage"),
    [
        ("sys/fs/cgroup", "memory.max", "memory.current"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ],
)
def test_the_memory_of_a_container(tmp_path, monkeypatch, folder, limit, usage):
    """What the machine has beyond it can't be had; what the container holds of files can be had again."""
    monkeypatch.setattr(loading, "_ROOT", tmp_path)
    assert loading._available_memory() is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n")
    assert loading._available_memory() == 60_000_000 * 1024
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / limit).write_text("5000000\n")
    (tmp_path / folder / usage).write_text("4000000\n")
    (tmp_path / folder / "memory.stat").write_text("anon 1\ntotal_inactive_file 7\ninactive_file 300000\n")
    assert loading._available_memory() == 1_300_000
    (tmp_path / folder / limit).write_text("max\n")
    assert loading._available_memory() == 60_000_000 * 1024


@pytest.mark.parametrize("content", [b"\n" * 10**7, b" \n" * 10**6, b"the 0.1 0.2\n" + b"\n" * 10**6])
def test_a_gzip_of_blank_lines_as_word_vectors(tmp_path, content):
    path = tmp_path / "glove.txt.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=r"glove\.txt\.gz, line \d+: more than 1,000 blank lines"):
        load_word_vectors(path, {"the": 0, "a": 1})


def test_a_gzip_of_vectors_that_expands_out_of_all_proportion(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_storyend.data.text_files._MAX_UNPACKED", 10**5)
    path = tmp_path / "glove.txt.gz"
    path.write_bytes(gzip.compress(b"the 0.1 0.2\n" * 10**5))
    with pytest.raises(ValueError, match="unpacks to more than"):
        load_word_vectors(path, {"the": 0})


@pytest.mark.parametrize("content", [b"\n", b"/a/x\t/r/IsA\t/c/en/cake\t/c/en/food\t{}\n"])
def test_a_gzip_of_edges_that_expands_out_of_all_proportion(tmp_path, monkeypatch, content):
    monkeypatch.setattr("hf_storyend.knowledge.blocks._MAX_UNPACKED", 10**5)
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"/a/x\t/r/IsA\t/c/en/cake\t/c/en/food\t{}\n" + content * 10**6))
    with pytest.raises(ValueError, match=r"edges\.csv\.gz unpacks to more than"):
        list(read_edges([path]))
    unpacked = tmp_path / "edges.csv"
    unpacked.write_bytes(gzip.decompress(path.read_bytes())[: 2 * 10**5])
    assert list(read_edges([unpacked]))


@pytest.mark.parametrize(
    ("story", "message"),
    [
        ("It rained. " * 51, "51 sentences, more than 50: .*`max_sentences`"),
        ("It was very " + "very " * 500 + "wet.", "Sentence 1 of the story has 505 words, .*`max_sentence_length`"),
    ],
)
def test_stories_over_the_limit(monkeypatch, story, message):
    monkeypatch.setattr(hf_storyend.pretrained, "load", lambda *names: pytest.fail("The model is not needed."))
    from hf_storyend.cli.write import explain, generate, rank

    with pytest.raises(ValueError, match=message):
        generate(GenerateOptions(stories=("It rained.", story)))
    with pytest.raises(ValueError, match=message):
        explain(ExplainOptions(story))
    with pytest.raises(ValueError, match=message):
        rank(RankOptions(story, ("It burnt.",)))
    check_story_size(story, max_sentences=51, max_sentence_length=505)


def test_endings_over_the_limit(monkeypatch):
    """However many sentences they are."""
    monkeypatch.setattr("hf_storyend.ranking.rank", lambda *arguments: pytest.fail("It was read."))
    from hf_storyend.cli.write import rank

    with pytest.raises(ValueError, match="Ending 2 has 501 words, more than 500: .* raise the limit `max_sentence_le"):
        rank(RankOptions(STORY, ("It burnt.", "No. " * 250 + "no")))
    with pytest.raises(ValueError, match="Ending 1 has 3 words, more than 2:"):
        rank(RankOptions("Hi.", ("It burnt.",), max_sentence_length=2))


MODULES = (annotation_options, data_options, demo_options, evaluation_options, explanation_options, hub_options)
OPTIONS = [
    entry
    for module in (*MODULES, training_options)
    for entry in vars(module).values()
    if dataclasses.is_dataclass(entry) and entry.__module__ == module.__name__
]
FRACTIONS = [
    (cls, field.name)
    for cls in (*OPTIONS, GenerateOptions)
    for field in dataclasses.fields(cls)
    if "float" in str(get_type_hints(cls)[field.name])
]


@pytest.mark.parametrize(("cls", "name"), FRACTIONS, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(cls, name, value):
    assert len(FRACTIONS) >= 12
    needed = {field.name: "x" for field in dataclasses.fields(cls) if field.default is REQUIRED and not field.kw_only}
    needed = {key: text for key, text in needed.items() if _is_required(cls, key)}
    extra = {"conceptnet": ("x",)} if name == "min_weight" else {"do_sample": True} if name == "temperature" else {}
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        cls(**{**needed, **extra, name: value})


@pytest.mark.parametrize(
    ("cls", "name", "largest"),
    [
        (evaluation_options.EvaluateOptions, "bootstrap_samples", 100_000),
        (evaluation_options.EvaluateOptions, "num_seeds", 1_000),
        (evaluation_options.EvaluateOptions, "num_relation_names", 100_000),
        (evaluation_options.ScoreOptions, "bootstrap_samples", 100_000),
        (ComparisonOptions, "bootstrap_samples", 100_000),
        (training_options.TrainingOptions, "dataloader_num_workers", 1_000),
        (data_options.PrepareOptions, "num_proc", 1_000),
    ],
)
def test_counts_that_fill_the_memory(cls, name, largest):
    cls(**{name: largest})
    with pytest.raises(ValueError, match=f"`{name}` must be at most {largest:,}; got {largest + 1:,}"):
        cls(**{name: largest + 1})


def _is_required(cls: type, name: str) -> bool:
    (field,) = [field for field in dataclasses.fields(cls) if field.name == name]
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


EVIL = "x` | [click](https://e.vil) ![p](https://e.vil/p.png) <img src=x onerror=alert(1)>\n\n# Title\n\n---\n\x1b[2J"


def test_strings_from_metrics_are_plain_text_in_a_card():
    run = {
        "system": "ie",
        "data": EVIL.replace("\n", " "),
        "parameters": 3,
        "precision": EVIL,
        "updates": EVIL,
        "num_processes": EVIL,
        "device": EVIL,
        "minutes": EVIL,
        "versions": {EVIL: EVIL},
        "options": {"data_dir": "x", "recipe": EVIL, "seed": EVIL},
    }
    card = render_card("ie", run)
    # Markdown between backticks is not rendered.
    text = re.sub("`[^`\n]*`", "", card.split("---\n", 2)[2])
    assert "e.vil" in text
    for dangerous in ("[click](", "![p]", "<img", "\n# Title", "\x1b", "x` |"):
        assert dangerous not in text, dangerous
    plain = render_card("ie", {**run, **dict.fromkeys(("data", "precision", "updates", "device", "minutes"), "x")})
    assert card.count("\n") == plain.count("\n"), "No string starts a line of its own."


def test_strings_from_evaluations_are_plain_text_in_a_card():
    row = {"name": EVIL, "perplexity": 2.0, "change": None, "tail_perplexity": None, "tail_change": None}
    subset = {"name": EVIL, "num_stories": 3, "num_words": 3, "num_tails": 0, "rows": [row]}
    swap = {
        "num_stories": 1,
        "num_changed": 1,
        "examples": [[EVIL] * 3],
        "gains": {EVIL: 1.0},
        "he_shares": {EVIL: 0.5},
    }
    content = {
        **{"dataset_id": EVIL, "split": EVIL, "index": "", "metrics": {"bleu_1": 0.1}, "decoding": EVIL, "date": EVIL},
        **{"num_stories": 1, "gender_swap": swap, "ablations": {"subsets": [subset], "notes": [EVIL]}},
    }
    card = render_card("ie", None, None, [EvaluationNote.from_dict(content)])
    text = re.sub("`[^`\n]*`", "", card.split("---\n", 2)[2])
    assert text.count("e.vil") >= 8
    for dangerous in ("[click](", "![p]", "<img", "\n# Title", "\x1b", "x` |"):
        assert dangerous not in text, dangerous
    for wrong in ({**subset, "num_stories": EVIL}, {**subset, "rows": [{**row, "perplexity": EVIL}]}):
        with pytest.raises(ValueError, match="invalid literal|could not convert"):
            EvaluationNote.from_dict({**content, "ablations": {"subsets": [wrong], "notes": []}})


def test_a_metric_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="The metric `bleu_1` must be a number"):
        render_card("ie", None, {"bleu_1": EVIL})


@pytest.mark.parametrize("word", ["ﬁve", "ﬂour", "ßa", "ŉa", "ıa", "ǰa"])
def test_words_whose_capital_is_another_word_keep_their_letter(word, tokenizer):
    """What is printed is read as the same word."""
    printed = join_words([word, "."])
    assert printed == f"{word}." or printed.lower() == f"{word}."
    assert join_words(printed.lower().removesuffix(".").split() + ["."]) == printed
    assert join_words(["five", "."]) == "Five."

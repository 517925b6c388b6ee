"""Corrupted and malicious files: a result or an error that names the file; no crash, no hang, bounded memory."""

import gzip
import json
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robustness.fuzz import run_cases
from robustness.targets import STORIES, TARGETS, Target, tiny_model, tiny_tokenizer
from safetensors.torch import load_file, save_file

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, KnowledgeTable
from hf_storyend.cli.main import app
from hf_storyend.data.batching import tokenise_stories
from hf_storyend.data.embeddings import load_word_vectors
from hf_storyend.data.report import describe_report
from hf_storyend.data.story_files import read_stories
from hf_storyend.knowledge import read_edges
from hf_storyend.training.option_parsing import parse_options

DEEP = "[" * 100_000 + "]" * 100_000


def test_hundreds_of_corrupted_files():
    """The first of the cases of `make fuzz`."""
    findings = [outcome for outcome in run_cases(range(10 * len(TARGETS))) if outcome.is_finding]
    assert findings == []


@pytest.mark.parametrize("name", TARGETS)
def test_valid_files_are_read(name, tmp_path):
    target: Target = TARGETS[name]
    target.build(tmp_path)
    assert all((tmp_path / file).is_file() for file in target.corrupted)
    target.read(tmp_path)


CORRUPTED = {
    # Found by the fuzzer or in review.
    "a table of one column twenty thousand times": ("rocstories", "roc.csv", "," * 200_000),
    "deep nesting in endings": ("scored json lines", "one.jsonl", DEEP),
    "deep nesting in a vocabulary": ("tokenizer", "vocab.json", DEEP),
    "a vocabulary with a truth for an id": ("tokenizer", "vocab.json", '{"<unk>": 0, "a": true}'),
    "a vocabulary with a fraction for an id": ("tokenizer", "vocab.json", '{"<unk>": 0, "a": 1.0}'),
    "a number of thousands of digits": ("tokenizer", "vocab.json", '{"<unk>": ' + "9" * 5000 + "}"),
    "a word form that is no text": ("tokenizer", "word_forms.json", '{"anna": 3}'),
    "an added word far behind the others": (
        "tokenizer",
        "tokenizer_config.json",
        ("added_tokens_decoder", {str(10**12): {"content": "x"}}),
    ),
    "a tokenizer that is a list": ("tokenizer", "tokenizer_config.json", "[]"),
    "deep nesting in a key": ("annotation", "study/key.json", DEEP),
    "an endless number of annotators": ("annotation", "study/key.json", ("num_annotators", 10**12)),
    "annotators that are infinitely many": ("annotation", "study/key.json", ("num_annotators", float("inf"))),
    "a context that is text": ("annotation", "study/key.json", ("stories", [{"line": 1, "context": "ab"}])),
    "a story that is a list": (
        "annotation",
        "study/key.json",
        ("items", [{"id": "a", "story": [], "system": "b", "ending": "c"}]),
    ),
    "deep nesting in a report": ("report", "report.json", DEEP),
    "a configuration that is no json": ("code of a model", "config.json", "nothing"),
    "deep nesting in a checkpoint": ("forged checkpoint", "checkpoint-3/state.json", DEEP),
    "a checkpoint that is a list": ("forged checkpoint", "checkpoint-3/state.json", "[]"),
    "a step that is text": ("forged checkpoint", "checkpoint-3/state.json", '{"step": "3"}'),
    "options that are a date": ("options in yaml", "o.yaml", "max_steps: 2001-99-99"),
    "options with a number that is none": ("options in yaml", "o.yaml", "max_steps: !!int ''"),
    "options nested deeply": ("options in json", "o.json", DEEP),
    "an option that is there twice": ("options in yaml", "o.yaml", "max_steps: 10\nseed: 1\nmax_steps: 1000\n"),
    "an option of json that is there twice": ("options in json", "o.json", '{"max_steps": 1, "max_steps": 2}'),
    "a dataset with the wrong state": ("saved dataset", "saved/state.json", ("_data_files", 1.5)),
    "a dataset with features of nothing": ("saved dataset", "saved/dataset_info.json", ("features", "x")),
    "vectors with a header of many digits": ("vectors word2vec.txt", "word2vec.txt", "9" * 5000 + " 3\na 1 2 3\n"),
    "triples without end": ("knowledge table", "knowledge.json", ("max_triples", 10**9)),
    "relations that are text": ("knowledge table", "knowledge.json", ("relations", "abc")),
    "concepts that are text": ("knowledge table", "knowledge.json", ("concepts", {"burnt": "burn"})),
    "layers without end": ("model", "config.json", ("num_layers", 10**9)),
    "a model as wide as the sea": ("model", "config.json", ("hidden_size", 10**12)),
    "a model that is no model": ("model", "config.json", ("hidden_size", "x")),
    "weights that are cut": ("model", "model.safetensors", "short"),
    "a pickle among the weights": ("model", "config.json", ("transformers_weights", "adapter_model.bin")),
    "weights of elsewhere": ("model", "config.json", ("transformers_weights", "../../x.safetensors")),
}


@pytest.mark.parametrize("what", CORRUPTED)
def test_regressions_are_refused_by_name(what, tmp_path):
    name, file, change = CORRUPTED[what]
    target = TARGETS[name]
    target.build(tmp_path)
    path = tmp_path / file
    if isinstance(change, tuple):
        change = json.dumps({**json.loads(path.read_text(encoding="utf-8")), change[0]: change[1]})
    path.write_text(change, encoding="utf-8")
    if target.mend is not None:
        target.mend(tmp_path)
    with pytest.raises((ValueError, OSError)) as refusal:
        target.read(tmp_path)
    assert str(tmp_path) in str(refusal.value) or path.name in str(refusal.value)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Two hundred megabytes of blanks in a fifth of one."""
    return gzip.compress(b" " * (200 << 20), 1)


def test_stories_that_unpack_to_all_the_memory(bomb, tmp_path):
    (tmp_path / "train.jsonl.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"train.jsonl.gz unpacks to more than .* that is no text"):
        read_stories(tmp_path / "train.jsonl.gz")


def test_vectors_that_unpack_to_one_endless_line(bomb, tmp_path):
    (tmp_path / "glove.txt.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"glove.txt.gz, line 1: longer than"):
        load_word_vectors(tmp_path / "glove.txt.gz", {"a": 0})


def test_a_dump_that_unpacks_to_one_endless_line(bomb, tmp_path):
    (tmp_path / "dump.csv.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"dump.csv.gz unpacks to more than .* that is no ConceptNet"):
        list(read_edges(tmp_path / "dump.csv.gz", progress=False))


def test_much_text_that_shrinks_well_is_still_text(tmp_path):
    line = json.dumps(STORIES[0]) + "\n"
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(line.encode() * 20_000))
    assert len(read_stories(tmp_path / "train.jsonl.gz")) == 20_000


def test_a_few_lines_of_yaml_that_stand_for_gigabytes(tmp_path, capsys):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    names = ["max_steps", "seed", "system", "dropout", "recipe", "num_beams", "run_name", "save_steps", "data_dir"]
    names += ["output_dir", "report_to", "non_finite"]
    (tmp_path / "o.yaml").write_text(
        "\n".join(line.replace(f"a{n}:", f"{names[n]}:", 1) for n, line in enumerate(lines))
    )
    with pytest.raises(SystemExit):
        parse_options([str(tmp_path / "o.yaml")])
    assert "must be one value; got a list" in capsys.readouterr().err


def test_an_option_s_value_is_no_option(tmp_path):
    (tmp_path / "o.yaml").write_text('run_name: "--output_dir=/elsewhere"\n')
    options = parse_options([str(tmp_path / "o.yaml")])
    assert options.run_name == "--output_dir=/elsewhere" and options.output_dir == "trained"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(value, tmp_path):
    tiny_model().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["lm_head.weight"][1, 1] = value
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"`lm_head.weight` has values that are not finite"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)


class Evil:
    """Pickled, it writes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "was here")


@pytest.fixture
def no_unpickling(monkeypatch):
    """Whoever unpickles fails the test."""

    def fail(*arguments, **named):
        raise AssertionError("Something was unpickled.")

    for place in ("torch.load", "pickle.load", "pickle.loads", "pickle.Unpickler", "torch.serialization.load"):
        monkeypatch.setattr(place, fail)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.bin", "adapter_model.bin", "pytorch_model.bin.index.json"]
)
def test_pickled_weights_are_never_read(name, tmp_path, no_unpickling):
    tiny_model().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / name).write_bytes(pickle.dumps(Evil(tmp_path / "evil")))
    with pytest.raises(OSError, match=r"no file named model.safetensors"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)
    assert not (tmp_path / "evil").exists()


def test_an_index_can_not_name_pickled_weights(tmp_path, no_unpickling):
    TARGETS["sharded model"].build(tmp_path)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"] = dict.fromkeys(index["weight_map"], "evil.bin")
    path.write_text(json.dumps(index))
    (tmp_path / "evil.bin").write_bytes(pickle.dumps(Evil(tmp_path / "evil")))
    with pytest.raises(ValueError, match="pickled weights are never read"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("wish", [{"use_safetensors": False}, {"weights_only": False}])
def test_pickled_weights_can_not_be_asked_for(wish, tmp_path):
    tiny_model().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="never read"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path, **wish)


def test_loading_says_what_else_it_found(tmp_path):
    tiny_model().save_pretrained(tmp_path)
    model, information = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert isinstance(model, IncrementalEncoderForEndingGeneration) and not information["missing_keys"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
FIELDS = ["format", "max_triples", "relations", "statistics", "words", "phrases", "triples", "concepts"]
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(st.sampled_from(FIELDS), JSON_VALUES)
def test_any_value_in_a_knowledge_table(tmp_path_factory, field, value):
    path = tmp_path_factory.mktemp("table") / "knowledge.json"
    tiny_tokenizer().knowledge.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), field: value}), encoding="utf-8")
    try:
        table = KnowledgeTable.load(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        assert all(len(rows) <= table.max_triples for rows in table.triples.values())


@quick
@given(st.sampled_from(sorted(IncrementalEncoderConfig().to_dict())), JSON_VALUES)
def test_any_value_in_a_configuration(tmp_path_factory, field, value):
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps({"vocab_size": 20, field: value}))
    try:
        config = IncrementalEncoderConfig.from_pretrained(folder)
    except (ValueError, OSError) as error:
        assert str(folder) in str(error)
    else:
        assert config.vocab_size > config.eos_token_id


def test_a_cache_that_was_cut_is_made_anew(tmp_path, monkeypatch):
    from datasets import Dataset, DatasetDict

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    Dataset.from_list(STORIES * 700).save_to_disk(str(tmp_path / "stories"))
    stories = DatasetDict({"train": Dataset.load_from_disk(str(tmp_path / "stories"))})
    whole = tokenise_stories(stories, tiny_tokenizer())["train"]["input_ids"]
    (cached,) = (tmp_path / "cache").rglob("train.arrow")
    content = cached.read_bytes()
    cached.unlink()
    cached.write_bytes(content[: len(content) * 2 // 3])
    assert list(tokenise_stories(stories, tiny_tokenizer())["train"]["input_ids"]) == list(whole)


def test_names_of_systems_can_not_lead_out_of_the_output(tmp_path):
    from typer.testing import CliRunner

    (tmp_path / "test.jsonl").write_text("".join(json.dumps(story) + "\n" for story in STORIES), encoding="utf-8")
    (tmp_path / "endings.txt").write_text("a\nb\nc\n")
    arguments = ["score", "--endings", str(tmp_path / "endings.txt"), "--data_dir", str(tmp_path)]
    arguments += ["--bootstrap_samples", "0", "--name", "../outside", "--output_dir", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ValueError) and "`names`" in str(result.exception)
    assert not (tmp_path / "outside").exists()


def test_lines_of_files_are_no_html_in_the_report():
    split = {"stories": 1, "words_by_sentence": [1.0], "words_of_ending": 1.0, "unknown_words": 0.0}
    split |= {"padding_by_length": 0.0, "padding_as_they_come": 0.0}
    report = {
        "stories": {"train": split},
        "vocabulary": {"size": 1, "coverage": 1.0},
        "leaks": "none",
        "knowledge": None,
        "vectors": "words: <img src=x onerror=alert(1)>",
        "model": {"parameters": 1, "knowledge": None},
    }
    assert r"\<img" in describe_report(report)


def test_tensors_are_those_that_were_saved(tmp_path):
    """The checks of loading change nothing of a valid model."""
    model = tiny_model()
    model.save_pretrained(tmp_path)
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)
    assert all(torch.equal(weight, loaded.state_dict()[name]) for name, weight in model.state_dict().items())

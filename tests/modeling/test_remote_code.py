"""Saved to a folder and loaded where the package does not exist, in processes of their own."""

import ast
import json
import sys
from pathlib import Path

import pytest
import torch
from remote_code import STORY, WITHOUT_PACKAGE, run
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

import hf_storyend.modeling
from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

MODELING = Path(hf_storyend.modeling.__file__).parent
LOAD_AND_GENERATE = """
folder, story, target = sys.argv[1:]
config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
endings, names = [], [type(config).__name__, type(tokenizer).__name__]
for auto_class in (AutoModel, AutoModelForSeq2SeqLM):
    model = auto_class.from_pretrained(folder, trust_remote_code=True)
    ids = model.generate(**tokenizer(story, return_tensors="pt"), max_new_tokens=8, num_beams=2)
    endings.append(ids.tolist())
    names.append(type(model).__name__)
if target:
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
print(json.dumps({"endings": endings, "names": names, "text": tokenizer.batch_decode(ids, skip_special_tokens=True)}))
"""


@pytest.fixture
def saved(model, tokenizer, tmp_path) -> Path:
    folder = tmp_path / "saved model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_round_trip_without_the_package(saved, model, tokenizer, tmp_path):
    expected = model.generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=8, num_beams=2).tolist()
    first = run(
        WITHOUT_PACKAGE + LOAD_AND_GENERATE, str(saved), STORY, str(tmp_path / "again"), home=tmp_path / "home"
    )
    assert first.returncode == 0, first.stderr
    result = json.loads(first.stdout.splitlines()[-1])
    assert result["endings"] == [expected, expected]
    assert result["names"] == [
        "IncrementalEncoderConfig",
        "IncrementalEncoderTokenizer",
        "IncrementalEncoderForEndingGeneration",
        "IncrementalEncoderForEndingGeneration",
    ]
    second = run(WITHOUT_PACKAGE + LOAD_AND_GENERATE, str(tmp_path / "again"), STORY, "", home=tmp_path / "other home")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout.splitlines()[-1]) == result
    assert code_files(saved) == code_files(tmp_path / "again") == code_files(MODELING)


def code_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.py") if path.name != "__init__.py"}


def test_with_the_package_no_flag_is_needed(saved, tmp_path):
    code = """
import sys, hf_storyend
from transformers import AutoModel, AutoTokenizer
hf_storyend.register()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1])
assert type(model) is hf_storyend.IncrementalEncoderForEndingGeneration, type(model)
assert type(tokenizer) is hf_storyend.IncrementalEncoderTokenizer, type(tokenizer)
model.generate(**tokenizer("They saw smoke.", return_tensors="pt"), max_new_tokens=3)
"""
    result = run(code, str(saved), home=tmp_path / "home")
    assert result.returncode == 0, result.stderr


def test_without_flag_and_package_it_is_refused(saved, tmp_path):
    code = """
refusals = {}
for auto_class in (AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer, AutoConfig):
    try:
        auto_class.from_pretrained(sys.argv[1])
    except ValueError as error:
        refusals[auto_class.__name__] = str(error)
# The question whether to run the code ends without a line break.
print()
print(json.dumps(refusals))
"""
    result = run(WITHOUT_PACKAGE + code, str(saved), home=tmp_path / "home")
    assert result.returncode == 0, result.stderr
    refusals = json.loads(result.stdout.splitlines()[-1])
    assert set(refusals) == {"AutoModel", "AutoModelForSeq2SeqLM", "AutoTokenizer", "AutoConfig"}
    assert all("trust_remote_code=True" in message for message in refusals.values())


def test_modeling_needs_nothing_but_torch_and_transformers():
    allowed = {"torch", "transformers", *sys.stdlib_module_names}
    for path in MODELING.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{path.name} imports from outside its folder"
                names = [] if node.level else [node.module]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= allowed, f"{path.name} imports {names}"


def test_mixed_worlds(saved, tmp_path):
    """Installed model, remote tokenizer: what the Auto classes give when the flag is passed nevertheless."""
    code = """
import sys
from transformers import AutoModel, AutoTokenizer
import hf_storyend
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModel.from_pretrained(sys.argv[1], trust_remote_code=True)
model.generate(**tokenizer("They saw smoke.", return_tensors="pt"), max_new_tokens=3)
"""
    result = run(code, str(saved), home=tmp_path / "home")
    assert result.returncode == 0, result.stderr


def test_constants_come_back(model, tmp_path):
    """Loading must not draw any weight anew."""
    for index, parameter in enumerate(model.parameters()):
        parameter.data.fill_(0.01 * (index + 1))
    model.save_pretrained(tmp_path)
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)
    expected = dict(model.named_parameters())
    assert all((parameter == expected[name]).all() for name, parameter in loaded.named_parameters())


LOAD_ALL = """
from pathlib import Path
folders, story = sys.argv[1:-1], sys.argv[-1]
endings = {}
for folder in map(Path, folders):
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    ids = model.generate(**tokenizer(story, return_tensors="pt"), max_new_tokens=8, num_beams=2)
    endings[folder.name] = ids.tolist()
    model.save_pretrained(folder / "again")
print(json.dumps(endings))
"""


@pytest.mark.slow
def test_round_trip_of_every_system_without_the_package(tokenizer, tmp_path):
    models, expected = {}, {}
    for name, system in SYSTEMS.items():
        tokenizer.num_copy_slots = 4 if system.copy else 0
        torch.manual_seed(0)
        config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12, **system.settings)
        models[name] = IncrementalEncoderForEndingGeneration(config).eval()
        models[name].save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        ids = models[name].generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=8, num_beams=2)
        expected[name] = ids.tolist()
    folders = [str(tmp_path / name) for name in SYSTEMS]
    result = run(WITHOUT_PACKAGE + LOAD_ALL, *folders, STORY, home=tmp_path / "home")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == expected
    for name, model in models.items():
        loaded = AutoModel.from_pretrained(tmp_path / name / "again")
        assert loaded.config.to_diff_dict() == model.config.to_diff_dict()


def test_with_the_package_imported_all_classes_are_its_own(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for auto_class in (AutoConfig, AutoTokenizer, AutoModel, AutoModelForSeq2SeqLM):
        loaded = auto_class.from_pretrained(tmp_path, trust_remote_code=True)
        assert type(loaded).__module__.startswith("hf_storyend.modeling."), auto_class
        assert type(loaded) is type(auto_class.from_pretrained(tmp_path))

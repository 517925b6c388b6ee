"""The public API: its names exist, are documented and cost nothing to import."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import hf_storyend
from hf_storyend import lazy

ROOT = Path(__file__).parent.parent
STORY = "Mei put a cake in the oven. She fell asleep."
PACKAGES = [
    "hf_storyend",
    *(f"hf_storyend.{path.parent.name}" for path in sorted((ROOT / "hf_storyend").glob("*/__init__.py"))),
    "hf_storyend.modeling",
]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name in PACKAGES if name not in ("hf_storyend.assets", "hf_storyend.cli")])
def test_all_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) - {"__version__"} <= set(dir(module))
    for public in module.__all__:
        value = getattr(module, public)
        assert not inspect.ismodule(value), f"{name}.{public} is a module"
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{public} has no docstring"


def test_importing_the_packages_imports_neither_torch_nor_transformers():
    names = [name for name in PACKAGES if name != "hf_storyend.modeling"]
    modules = [
        *names,
        *(f"{name}.options" for name in names if (ROOT / name.replace(".", "/") / "options.py").exists()),
    ]
    code = f"import sys, {', '.join(modules)}, hf_storyend.cli.main\n"
    run_python(code + "assert not {'torch', 'transformers', 'datasets', 'accelerate'} & sys.modules.keys()")


@pytest.mark.parametrize(
    "code",
    [
        "import hf_storyend, transformers; hf_storyend.default_model()",
        "import transformers, hf_storyend",
        "import hf_storyend; hf_storyend.register(); hf_storyend.register(); import transformers",
        "from hf_storyend import KnowledgeTable; import transformers",
    ],
)
def test_the_auto_classes_know_the_model(code):
    loading = "; from hf_storyend.pretrained import default_model; directory = default_model(); "
    loading += "print(type(transformers.AutoConfig.from_pretrained(directory)).__module__, "
    loading += "'story-ending' in transformers.pipelines.PIPELINE_REGISTRY.get_supported_tasks())"
    printed = run_python(code + loading)
    assert printed.split() == ["hf_storyend.modeling.configuration_incremental_encoder", "True"]


def test_the_version_is_that_of_the_metadata():
    assert hf_storyend.__version__ == version("hf_storyend")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'hf_storyend' has no attribute 'paint'"):
        _ = hf_storyend.paint


def test_every_public_name_has_an_example_in_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"`([\w.]+)(?:\(.*?\))?`", "\n".join(re.findall(r"^##+ (.*)$", page, re.MULTILINE))))
    assert headings == set(hf_storyend.__all__)


def test_a_function_may_have_the_name_of_its_module(tmp_path, monkeypatch):
    package = tmp_path / "lazy_example"
    package.mkdir()
    (package / "push.py").write_text("def push(): return 1\nother = 2\n")
    (package / "__init__.py").write_text(
        "from hf_storyend.lazy import lazy_exports\n"
        "__getattr__, __dir__, __all__ = lazy_exports(__name__, {'push': '.push', 'other': '.push'})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lazy_example.push")
    example = importlib.import_module("lazy_example")
    assert inspect.ismodule(module) and example.push() == 1 and example.other == 2
    assert dir(example) == example.__all__ == ["other", "push"]
    assert lazy.lazy_exports.__doc__


def test_generate_a_story_and_several():
    ending = hf_storyend.generate(STORY)
    assert isinstance(ending, str) and ending
    write = hf_storyend.pipeline(max_new_tokens=5)
    both = hf_storyend.generate([STORY, "Omar's car made a strange noise."], write)
    assert len(both) == 2 and all(both) and hf_storyend.generate(STORY, write) == both[0]
    with pytest.raises(ValueError, match="`num_return_sequences` must be 1"):
        hf_storyend.generate(STORY, num_beams=2, num_return_sequences=2)
    assert json.dumps(write(STORY, num_beams=2, num_return_sequences=2))


def test_load_is_model_and_tokenizer(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded_model, loaded_tokenizer = hf_storyend.load(tmp_path)
    assert type(loaded_model) is type(model) and type(loaded_tokenizer) is type(tokenizer)
    assert not loaded_model.training
    with pytest.raises(ValueError, match="`my_model` is no model"):
        hf_storyend.load("my_model")


def test_a_model_is_a_directory_a_hub_name_or_the_packages_own(tmp_path):
    from hf_storyend.pretrained import find_model

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    assert find_model(tmp_path / "model") == str(tmp_path / "model")
    with pytest.raises(ValueError, match=r"has no config\.json\. Is it one of .*model\?"):
        find_model(tmp_path)
    assert find_model("me/ie-msa-ca") == "me/ie-msa-ca"
    assert find_model(None) == hf_storyend.default_model()

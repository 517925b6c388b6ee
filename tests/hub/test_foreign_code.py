"""What `check-code` calls identical runs nothing but this package's code: proven by running it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub.hub_server import MY_TOKEN, Blob
from huggingface_hub import HfApi

from hf_storyend.hub import HubError, check_code, push

REPO = "me/ie-msa-ca"
# Loads a model as its users do, and prints what the foreign code printed.
LOAD = """
import sys
from transformers import AutoModel, AutoTokenizer, pipeline
model = AutoModel.from_pretrained(sys.argv[1], trust_remote_code=True)
AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
"""
FOREIGN = "print('foreign code has run')\n"


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def config_of_another_repository(folder: Path) -> str:
    edit(folder / "config.json", auto_map={"AutoModel": "ann/other--modeling_incremental_encoder.Foreign"})
    return "config.json: `auto_map`"


def tokenizer_of_another_repository(folder: Path) -> str:
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["ann/other--tokens.Foreign", None]})
    return "tokenizer_config.json: `auto_map`"


def code_in_a_sub_folder(folder: Path) -> str:
    (folder / "nested").mkdir()
    (folder / "nested" / "modeling_incremental_encoder.py").write_text(FOREIGN)
    return "nested/modeling_incremental_encoder.py"


def custom_generate(folder: Path) -> str:
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(FOREIGN + "def generate(model, **kwargs):\n    pass\n")
    return "custom_generate/generate.py"


def foreign_pipeline(folder: Path) -> str:
    edit(folder / "config.json", custom_pipelines={"story-ending": {"impl": "ann/other--pipe.Foreign", "pt": []}})
    return "config.json: `custom_pipelines`"


def kernel(folder: Path) -> str:
    edit(folder / "config.json", _attn_implementation="ann/kernel")
    return "config.json: `_attn_implementation`"


def adapter_of_another_model(folder: Path) -> str:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "ann/other"}))
    return "adapter_config.json: `base_model_name_or_path`"


def another_configuration_file(folder: Path) -> str:
    edit(folder / "config.json", configuration_files=["config.5.0.0.json"])
    return "config.json: `configuration_files`"


def nested_settings(folder: Path) -> str:
    edit(folder / "generation_config.json", assistant=[{"auto_map": {"AutoModel": "ann/other--a.B"}}])
    return "generation_config.json: `assistant.0.auto_map`"


def settings_in_a_sub_folder(folder: Path) -> str:
    (folder / "nested").mkdir()
    (folder / "nested" / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "ann/other--a.B"}}))
    return "nested/config.json: `auto_map`"


def code_behind_a_link(folder: Path) -> str:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text(FOREIGN)
    (folder / "linked").symlink_to(elsewhere)
    return "linked"


def code_that_is_a_link(folder: Path) -> str:
    """Whoever may write the file it leads to decides later what is run."""
    (folder / "losses.py").rename(folder.parent / "losses.py")
    (folder / "losses.py").symlink_to(folder.parent / "losses.py")
    return "losses.py"


def settings_that_are_a_link(folder: Path) -> str:
    (folder / "config.json").rename(folder.parent / "config.json")
    (folder / "config.json").symlink_to(folder.parent / "config.json")
    return "config.json"


def everything_behind_a_link(folder: Path) -> str:
    (folder / "linked").symlink_to("/")
    return "linked"


def link_to_nothing_yet(folder: Path) -> str:
    (folder / "generation_config.json").unlink()
    (folder / "generation_config.json").symlink_to(folder.parent / "later.json")
    return "generation_config.json"


def pipe(folder: Path) -> str:
    """Whoever writes to it decides later what is read."""
    os.mkfifo(folder / "processor_config.json")
    return "processor_config.json"


def kernel_by_an_inner_name(folder: Path) -> str:
    edit(folder / "config.json", _attn_implementation_internal="ann/kernel")
    return "config.json: `_attn_implementation_internal`"


def adapter_without_a_base(folder: Path) -> str:
    (folder / "adapter_config.json").write_text(json.dumps({"auto_mapping": {"parent_library": "foreign"}}))
    return "adapter_config.json"


def list_of_classes(folder: Path) -> str:
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoModel"] = [config["auto_map"]["AutoModel"], "ann/other--a.B"]
    edit(folder / "config.json", **config)
    return "config.json: `auto_map`"


def custom_generate_in_a_sub_folder(folder: Path) -> str:
    (folder / "best" / "custom_generate").mkdir(parents=True)
    (folder / "best" / "custom_generate" / "generate.py").write_text(FOREIGN)
    return "best/custom_generate/generate.py"


def another_type_of_model(folder: Path) -> str:
    """Without `trust_remote_code`, other classes of transformers would read the files, whatever the code says."""
    edit(folder / "config.json", model_type="gpt2")
    return "config.json: `model_type`"


def another_class_of_tokenizer(folder: Path) -> str:
    """Without `trust_remote_code`, transformers would read the files with it, whatever the code says."""
    edit(folder / "tokenizer_config.json", tokenizer_class="RagTokenizer")
    return "tokenizer_config.json: `tokenizer_class`"


def class_of_tokenizer_in_the_configuration(folder: Path) -> str:
    edit(folder / "config.json", tokenizer_class="RagTokenizer")
    return "config.json: `tokenizer_class`"


def adapter_in_capital_letters(folder: Path) -> str:
    """Some file systems find it by its name in small letters."""
    (folder / "Adapter_Config.JSON").write_text("{}")
    return "Adapter_Config.JSON"


def template_in_a_file(folder: Path) -> str:
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return "chat_template.jinja"


def template_in_a_setting(folder: Path) -> str:
    edit(folder / "tokenizer_config.json", chat_template="{{ messages }}")
    return "tokenizer_config.json: `chat_template`"


def knowledge_from_elsewhere(folder: Path) -> str:
    """Earlier versions of transformers read the file of that name, wherever it is."""
    edit(folder / "tokenizer_config.json", knowledge_file=str(folder.parent / "secret.json"))
    return "tokenizer_config.json: `knowledge_file`"


def tokenizer_of_sound(folder: Path) -> str:
    sound = {"audio_tokenizer_class": "DacModel", "audio_tokenizer_name_or_path": "ann/other"}
    (folder / "processor_config.json").write_text(json.dumps({"audio_tokenizer": sound}))
    return "processor_config.json: `audio_tokenizer`"


def processor(folder: Path) -> str:
    (folder / "processor_config.json").write_text(json.dumps({"auto_map": {"AutoProcessor": "ann/other--a.B"}}))
    return "processor_config.json: `auto_map`"


def unicode_names(folder: Path) -> str:
    """Looks like a file of ours: its o is Cyrillic."""
    (folder / "l\u043esses.py").write_text(FOREIGN)
    return "l\u043esses.py"


def compiled_code(folder: Path) -> str:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "losses.cpython-311.pyc").write_bytes(b"foreign")
    return "__pycache__/losses.cpython-311.pyc"


ATTACKS = [
    config_of_another_repository,
    tokenizer_of_another_repository,
    code_in_a_sub_folder,
    custom_generate,
    foreign_pipeline,
    kernel,
    adapter_of_another_model,
    another_configuration_file,
    nested_settings,
    settings_in_a_sub_folder,
    kernel_by_an_inner_name,
    adapter_without_a_base,
    list_of_classes,
    custom_generate_in_a_sub_folder,
    another_type_of_model,
    another_class_of_tokenizer,
    class_of_tokenizer_in_the_configuration,
    adapter_in_capital_letters,
    template_in_a_file,
    template_in_a_setting,
    knowledge_from_elsewhere,
    tokenizer_of_sound,
    processor,
    unicode_names,
    compiled_code,
]
# The Hub has none of these.
LOCAL_ATTACKS = [
    code_behind_a_link,
    code_that_is_a_link,
    settings_that_are_a_link,
    everything_behind_a_link,
    link_to_nothing_yet,
    pipe,
]


@pytest.mark.parametrize("attack", ATTACKS + LOCAL_ATTACKS, ids=lambda attack: attack.__name__)
def test_foreign_code_is_found(folder, attack):
    assert check_code(folder).is_identical
    name = attack(folder)
    check = check_code(folder)
    assert not check.is_identical and name in check.different + check.foreign


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_foreign_code_on_the_hub_is_found(hub, api, folder, attack):
    push(folder, REPO, api=api)
    attack(folder)
    paths = [path for path in folder.rglob("*") if path.is_file() and "checkpoint" not in str(path)]
    hub.repos[REPO].commit("main", {path.relative_to(folder).as_posix(): Blob(path.read_bytes()) for path in paths})
    assert not check_code(REPO, api=api).is_identical


def test_a_custom_generate_that_is_found_would_have_run(folder, tmp_path):
    """The check is not stricter than transformers: this file does run."""
    custom_generate(folder)
    surroundings = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", LOAD, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    assert "foreign code has run" in result.stdout, result.stderr


def test_words_named_like_settings_are_words(folder):
    vocabulary = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps({**vocabulary, "auto_map": len(vocabulary)}))
    assert check_code(folder).is_identical


def test_the_code_of_the_best_model_may_lie_beside(folder, model, tokenizer):
    model.save_pretrained(folder / "best")
    tokenizer.save_pretrained(folder / "best")
    check = check_code(folder)
    assert check.is_identical and "best/knowledge_table.py" in check.identical
    (folder / "best" / "knowledge_table.py").write_text(FOREIGN)
    assert check_code(folder).different == ["best/knowledge_table.py"]


def test_the_revision_is_that_of_the_comparison(hub, api, folder):
    first = push(folder, REPO, api=api).commit_url.rsplit("/", 1)[1]
    assert check_code(REPO, api=api).revision == first
    repo = hub.repos[REPO]
    second = repo.commit("main", {**repo.commits[first], "mine.py": Blob(FOREIGN.encode())})
    assert check_code(REPO, api=api).revision == second and check_code(REPO, api=api).foreign == ["mine.py"]
    assert check_code(REPO, first, api=api).is_identical


def test_code_that_the_hub_does_not_list_at_once(hub, api, folder):
    """Of a repository with many files, `model_info` lists some: the Hub cuts the list short."""
    first = push(folder, REPO, api=api).commit_url.rsplit("/", 1)[1]
    repo = hub.repos[REPO]
    repo.commit("main", {**repo.commits[first], "zoo.py": Blob(FOREIGN.encode())})
    hub.max_siblings = len(repo.commits[first])
    assert "zoo.py" not in [file.rfilename for file in api.model_info(REPO).siblings]
    assert check_code(REPO, api=api).foreign == ["zoo.py"]


def test_a_directory_has_no_revision(folder):
    with pytest.raises(ValueError, match="`revision` is for models on the Hub"):
        check_code(folder, "v1.0")


def test_a_cache_is_no_answer(hub, api, folder):
    """The Hub may have changed since: out of its reach the check fails."""
    first = push(folder, REPO, api=api).commit_url.rsplit("/", 1)[1]
    assert check_code(REPO, api=api).is_identical
    unreachable = HfApi(endpoint="http://127.0.0.1:9", token=MY_TOKEN)
    for revision in (None, "main", first):
        with pytest.raises(HubError, match="can't be reached"):
            check_code(REPO, revision, api=unreachable)
    hub.fail("GET /api/models/", 503, times=1000)
    with pytest.raises(HubError, match="error 503"):
        check_code(REPO, api=api)


def test_what_was_compared_is_said(folder):
    check = check_code(folder)
    assert check.settings == [
        "config.json: `auto_map`",
        "config.json: `custom_pipelines`",
        "config.json: `model_type`",
        "tokenizer_config.json: `auto_map`",
        "tokenizer_config.json: `tokenizer_class`",
    ]


def test_settings_that_are_not_there_are_missing(folder):
    edit(folder / "tokenizer_config.json", auto_map=None)
    assert check_code(folder).missing == ["tokenizer_config.json: `auto_map`"]

"""Training options from the command line and from files, and the messages about wrong ones."""

import dataclasses
import json

import pytest

from hf_storyend.training import TrainingOptions, parse_options, read_options
from hf_storyend.training.options import RENAMED_OPTIONS


def test_every_option_is_explained(capsys):
    with pytest.raises(SystemExit) as stop:
        parse_options(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for option in dataclasses.fields(TrainingOptions):
        assert f"--{option.name}" in text
        assert len(option.metadata["help"]) > 10


def test_the_command_line_is_spelt_as_in_transformers():
    options = parse_options(
        "--output_dir out --max_steps 7 --learning_rate 1e-3 --save_steps 3 --resume_from_checkpoint never --seed 5 "
        "--system ie-msa-ga --data_dir here --no_load_best_model_at_end --torch_compile".split()
    )
    assert options == TrainingOptions(
        output_dir="out",
        max_steps=7,
        learning_rate=1e-3,
        save_steps=3,
        resume_from_checkpoint="never",
        seed=5,
        system="ie-msa-ga",
        data_dir="here",
        load_best_model_at_end=False,
        torch_compile=True,
    )


def test_hyphens_are_accepted():
    assert parse_options(["--save-steps", "3", "--data-dir=prepared"]).save_steps == 3


@pytest.mark.parametrize("name", ["options.yaml", "options.json"])
def test_a_file_and_then_the_command_line(tmp_path, name):
    values = {"max_steps": 9, "learning_rate": 1e-3, "tie_word_embeddings": True, "data_dir": None}
    text = json.dumps(values) if name.endswith("json") else "".join(f"{key}: {_yaml(values[key])}\n" for key in values)
    (tmp_path / name).write_text(text)
    options = parse_options([str(tmp_path / name), "--max_steps", "11"])
    assert (options.max_steps, options.learning_rate, options.tie_word_embeddings) == (11, 1e-3, True)
    assert options.data_dir is None
    assert read_options(tmp_path / name, max_steps=11) == options


def _yaml(value) -> str:
    return {None: "null", True: "true", 1e-3: "1e-3"}.get(value, str(value))


WRONG_FILES = [
    ("max_stps: 9", "options that do not exist: max_stps"),
    ("- max_steps", "must hold options by name"),
    ("max_steps: [1, 2]", "`max_steps` must be one value"),
    ("max_steps: many", "argument --max_steps"),
    ("recipe: old", "argument --recipe"),
    ("a: b: c", "can't be read"),
    ("system: gpt", "There is no system `gpt`; choose one of"),
    ("max_steps: 0", "`max_steps` must be at least 1, or -1"),
    ("num_train_epochs: -1", "`num_train_epochs` must be above 0"),
    ("save_steps: 0", "`save_steps` must be a whole number of at least 1"),
    ("{recipe: paper, warmup_ratio: 0.1}", "`warmup_ratio` belongs to the recipe `modern`"),
    ("warmup_ratio: 1.5", "`warmup_ratio` must be"),
    ("max_grad_norm: 0", "`max_grad_norm` must be above 0"),
    ("torch_compile_mode: max-autotune", "`torch_compile` is off"),
    *((f"{old}: 3", f"`{old}` is now called `{new}`") for old, new in RENAMED_OPTIONS.items()),
]


@pytest.mark.parametrize(("text", "message"), WRONG_FILES)
def test_wrong_options_end_in_one_line_and_exit_code_2(tmp_path, capsys, text, message):
    path = tmp_path / "options.yaml"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        parse_options([str(path)])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("text", "message"), WRONG_FILES)
def test_wrong_options_raise_in_python(tmp_path, text, message):
    path = tmp_path / "options.yaml"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        read_options(path)
    assert message in str(raised.value)


@pytest.mark.parametrize("words", [["--prepared", "x"], ["--checkpoint-every=3"], ["--resume", "auto"]])
def test_renamed_options_on_the_command_line(capsys, words):
    with pytest.raises(SystemExit):
        parse_options(words)
    assert "is now called" in capsys.readouterr().err


def test_old_names_are_allowed_as_values():
    assert parse_options(["--data_dir", "prepared", "--run_name=resume"]).data_dir == "prepared"


def test_a_missing_file(capsys):
    with pytest.raises(SystemExit):
        parse_options(["nowhere.yaml"])
    assert "nowhere.yaml" in capsys.readouterr().err

"""`storyend train`, as typed."""

import math
import re
import stat
from pathlib import Path

import pytest
from training_runs import run_module


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of six updates with a checkpoint after four, and the same command again."""
    folder = tmp_path_factory.mktemp("trained")
    config = folder / "options.yaml"
    sizes = "hidden_size: 8\nembedding_size: 8\nnum_layers: 1\n"
    length = "max_train_samples: 20\nmax_steps: 4\nlogging_steps: 1\nsave_steps: 4\neval_steps: 100\n"
    config.write_text(sizes + length)
    command = ("hf_storyend", "train", "--config", str(config), "--output_dir", str(folder / "run"))
    return folder / "run", run_module(*command), run_module(*command, "--max_steps", "6")


@pytest.mark.slow
def test_options_come_from_the_file_and_then_from_the_line(trained):
    _, first, second = trained
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "step 4/4:" in first.stderr and "step 6/6:" in second.stderr


@pytest.mark.slow
def test_output_of_a_run(trained):
    directory, first, second = trained
    shown = re.findall(r"ending loss ([\d.]+) \(perplexity ([\d.]+)\)", first.stderr)
    assert len(shown) == 4
    for loss, perplexity in shown:
        assert math.exp(float(loss)) == pytest.approx(float(perplexity), abs=0.2)
    assert first.stderr.count("bleu_1") == 1 and "33 of 33 validation stories" in first.stderr
    assert "Resumed from checkpoint-4, after 4 of 6 updates." in second.stderr
    assert "Resumed" not in first.stderr
    assert "Loading weights" not in first.stderr + second.stderr
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".")]
    plain = Path(directory, "config.json").stat().st_mode
    assert {path.name for path in files if stat.S_IMODE(path.stat().st_mode) != stat.S_IMODE(plain)} == set()
    assert plain & stat.S_IRGRP


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max_steps", "0"), "`--max_steps` must be at least 1"),
        (("--config", "missing.yaml"), "missing.yaml can't be opened: No such file or directory."),
        (("--data_dir", "nowhere"), "nowhere has no `config.json`"),
        (("--system", "gpt"), "gpt"),
    ],
)
def test_wrong_input_is_one_message(tmp_path, monkeypatch, capsys, words, message):
    from hf_storyend.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["storyend", "train", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr().err
    assert ended.value.code == 2 and "Error:" in printed and message in printed.replace("\n", " ")
    assert "Traceback" not in printed

"""Control characters in stories, vocabularies, endings and errors reach no terminal: they are shown."""

import ast
import io
import json
import logging
import re
import subprocess
import sys
import threading
import traceback
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.cli import main, printing
from hf_storyend.data.text_files import stream_lines
from hf_storyend.knowledge.conceptnet import read_edges
from hf_storyend.knowledge.edges import ReadReport
from hf_storyend.terminal import printable, printable_json, printable_logs
from hf_storyend.training import run_as_program

ROOT = Path(__file__).parent.parent.parent
# Clears the screen; sets the title; an 8-bit escape; a carriage return; an override of the direction; an isolate.
EVIL = "\x1b[2Jtea\x1b]0;title\x07 \x9b31m over\rwritten \u202elive\u2066 end\x7f"
SHOWN = r"\x1b[2Jtea\x1b]0;title\x07 \x9b31m over\x0dwritten \u202elive\u2066 end\x7f"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def test_control_characters_are_shown():
    assert printable(EVIL) == SHOWN
    assert printable("naïve\tcafé\n😀 שלום 👩\u200d🔬") == "naïve\tcafé\n😀 שלום 👩\u200d🔬"


@given(st.text())
def test_nothing_dangerous_is_left_and_json_means_the_same(text):
    assert not DANGEROUS.search(printable(text))
    encoded = printable_json(json.dumps({"a": text}, ensure_ascii=False, indent=1))
    assert not DANGEROUS.search(encoded) and json.loads(encoded) == {"a": text}


_TRIPLE = {"head": EVIL, "relation": "IsA", "tail": "x", "word": EVIL, "sentence": 1, "position": 1, "share": 1.0}
ENDING = {
    "ending": EVIL,
    "score": -1.0,
    "words": [{"word": EVIL, "probability": 1.0, "vocabulary": 0.0, "story": [], "triples": [_TRIPLE], "other": 0.0}],
    "evidence": [{**_TRIPLE, "ending_word": EVIL, "effect": 1.0, "factor": 2.7}],
    "knowledge_effect": {"effect": 1.0, "factor": 2.7},
}


@pytest.mark.parametrize(
    "show",
    [
        lambda: printing.print_line(EVIL),
        lambda: printing.print_page(f"# {EVIL}\n\n| {EVIL} |\n"),
        lambda: printing.print_text(EVIL),
        lambda: printing.print_json({"ending": EVIL}),
        lambda: printing.print_json(json.dumps({"ending": EVIL}, ensure_ascii=False)),
        lambda: printing.print_endings(EVIL, [ENDING]),
        lambda: printing.print_error(EVIL),
        lambda: printing.print_on_stderr(EVIL),
    ],
)
def test_whatever_commands_print(capsys, show):
    show()
    out, err = capsys.readouterr()
    assert out + err and not DANGEROUS.search(out + err)


def test_all_commands_print_with_these_functions():
    """So that a new command can't forget it."""
    for path in (ROOT / "hf_storyend" / "cli").glob("*.py"):
        if path.name == "printing.py":
            continue
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        printers = [call for call in calls if isinstance(call, ast.Name) and call.id == "print"]
        printers += [
            call for call in calls if isinstance(call, ast.Attribute) and call.attr in ("echo", "print", "secho")
        ]
        assert not printers, path


@pytest.mark.parametrize("name", ["hf_storyend", "transformers", "another.library"])
def test_logs_of_all_libraries(name, caplog):
    with printable_logs():
        logging.getLogger(name).warning("a story: %s", EVIL)
    assert f"a story: {SHOWN}" in caplog.messages


def test_tracebacks_in_logs_and_warnings(capsys):
    """The demo logs errors of its server with what a visitor wrote in them."""
    handler = logging.StreamHandler()
    logger = logging.getLogger("another.library")
    logger.addHandler(handler)
    with printable_logs():
        try:
            raise RuntimeError(EVIL)
        except RuntimeError:
            logger.exception("It failed.")
        # What Python prints of a warning; pytest collects them instead.
        warned = warnings.formatwarning(UserWarning(EVIL), UserWarning, "file.py", 1)
    logger.removeHandler(handler)
    err = capsys.readouterr().err
    assert f"RuntimeError: {SHOWN}" in err and not DANGEROUS.search(err)
    assert f"UserWarning: {SHOWN}" in warned and not DANGEROUS.search(warned)


def test_tracebacks_that_libraries_print(capsys):
    """As Gradio does of requests that fail, and Python of threads."""
    with printable_logs():
        try:
            raise RuntimeError(EVIL)
        except RuntimeError as error:
            traceback.print_exc()
            traceback.print_exception(error)
        thread = threading.Thread(target=lambda: int(EVIL), name=EVIL)
        thread.start()
        thread.join()
    err = capsys.readouterr().err
    assert err.count(f"RuntimeError: {SHOWN}") == 2 and "ValueError: invalid literal" in err
    assert not DANGEROUS.search(err)
    with io.StringIO() as file:
        traceback.print_exception(RuntimeError(EVIL), file=file)
        assert EVIL in file.getvalue(), "Python is left as it was."


@pytest.mark.parametrize(
    "read",
    [
        lambda path: list(stream_lines(path)),
        lambda path: list(read_edges([path], report=ReadReport())),
    ],
    ids=["word vectors", "ConceptNet"],
)
def test_the_progress_bar_of_a_file(tmp_path, capsys, monkeypatch, read):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    path = tmp_path / "file\x1b[2J.txt"
    path.write_text("/a/x\t/r/IsA\t/c/en/cake\t/c/en/food\t{}\n")
    read(path)
    err = capsys.readouterr().err
    # The bar itself moves the cursor up and to the left.
    assert r"file\x1b[2J.txt" in err and not DANGEROUS.search(err.replace("\r", "").replace("\x1b[A", ""))


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_errors_of_commands(monkeypatch, capsys, error):
    def fail(**settings) -> None:
        raise error(EVIL)

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit):
        main.main()
    err = capsys.readouterr().err
    assert r"\x1b[2Jtea" in err and not DANGEROUS.search(err)


def test_errors_and_logs_of_training(capsys):
    def fail() -> None:
        logging.getLogger("hf_storyend.training").warning(EVIL)
        raise ValueError(EVIL)

    with pytest.raises(SystemExit):
        run_as_program(fail)
    err = capsys.readouterr().err
    assert SHOWN in err and not DANGEROUS.search(err)


@pytest.mark.slow
def test_a_vocabulary_of_escapes(tmp_path):
    """The whole command, with a model that can write nothing else."""
    words = ["<unk>", "<pad>", "<s>", "</s>", "\x1b[2J", "\x9b31m", "\u202elive"]
    tokenizer = IncrementalEncoderTokenizer(vocab={word: place for place, word in enumerate(words)})
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=4, hidden_size=6)
    model = IncrementalEncoderForEndingGeneration(config)
    with torch.no_grad():
        model.lm_head.bias[3] = -100
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    for extra in ([], ["--json"]):
        command = [sys.executable, "-m", "hf_storyend.cli.main", "generate", EVIL.replace("\x00", ""), "--model"]
        result = subprocess.run([*command, str(tmp_path / "model"), *extra], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert re.search(r"\\(x|u00)1b|\\(x|u00)9b|\\u202e", result.stdout)
        assert not DANGEROUS.search(result.stdout + result.stderr)

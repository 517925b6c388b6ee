"""The code that travels with a model computes, reads its own files and writes when it is told to save; no more."""

from pathlib import Path

import pytest
from robustness.code_rules import problems

from hf_storyend import modeling

MODULES = sorted(Path(modeling.__file__).parent.glob("*.py"))


def test_all_modules_are_found():
    assert {"modeling_incremental_encoder", "fused_recurrence", "losses"} <= {path.stem for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_breaks_no_rule(path):
    assert problems(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("snippet", "problem"),
    [
        ("import socket", "imports socket"),
        ("import os", "imports os"),
        ("def f():\n    from subprocess import run", "imports subprocess.run"),
        ("import urllib.request", "imports urllib.request"),
        ("from http import client", "imports http.client"),
        ("import ctypes as torch", "imports ctypes"),
        ("import pickle", "imports pickle"),
        ("import shutil", "imports shutil"),
        ("import numpy", "imports numpy"),
        ("import safetensors", "imports safetensors"),
        ("import importlib", "imports importlib"),
        ("from torch import hub", "imports torch.hub"),
        ("from torch.utils import cpp_extension", "imports torch.utils.cpp_extension"),
        ("from transformers.dynamic_module_utils import get_class_from_dynamic_module", "dynamic_module_utils"),
        ("from ..data import stories", "imports from outside its folder"),
        ("torch.load(path)", "uses torch.load"),
        ("torch.hub.load('a/b', 'c')", "uses torch.hub"),
        ("torch.ops.load_library('evil.so')", "uses torch.ops.load_library"),
        ("eval('1')", "uses eval"),
        ("exec('1')", "uses exec"),
        ("run = exec", "uses exec"),
        ("__import__('os')", "uses __import__"),
        ("open('a')", "uses open"),
        ("open('a', 'w')", "uses open"),
        ("pathlib.os.system('ls')", "uses pathlib.os.system"),
        ("f.__globals__['os']", "uses f.__globals__"),
        ("object.__subclasses__()", "uses object.__subclasses__"),
        ("getattr(torch, 'lo' + 'ad')(path)", "looks an attribute up"),
        ("getattr(torch, name)(path)", "looks an attribute up"),
        ("[getattr(torch, item.name) for item in names]", "looks an attribute up"),
        ("[getattr(torch, name) for item in fields(x)]", "looks an attribute up"),
        ("Path('a').unlink()", "unlink"),
        ("Path('a').write_text('b')", "writes with write_text outside of saving"),
        ("def load(path):\n    path.write_bytes(b'')", "writes with write_bytes outside of saving"),
        ("def load(path):\n    with path.open('w') as file:\n        pass", "writes with open outside of saving"),
    ],
)
def test_every_rule_catches_what_it_is_for(snippet, problem):
    assert any(problem in found for found in problems(snippet)), problems(snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        "import torch\nfrom torch.nn import functional",
        "from .text_processing import split_words",
        "def save_vocabulary(self, folder):\n    path.write_text('a')",
        "getattr(module, 'init_std', 1)",
        "{item.name: getattr(x, item.name) for item in fields(x)}",
        "Path(path).read_text(encoding='utf-8')",
    ],
)
def test_what_the_code_needs_is_allowed(snippet):
    assert problems(snippet) == []

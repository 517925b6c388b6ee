"""What may import what, what travels to the Hub, and which names of others the code relies on."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

import pytest

import hf_storyend.modeling

ROOT = Path(__file__).parent.parent
LIBRARY, MODELING = ROOT / "hf_storyend", ROOT / "modeling"

# Modules beside the packages; every package may import them, and they import nothing but modeling, files and adapters.
SHARED = {
    *("adapters", "files", "half_precision", "html_page", "lazy", "manifest", "options", "pretrained", "processes"),
    *("story_text", "systems", "terminal", "triple_tensors"),
}
# What each package may import of the others; docs/architecture.md has the same list.
ALLOWED = {
    "modeling": set(),
    "knowledge": {"modeling"},
    "data": {"knowledge", "modeling"},
    "explanation": {"modeling"},
    "export": {"modeling"},
    "evaluation": {"data", "modeling"},
    "annotation": {"data", "evaluation"},
    "hub": {"evaluation", "modeling"},
    "training": {"data", "evaluation", "hub", "modeling"},
    "comparison": {"data", "evaluation", "hub", "modeling", "training"},
    "demo": {"explanation", "hub", "modeling"},
    "generation": {"data", "modeling"},
    "ranking": {"modeling"},
    # Nothing imports the command line.
    "cli": {
        *(
            "annotation",
            "comparison",
            "data",
            "demo",
            "evaluation",
            "explanation",
            "export",
            "generation",
            "hub",
            "modeling",
            "ranking",
        ),
        "training",
    },
}

# Private names of others that modeling/ reads.
READ = {
    # torch has no public way to ask whether a module has hooks.
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    # The public property of the tokenizer sorts all tokens on every access.
    "_added_tokens_encoder",
}
# Private names that transformers' base classes define for subclasses to override.
EXTENSION_POINTS = {
    # PreTrainedModel and GenerationMixin: every model of transformers sets these.
    # The documented methods of named tuples.
    *("_asdict", "_fields"),
    *("_init_weights", "_is_stateful", "_no_split_modules", "_supports_default_dynamic_cache", "_tied_weights_keys"),
    # PreTrainedTokenizer: the documented methods of a tokenizer in Python.
    *("_convert_id_to_token", "_convert_token_to_id", "_decode", "_tokenize"),
    # Pipeline: the documented methods, and which processors `pipeline()` loads.
    *("_forward", "_sanitize_parameters", "_load_tokenizer", "_load_processor", "_load_feature_extractor"),
    *("_load_image_processor", "_load_video_processor"),
}


def imported_modules(code: str, package: str) -> set[str]:
    """Absolute names of all modules, and of names in them, that a module of `package` imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*parents, *filter(None, [node.module])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def imported_packages(code: str, package: str) -> set[str]:
    """The packages and modules directly in `hf_storyend` that a module imports."""
    own = {name.split(".")[1] for name in imported_modules(code, package) if name.startswith("hf_storyend.")}
    return own & (ALLOWED.keys() | SHARED)


def modules_of(name: str) -> list[Path]:
    if name == "modeling":
        return sorted(MODELING.glob("*.py"))
    module = LIBRARY / f"{name}.py"
    return [module] if module.is_file() else sorted((LIBRARY / name).rglob("*.py"))


def test_every_package_is_listed():
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")} - {"assets"}
    modules = {path.stem for path in LIBRARY.glob("*.py")} - {"__init__", "__main__"}
    assert packages | modules | {"modeling"} == ALLOWED.keys() | SHARED


@pytest.mark.parametrize("name", [*ALLOWED, *sorted(SHARED)])
def test_imports_point_one_way(name):
    paths = modules_of(name)
    assert paths
    allowed = (
        {"modeling", "files", "adapters"}
        if name in SHARED
        else ALLOWED[name] | (SHARED if name != "modeling" else set())
    )
    for path in paths:
        package = "hf_storyend" if path.parent == LIBRARY else f"hf_storyend.{path.parent.name}"
        others = imported_packages(path.read_text(encoding="utf-8"), package) - {name}
        assert others <= allowed, f"{name}/{path.name} imports {', '.join(sorted(others - allowed))}"


def test_the_documented_list_is_that_one():
    lines = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    listed = {words[0]: set(words[1:]) for words in (line.replace(",", "").split() for line in lines) if words}
    listed["modeling"] -= {"nothing", "of", "ours"}
    assert {package: listed.get(package) for package in ALLOWED} == ALLOWED


def test_an_import_is_found_in_every_form():
    def packages(code):
        return imported_packages(code, "hf_storyend.demo")

    assert packages("from ..training import run") == {"training"}
    assert packages("from .. import hub, systems") == {"hub", "systems"}
    assert packages("def f():\n    from hf_storyend.data.stories import load_stories") == {"data"}
    assert packages("from hf_storyend import demo\nimport hf_storyend.modeling") == {"demo", "modeling"}
    assert packages("from hf_storyend.cli.main import app") == {"cli"}
    assert packages("from .training import run\nimport torch") == {"demo"}
    assert imported_packages("from .training import run", "hf_storyend") == {"training"}


@pytest.mark.parametrize("path", modules_of("modeling"), ids=lambda path: path.name)
def test_modeling_imports_torch_transformers_and_the_standard_library_only(path):
    for name in imported_modules(path.read_text(encoding="utf-8"), "modeling"):
        assert name.split(".")[0] in {"modeling", "torch", "transformers"} | sys.stdlib_module_names, name
        assert not any(part.startswith("_") for part in name.split(".") if part != "__future__"), name


def private_names(code: str) -> tuple[set[str], set[str]]:
    """Private names that code reads from any object, and those that its classes and functions define."""
    used: set[str] = set()
    defined: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            (defined if isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
    return {name for name in used if is_private(name)}, {name for name in defined if is_private(name)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_modeling_reads_no_private_names_of_others():
    names = [private_names(path.read_text(encoding="utf-8")) for path in modules_of("modeling")]
    used, defined = (set[str]().union(*sets) for sets in zip(*names, strict=True))
    assert used - defined - EXTENSION_POINTS <= READ


def test_modeling_overrides_only_what_is_meant_to_be_overridden():
    classes = {
        value
        for module in map(inspect.getmodule, vars(hf_storyend.modeling).values())
        if module is not None and module.__name__.startswith("hf_storyend.modeling")
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("hf_storyend.modeling")
    }
    assert len(classes) > 10
    sources = [private_names(path.read_text(encoding="utf-8")) for path in modules_of("modeling")]
    # Others are set by torch and transformers themselves.
    written = set[str]().union(*(defined for _, defined in sources))
    for one in classes:
        theirs = [base for base in one.__mro__ if not base.__module__.startswith("hf_storyend")]
        overridden = {name for name in written & vars(one).keys() if any(hasattr(base, name) for base in theirs)}
        assert overridden <= EXTENSION_POINTS, one


@pytest.mark.parametrize("path", modules_of("modeling"), ids=lambda path: path.name)
def test_code_that_travels_has_a_licence_header(path):
    copyright_line, licence_line, *_ = path.read_text(encoding="utf-8").splitlines()
    assert copyright_line.startswith("# Copyright ") and licence_line == "# SPDX-License-Identifier: Apache-2.0"


@pytest.mark.parametrize("folder", ["hf_storyend", "modeling", "examples", "benchmarks", "tests"])
def test_every_module_has_a_docstring(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths and not [path for path in paths if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("*/options.py")), ids=lambda path: path.parent.name)
def test_options_are_light(path):
    """The command line reads its help from them."""
    modules = imported_modules(path.read_text(encoding="utf-8"), f"hf_storyend.{path.parent.name}")
    allowed = {"hf_storyend", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in modules} <= allowed
    own = imported_packages(path.read_text(encoding="utf-8"), f"hf_storyend.{path.parent.name}")
    assert own <= {"options", "systems", path.parent.name}


def test_the_library_logs_through_one_logger():
    """No prints and warnings outside of the command line."""
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.parent.name == "cli":
            continue
        names = imported_modules(path.read_text(encoding="utf-8"), "hf_storyend")
        assert not {"warnings.warn", "rich.print"} & names, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "warnings.warn"}), path

"""What the code that travels with a model may do, read off its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# An allow-list: whatever is not here (socket, subprocess, urllib, ctypes, pickle, shutil, os ...) is refused.
ALLOWED_MODULES = frozenset(
    "__future__ collections contextlib contextvars copy dataclasses hashlib itertools json math pathlib re threading "
    "torch transformers typing unicodedata warnings".split()
)
# Parts of allowed packages that unpickle, compile, download or run something.
FORBIDDEN_PARTS = (
    "torch.hub",
    "torch.load",
    "torch.save",
    "torch.package",
    "torch.distributed",
    "torch.multiprocessing",
    "torch.utils.cpp_extension",
    "torch.jit",
    "torch.classes",
    "torch.serialization",
    "transformers.dynamic_module_utils",
    "transformers.utils.hub",
)
FORBIDDEN_NAMES = frozenset(
    "eval exec compile __import__ open input breakpoint globals __builtins__ __loader__ __spec__".split()
)
FORBIDDEN_ATTRIBUTES = frozenset(
    "__builtins__ __globals__ __subclasses__ __code__ __loader__ system popen fork unlink rmdir rename chmod "
    "symlink_to hardlink_to mkdir touch load_library load_state_dict_from_url".split()
)
WRITING = frozenset("write_text write_bytes open write save_file".split())


def problems(source: str) -> list[str]:
    """Everything in a module that breaks a rule, with its line."""
    tree = ast.parse(source)
    found = [*_imports(tree), *_names(tree), *_writes(tree)]
    return [f"line {line}: {problem}" for line, problem in sorted(found)]


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level > 1:
            yield node.lineno, "imports from outside its folder"
            continue
        else:
            continue
        for name in names:
            if name.split(".")[0] not in ALLOWED_MODULES or _is_forbidden(name):
                yield node.lineno, f"imports {name}"


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    of_fields = set(_getattr_of_fields(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            yield node.lineno, f"uses {node.id}"
        elif isinstance(node, ast.Attribute) and (node.attr in FORBIDDEN_ATTRIBUTES or _is_forbidden(_dotted(node))):
            yield node.lineno, f"uses {_dotted(node)}"
        elif _is_getattr(node) and node not in of_fields and not _is_plain_getattr(node):
            yield node.lineno, "looks an attribute up by a name that is made while it runs"


def _writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Files are written by functions that saving calls, and by nothing else."""
    for node, functions in _with_functions(tree, ()):
        if isinstance(node, ast.Attribute) and node.attr in WRITING and not any(map(_is_saving, functions)):
            yield node.lineno, f"writes with {node.attr} outside of saving"


def _with_functions(node: ast.AST, functions: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Every node with the names of the functions that it stands in."""
    for child in ast.iter_child_nodes(node):
        yield child, functions
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _with_functions(child, (*functions, child.name) if is_function else functions)


def _is_saving(function: str) -> bool:
    return function in ("save", "save_vocabulary", "save_pretrained", "write_json")


def _is_getattr(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _is_named(node.func, "getattr")


def _getattr_of_fields(tree: ast.Module) -> Iterator[ast.AST]:
    """`getattr(x, item.name) ... for item in fields(y)`: the fields of a dataclass."""
    for loop in ast.walk(tree):
        if not isinstance(loop, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        items = {_dotted(g.target) for g in loop.generators if _is_call_of(g.iter, "fields")}
        for node in ast.walk(loop):
            if _is_getattr(node) and len(node.args) == 2 and _dotted(node.args[1]) in {f"{one}.name" for one in items}:
                yield node


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and _is_named(node.func, name)


def _is_plain_getattr(call: ast.Call) -> bool:
    """`getattr(x, "name")`, or any field of a configuration: those hold numbers and words."""
    name = call.args[1] if len(call.args) > 1 else None
    if isinstance(name, ast.Constant):
        return name.value not in FORBIDDEN_ATTRIBUTES
    return isinstance(name, ast.Name) and (_is_named(call.args[0], "self") or _is_named(call.args[0], "config"))


def _is_forbidden(name: str) -> bool:
    return any(name == part or name.startswith(part + ".") for part in FORBIDDEN_PARTS)


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "..."

"""Hooks of the documentation site: pages from outside docs/, the API reference, and links to what is no page."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Pages of the site by where they lie in the repository.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "hf_storyend/assets/default_model/README.md": "default_model.md",
}
_LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|!\[[^\[\]]*\]\([^()\s]*\))*\])\((?P<target>[^()\s]+)\)")
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_METADATA = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pages that lie outside docs/, without their metadata, and those of the API reference."""
    from mkdocs.structure.files import File

    pages = {page: _METADATA.sub("", (ROOT / path).read_text(encoding="utf-8")) for path, page in OUTSIDE.items()}
    for page, text in (pages | reference_pages()).items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Rewrite relative links to pages of the site; what is a file of the repository only becomes its name."""
    parts = _CODE.split(markdown)
    # Every second part is code.
    parts[::2] = [_LINK.sub(lambda match: _rewritten(match, page.file.src_uri, files), part) for part in parts[::2]]
    return "".join(parts)


def _rewritten(match: re.Match[str], page: str, files: Any) -> str:
    path, sharp, anchor = match["target"].partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return match[0]
    source = {page: path for path, page in OUTSIDE.items()}.get(page, f"docs/{page}")
    in_repository = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    target = OUTSIDE.get(in_repository, in_repository.removeprefix("docs/"))
    if files.get_file_from_path(target) is not None:
        return f"{match['text']}({posixpath.relpath(target, posixpath.dirname(page) or '.')}{sharp}{anchor})"
    if not (ROOT / in_repository).exists():
        raise ValueError(f"{source}: {match['target']} leads nowhere.")
    return match["text"][1:-1]


def reference_pages() -> dict[str, str]:
    """Return a page for every package with public names, in the order of the package's own list."""
    inits = sorted(ROOT.glob("hf_storyend/*/__init__.py"))
    packages = {path.parent.name: _lazy_exports(path) or _own_functions(path) for path in inits}
    packages = {f"hf_storyend.{name}": exports for name, exports in packages.items() if exports}
    own = ("default_model", "generate", "load", "pipeline", "register")
    packages["hf_storyend"] = dict.fromkeys(own, ".pretrained")
    packages["modeling"] = _plain_exports(ROOT / "modeling" / "__init__.py")
    return {f"reference/{name.rpartition('.')[2]}.md": _page(name, names) for name, names in packages.items()}


def _page(package: str, exports: Mapping[str, str]) -> str:
    init = ROOT / package.replace(".", "/") / "__init__.py"
    title = "hf_storyend.modeling" if package == "modeling" else package
    summary = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
    entries = (f"::: {package}{module}.{name}\n" for name, module in exports.items())
    return "\n".join([f"# {title}\n", f"{summary}\n", *entries])


def _lazy_exports(init: Path) -> dict[str, str]:
    """Return the module of each name that a package gives to `lazy_exports`."""
    for node in ast.walk(ast.parse(init.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy_exports":
            return ast.literal_eval(node.args[1])
    return {}


def _own_functions(init: Path) -> dict[str, str]:
    """Return the public functions that a package defines itself, in no module of its."""
    nodes = ast.parse(init.read_text(encoding="utf-8")).body
    return {node.name: "" for node in nodes if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}


def _plain_exports(init: Path) -> dict[str, str]:
    """Return the module of each name that a package imports from its own modules."""
    nodes = ast.walk(ast.parse(init.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module]
    return {alias.name: f".{node.module}" for node in imports for alias in node.names}

"""Pages beside the demo: the cards of its models and the code that travels with them, from this machine."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from .. import modeling

_METADATA = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 50rem; margin: 1rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
th, td {{ text-align: start; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8886; }}
pre {{ overflow-x: auto; }}
</style></head><body>{body}</body></html>"""


def document_routes(models: Mapping[str, str]) -> list[Any]:
    """
    Return routes `/card`, `/card/NUMBER`, `/code` and `/code/FILE`.

    Args:
        models: Model directory or Hub name of each system of the demo.
    """
    routing, responses = (importlib.import_module(f"starlette.{name}") for name in ("routing", "responses"))
    names, files = list(models), _code_files()

    def page(title: str, body: str, status: int = 200) -> Any:
        return responses.HTMLResponse(_PAGE.format(title=escape(title), body=body), status_code=status)

    def missing() -> Any:
        return page("Not found", "<p>There is no such page.</p>", 404)

    def card(request: Any) -> Any:
        number = request.path_params.get("number", 0)
        if "number" not in request.path_params and len(names) > 1:
            return page("Model cards", _list({f"card/{place}": name for place, name in enumerate(names)}))
        if number >= len(names):
            return missing()
        return page(names[number], card_html(models[names[number]]))

    def code(request: Any) -> Any:
        name = request.path_params.get("name")
        if name is None:
            introduction = "<h1>The code of the model</h1><p>As it travels with the weights, read from the first:</p>"
            return page("Code", introduction + _list({f"code/{file}": file for file in files}))
        if name not in files:
            return missing()
        return responses.PlainTextResponse(files[name].read_text(encoding="utf-8"))

    handlers = {"/card": card, "/card/{number:int}": card, "/code": code, "/code/{name}": code}
    return [routing.Route(path, handler) for path, handler in handlers.items()]


def card_html(model: str) -> str:
    """Return the card of a model as HTML, in which nothing of the card is markup but its Markdown."""
    readme = Path(model) / "README.md"
    if not Path(model).is_dir():
        address = f"https://huggingface.co/{model}"
        return f'<p>The card of this model: <a href="{escape(address)}">{escape(address)}</a></p>'
    if not readme.is_file():
        return "<p>This model has no card.</p>"
    markdown = importlib.import_module("markdown_it").MarkdownIt("commonmark", {"html": False}).enable("table")
    return markdown.render(_METADATA.sub("", readme.read_text(encoding="utf-8")))


def _code_files() -> dict[str, Path]:
    """Return the files of the model's code by name, the model itself first."""
    paths = sorted(Path(str(modeling.__file__)).parent.glob("*.py"), key=lambda path: path.name)
    paths.sort(key=lambda path: not path.name.startswith("modeling_"))
    return {path.name: path for path in paths}


def _list(links: Mapping[str, str]) -> str:
    items = (f'<li><a href="{escape(address)}">{escape(text)}</a></li>' for address, text in links.items())
    return f"<ul>{''.join(items)}</ul>"

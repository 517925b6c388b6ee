"""The code in a Markdown document, and what the document says that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *TUTORIALS,
    *sorted((ROOT / "hub_cards").glob("*.md")),
    ROOT / "hub_cards" / "space" / "README.md",
    ROOT / "hf_storyend" / "assets" / "default_model" / "README.md",
]


@dataclass(frozen=True)
class Block:
    """A fenced block; `shown` is the block of `text` right behind it: what it prints."""

    language: str
    code: str
    shown: str | None = None


def tokens_of(text: str) -> Iterator[Token]:
    for token in MarkdownIt().enable("table").parse(text):
        yield token
        yield from token.children or ()


def fenced_blocks(text: str) -> list[Block]:
    """All fenced code, in order."""
    tokens = list(tokens_of(text))
    blocks = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type != "fence":
            continue
        is_shown = following is not None and following.type == "fence" and following.info.strip() == "text"
        blocks.append(Block(token.info.strip(), token.content, following.content if is_shown else None))
    return blocks


def blocks_of(text: str, *languages: str) -> list[Block]:
    """Fenced code of these languages."""
    return [block for block in fenced_blocks(text) if block.language in languages]


def commands_in(code: str) -> list[str]:
    """The commands of bash code, a line each, comments left out; a backslash joins lines."""
    lines = (line.partition("  #")[0].strip() for line in code.replace("\\\n", " ").splitlines())
    return [" ".join(line.split()) for line in lines if line and not line.startswith("#")]


def inline_code(text: str) -> list[str]:
    """What stands between backticks."""
    return [" ".join(token.content.split()) for token in tokens_of(text) if token.type == "code_inline"]

"""Triples as they are written on a command line."""

from __future__ import annotations


def parse_triples(option: str, texts: list[str] | None) -> list[tuple[str, str, str]] | None:
    """The triples of an option that may be given several times; None if it was not."""
    return [_triple(option, text) for text in texts] if texts else None


def _triple(option: str, text: str) -> tuple[str, str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"`{option}` must be `head,Relation,tail`, like `oven,UsedFor,bake`; got {text!r}.")
    return parts[0], parts[1], parts[2]

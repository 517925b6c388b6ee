"""Mutants of the model's file that do the same as the file: the line before and after, and why."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str], str] = {}

"""The cards of all systems before anybody has trained them: `python -m hf_storyend.hub.system_cards hub_cards`."""

from __future__ import annotations

import sys
from pathlib import Path

from ..systems import SYSTEMS
from .card import render_card


def write_system_cards(folder: str | Path) -> list[Path]:
    """Write `<system>.md` for every system, with all that is known without a run."""
    paths = [Path(folder) / f"{name}.md" for name in SYSTEMS]
    for name, path in zip(SYSTEMS, paths, strict=True):
        path.write_text(render_card(name), encoding="utf-8")
    return paths


if __name__ == "__main__":
    write_system_cards(sys.argv[1])

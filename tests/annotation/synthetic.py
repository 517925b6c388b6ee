"""Synthetic endings, some with markup and formulas, and the files and systems that hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hf_storyend.annotation.sampling import EndingRecord, SystemEndings

INJECTION = '</script><img src=x onerror="window.hacked = true">'
STORIES = [
    ["Ada lost her key.", "She looked under the mat.", "It was not there any more.", "Rain began to fall."],
    [INJECTION, "=SUM(A1:A9)", "הוא פתח את הדלת.", "A 🎻 played & <b>everyone</b> listened."],
    ["Ben baked bread.", "He forgot the salt.", "His guests arrived.", 'They sat down, "hungry".'],
    ["Cleo ran a race.", "Her shoe came off.", "She did not stop.", "The crowd cheered."],
]
ENDINGS = {
    "plain": ["She rang a neighbour.", "היא חייכה.", "@home they ate it anyway.", "She won."],
    "graph": ["-1 key was left.", "<!--<script>alert(1)</script>", "", "'=She' lost."],
}


def write_endings(folder: Path, endings: dict[str, list[str]], stories: Sequence[list[str]] = STORIES) -> list[Path]:
    paths = []
    for name, texts in endings.items():
        records = [
            {"context": story, "ending": text, "reference": f"The end of {story[0]}"}
            for story, text in zip(stories, texts, strict=True)
        ]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        paths.append(path)
    return paths


def synthetic_systems(num_systems: int, num_stories: int) -> list[SystemEndings]:
    def written(system: int, story: int) -> EndingRecord:
        return EndingRecord((f"Story {story}.",), f"Ending {story} of {system}.", None)

    return [
        SystemEndings(f"secret{system}", None, tuple(written(system, story) for story in range(num_stories)))
        for system in range(num_systems)
    ]

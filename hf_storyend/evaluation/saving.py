"""An evaluation on disk: numbers, table, endings, and what the Hub reads."""

from __future__ import annotations

import json
from pathlib import Path

from .hub import eval_results, model_index
from .result import Evaluation


def save_evaluation(
    evaluation: Evaluation, folder: str | Path, *, name: str, dataset_id: str, split: str = "test"
) -> None:
    """
    Write `evaluation.json`, the table `evaluation.md`, `endings.jsonl` with a story and its ending a line,
    `model_index.yaml` for the model card and `.eval_results/storyend.yaml`, replacing what is there of these.

    Args:
        evaluation: What to write.
        folder: Where to; made if it is not there.
        name: What the system is called.
        dataset_id: What the stories are called, best their id on the Hub.
        split: Which of their splits it was.
    """
    folder = Path(folder)
    files = {
        "evaluation.json": evaluation.to_json() + "\n",
        "evaluation.md": evaluation.to_markdown(name),
        "model_index.yaml": model_index(evaluation, name, dataset_id, split),
        ".eval_results/storyend.yaml": eval_results(evaluation, dataset_id),
    }
    if evaluation.endings:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in evaluation.endings]
        files["endings.jsonl"] = "".join(lines)
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

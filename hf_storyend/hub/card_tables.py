"""The tables of a model card."""

from __future__ import annotations

from typing import Any

NOT_MEASURED = "not measured"


def training_facts(run: dict[str, Any]) -> dict[str, str]:
    """What a run measured and was told, by the names that the card gives it."""
    options, versions = run.get("options") or {}, run.get("versions") or {}
    parameters = run.get("parameters")
    facts = {
        "stories": run.get("data"),
        "parameters": None if parameters is None else f"{parameters:,}",
        "updates": run.get("updates"),
        "epochs": run.get("epochs"),
        "stories a step": options.get("per_device_train_batch_size"),
        "recipe": options.get("recipe"),
        "seed": options.get("seed"),
        "precision": run.get("precision"),
        "stories a second": run.get("stories_per_second"),
        "peak memory, MB": run.get("peak_memory_mb"),
        "made with": ", ".join(f"{name} {version}" for name, version in versions.items()) or None,
    }
    return {name: NOT_MEASURED if value is None else str(value) for name, value in facts.items()}


def table(columns: dict[str, dict[str, str]]) -> str:
    """Columns with the same rows as one Markdown table."""
    rows = next(iter(columns.values()))
    lines = [_line("", *columns), "| --- |" + " --- |" * len(columns)]
    lines += [_line(row, *(column[row] for column in columns.values())) for row in rows]
    return "\n".join(lines)


def _line(*cells: str) -> str:
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"

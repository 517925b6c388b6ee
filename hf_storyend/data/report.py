"""The report of a prepared directory: statistics of its splits, as JSON and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from ..knowledge.statistics import describe_statistics
from .batching import LengthGroupedBatchSampler, padding_ratio

REPORT = "report.json"
_BATCH_SIZE = 128


def read_report(directory: Path) -> dict[str, Any] | None:
    """Return the report of a prepared directory, or None if the directory has none."""
    path = directory / REPORT
    if not path.is_file():
        return None
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} can't be read: {error}. Remove the directory and prepare again.") from error
    if not isinstance(report, dict):
        raise ValueError(f"{path} is not a report. Remove the directory and prepare again.")
    return report


def write_report(directory: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Write `report.json` and `report.md`, and return the report as it will be read."""
    text = json.dumps(report, indent=1, ensure_ascii=False)
    (directory / REPORT).write_text(text + "\n", encoding="utf-8")
    (directory / "report.md").write_text(describe_report(report), encoding="utf-8")
    return json.loads(text)


def split_statistics(tokenised: DatasetDict, unk_token_id: int, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return story counts, mean lengths, and the rates of unknown tokens and of padding for each split."""
    return {name: _statistics(rows, unk_token_id, seed) for name, rows in tokenised.items()}


def _statistics(rows: Dataset, unk_token_id: int, seed: int) -> dict[str, Any]:
    # The end-of-sequence token of an ending is not counted.
    stories, endings = list(rows["input_ids"]), [ending[:-1] for ending in rows["labels"]]
    sentences = [sentence for story, ending in zip(stories, endings, strict=True) for sentence in (*story, ending)]
    grouped = LengthGroupedBatchSampler(rows["length"], _BATCH_SIZE, seed=seed).global_batches()
    num_stories = len(stories)
    in_order = [range(start, min(start + _BATCH_SIZE, num_stories)) for start in range(0, num_stories, _BATCH_SIZE)]
    return {
        "stories": num_stories,
        "words_by_sentence": _mean_lengths(stories),
        "words_of_ending": round(sum(map(len, endings)) / len(endings), 2),
        "unknown_words": sum(sentence.count(unk_token_id) for sentence in sentences) / sum(map(len, sentences)),
        "padding_by_length": padding_ratio(stories, grouped),
        "padding_as_they_come": padding_ratio(stories, in_order),
    }


def _mean_lengths(stories: Sequence[Sequence[Sequence[int]]]) -> list[float]:
    """Return the mean number of tokens of the first sentence, of the second and so on."""
    by_position: dict[int, list[int]] = {}
    for story in stories:
        for position, sentence in enumerate(story):
            by_position.setdefault(position, []).append(len(sentence))
    return [round(sum(lengths) / len(lengths), 2) for lengths in by_position.values()]


def describe_report(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    vocabulary, model = report["vocabulary"], report["model"]
    lines = [
        "# Prepared data",
        "",
        "| split | stories | words a sentence | words an ending | unknown words | padding |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_split_row(name, split) for name, split in report["stories"].items()),
        "",
        f"Padding is that of length-grouped batches of {_BATCH_SIZE} stories.",
        "",
        f"**Vocabulary**: {vocabulary['size']:,} words, {vocabulary['coverage']:.2%} of the running words of train.",
        "",
        *_section("Leaks", report["leaks"]),
        *_section("Knowledge", describe_statistics(report["knowledge"]) if report["knowledge"] else "none"),
        *_section("Word vectors", report["vectors"] or "random"),
        f"**Model**: {model['parameters']:,} parameters, knowledge: {model['knowledge'] or 'none'}",
    ]
    return "\n".join(lines) + "\n"


def _split_row(name: str, split: dict[str, Any]) -> str:
    lengths = " / ".join(f"{length:.1f}" for length in split["words_by_sentence"])
    padding = f"{split['padding_by_length']:.1%} (in file order: {split['padding_as_they_come']:.1%})"
    return (
        f"| {name} | {split['stories']:,} | {lengths} | {split['words_of_ending']:.1f} "
        f"| {split['unknown_words']:.2%} | {padding} |"
    )


def _section(title: str, text: str) -> list[str]:
    """Return a bullet per line; indented lines continue the one above. `<` is escaped: text from files is no HTML."""
    lines = text.replace("<", r"\<").split("\n")
    bullets = [line if line.startswith((" ", "-")) else f"- {line}" for line in lines]
    return [f"**{title}**:", "", *bullets, ""]

"""What is known about prepared data, as numbers and as a page to read."""

from __future__ import annotations

from typing import Any

from datasets import Dataset, DatasetDict

from ..data.batching import LengthBuckets, padding_share
from ..knowledge import describe
from ..modeling import IncrementalEncoderTokenizer

_BATCH_SIZE = 128


def story_statistics(
    tokenised: DatasetDict, tokenizer: IncrementalEncoderTokenizer, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For each split: stories, mean words of each sentence and of the ending, unknown words, padding in batches."""
    return {name: _split_statistics(rows, tokenizer, seed) for name, rows in tokenised.items()}


def _split_statistics(rows: Dataset, tokenizer: IncrementalEncoderTokenizer, seed: int) -> dict[str, Any]:
    # The end symbol of an ending is no word.
    stories, endings = list(rows["input_ids"]), [ending[:-1] for ending in rows["labels"]]
    by_place: dict[int, list[int]] = {}
    for story in stories:
        for place, sentence in enumerate(story):
            by_place.setdefault(place, []).append(len(sentence))
    words = [
        word for story, ending in zip(stories, endings, strict=True) for part in (*story, ending) for word in part
    ]
    buckets = LengthBuckets(rows["length"], _BATCH_SIZE, seed=seed)
    in_order = [
        list(range(start, min(start + _BATCH_SIZE, len(stories)))) for start in range(0, len(stories), _BATCH_SIZE)
    ]
    return {
        "stories": len(stories),
        "words_by_sentence": [round(sum(lengths) / len(lengths), 2) for lengths in by_place.values()],
        "words_of_ending": round(sum(map(len, endings)) / len(endings), 2),
        "unknown_words": words.count(tokenizer.unk_token_id) / len(words),
        "padding_by_length": padding_share(stories, buckets.global_batches()),
        "padding_as_they_come": padding_share(stories, in_order),
    }


def describe_report(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = [
        "# Prepared data",
        "",
        "| split | stories | words a sentence | words an ending | unknown words | padding |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, split in report["stories"].items():
        words = " / ".join(f"{number:.1f}" for number in split["words_by_sentence"])
        padding = f"{split['padding_by_length']:.1%} (as they come: {split['padding_as_they_come']:.1%})"
        lines.append(
            f"| {name} | {split['stories']:,} | {words} | {split['words_of_ending']:.1f} "
            f"| {split['unknown_words']:.2%} | {padding} |"
        )
    vocabulary, model = report["vocabulary"], report["model"]
    lines += [
        "",
        f"Padding is that of batches of {_BATCH_SIZE} stories of like length.",
        "",
        f"**Vocabulary**: {vocabulary['size']:,} words, {vocabulary['coverage']:.2%} of the running words of train.",
        "",
        *_section("Leaks", report["leaks"]),
        *_section("Knowledge", describe(report["knowledge"]) if report["knowledge"] else "none"),
        *_section("Word vectors", report["vectors"] or "drawn at random"),
        f"**Model**: {model['parameters']:,} parameters, knowledge: {model['knowledge'] or 'none'}",
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, text: str) -> list[str]:
    """A line a bullet; indented lines stay part of the one above. Text out of files can't become HTML."""
    lines = text.replace("<", r"\<").split("\n")
    bullets = [line if line.startswith((" ", "-")) else f"- {line}" for line in lines]
    return [f"**{title}**:", "", *bullets, ""]

"""
Names and rare words in endings: are they those of the story?

    python benchmarks/names_and_rare_words.py my_model results/endings.jsonl

The model says what its vocabulary has, and which words its training stories write with a capital: those are names
here. The endings are a file that `storyend evaluate --output` wrote. Counts are of endings; beside them stand those of
the references.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from hf_storyend import IncrementalEncoderTokenizer
from hf_storyend.modeling.text_processing import split_words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="directory of a model or of prepared data")
    parser.add_argument("endings", type=Path, nargs="+", help="JSON Lines with `context`, `ending` and `reference`")
    options = parser.parse_args()
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(options.model)
    for path in options.endings:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        print(f"{path}: {len(rows)} stories")
        for what, (ours, people) in count(rows, tokenizer).items():
            print(f"  {what:<62} {ours:>6}, people {people:>6}")


def count(rows: list[dict], tokenizer: IncrementalEncoderTokenizer) -> dict[str, tuple[int, int]]:
    """What was counted in the endings and in the references."""
    both = [count_of(rows, key, tokenizer) for key in ("ending", "reference")]
    return {what: (both[0][what], both[1][what]) for what in both[0]}


def count_of(rows: list[dict], key: str, tokenizer: IncrementalEncoderTokenizer) -> Counter:
    vocabulary = tokenizer.get_vocab()
    # "I" and its contractions are no names.
    names = {
        word for word, form in tokenizer.word_forms.items() if form[:1].isupper() and word.partition("'")[0] != "i"
    }
    counts: Counter = Counter()
    for row in rows:
        story = lower_words(" ".join(row["context"]))
        ending, reference = lower_words(row[key]), lower_words(row["reference"])
        rare = {word for word in story if word not in vocabulary}
        named = ending & names | inner_capitals(row[key]) - vocabulary.keys()
        counts["with a name"] += bool(named)
        counts["with a name that is not in the story"] += bool(named - story)
        counts["with a word of the story that the vocabulary lacks"] += bool(ending & rare)
        counts["... that the reference has, too"] += bool(ending & rare & reference)
    return counts


def lower_words(text: str) -> set[str]:
    return {word.lower() for word in split_words(text)}


def inner_capitals(text: str) -> set[str]:
    """Words that do not begin the text and have a capital."""
    return {word.lower() for word in split_words(text)[1:] if word[:1].isupper()}


if __name__ == "__main__":
    main()

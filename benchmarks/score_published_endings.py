"""
Score the endings of a published comparison again, and compare with the numbers beside them.

    python benchmarks/score_published_endings.py results/table1 --data_dir prepared

Needs the stories that the comparison was made with: endings that are a sentence of them are published as digests.
The exit code is 1 if a number differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from pathlib import Path

from hf_storyend.comparison.endings import Corpus
from hf_storyend.evaluation import EvaluationOptions, load_split, score_endings

METRICS = ("bleu_1", "bleu_2", "distinct_2")
TOLERANCE = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="The published comparison.")
    parser.add_argument("--data_dir", default="prepared", help="The stories, as `storyend prepare` wrote them.")
    options = parser.parse_args()
    corpus, has_difference = Corpus.of(options.data_dir), False
    print(f"{'':28}{'perplexity':>12}" + "".join(f"{name:>12}" for name in METRICS))
    for row in sorted((options.directory / "rows").iterdir()):
        published = json.loads((row / "metrics.json").read_text(encoding="utf-8"))
        scored = score_row(row, published, corpus, options.data_dir)
        same = all(abs(scored[name] - published["metrics"][name]) < TOLERANCE for name in scored)
        has_difference |= not same
        numbers = "".join(f"{value:12.2f}" for value in scored.values())
        print(f"{row.name:28}{numbers}  {'as published' if same else 'not as published'}")
    sys.exit(int(has_difference))


def score_row(row: Path, published: dict, corpus: Corpus, data_dir: str) -> dict[str, float]:
    """Perplexity from the published losses, the rest from the endings."""
    with gzip.open(row / "endings.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    stories, _ = load_split(data_dir, published["settings"]["split"])
    endings = [corpus.restore(record) for record in records]
    # The constant ending, a baseline, is of no interest here.
    settings = EvaluationOptions(constant_ending="It ended.")
    metrics = score_endings(stories.select(range(len(endings))), endings, options=settings).metrics
    loss, num_words = (sum(record[name] for record in records) for name in ("loss", "num_words"))
    return {"perplexity": math.exp(loss / num_words), **{name: metrics[name] for name in METRICS}}


if __name__ == "__main__":
    main()

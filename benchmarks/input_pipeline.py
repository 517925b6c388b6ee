"""
How many stories a second the input pipeline delivers: tokenised stories, batches by length, padding and triples.

    python benchmarks/input_pipeline.py

One process, as in training by default. Set beside what a training step consumes, it should be ten times as much.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from bench_data import add_data_options, read_stories
from measuring import machine, seconds
from torch.utils.data import DataLoader

from hf_storyend.data.batching import LengthGroupedBatchSampler, StoryCollator

NUM_STORIES = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_options(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer, stories = read_stories(options)
    stories = [stories[row % len(stories)] for row in range(NUM_STORIES)]
    features = tokenizer(
        [story["context"] for story in stories],
        text_target=[story["ending"] for story in stories],
        return_triples=False,
    )
    names = ("input_ids", "labels")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(features[name] for name in names), strict=True)]
    lengths = [max(map(len, row["input_ids"])) for row in rows]
    loader = DataLoader(
        rows, batch_sampler=LengthGroupedBatchSampler(lengths, options.batch), collate_fn=StoryCollator(tokenizer)
    )
    time = seconds(lambda: [None for _ in loader])
    results = {"machine": machine(), "stories_per_second": len(rows) / time}
    print(f"{results['stories_per_second']:,.0f} stories a second, in batches of {options.batch}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

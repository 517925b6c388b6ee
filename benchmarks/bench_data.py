"""Stories, knowledge and batches for the benchmarks: the package's own, or files of one's own."""

from __future__ import annotations

import argparse
import json
import random
from itertools import islice
from pathlib import Path

import torch
from plain_loop import PlainLoop

from hf_storyend import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    KnowledgeTable,
)
from hf_storyend.data.embedded import embedded_stories, embedded_triples
from hf_storyend.data.vocabulary import build_vocabulary

KNOWLEDGE = {"ga": "graph_attention", "ca": "contextual_attention", "ie": None}
# Enough for the vocabulary; each process reads them anew.
MAX_STORIES = 5_000

Batch = dict[str, torch.Tensor]


def add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", type=int, default=128, help="stories a step (default: 128)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: 2)")
    parser.add_argument("--hidden", type=int, default=512, help="size of a hidden state (default: 512)")
    parser.add_argument("--embedding", type=int, default=200, help="size of a word vector (default: 200)")
    parser.add_argument("--vocab", type=int, default=10_000, help="size of the vocabulary (default: 10000)")
    parser.add_argument("--stories", help="JSON Lines with `context` and `ending` (default: the package's own)")
    parser.add_argument("--triples", help="head, relation and tail a line (default: the package's own)")
    parser.add_argument("--json", help="file to save the numbers to")


def read_stories(options: argparse.Namespace) -> tuple[IncrementalEncoderTokenizer, list[dict]]:
    stories, triples = embedded_stories(), embedded_triples()
    if options.stories:
        with Path(options.stories).open(encoding="utf-8") as lines:
            stories = [json.loads(line) for line in islice(lines, MAX_STORIES)]
    if options.triples:
        triples = [tuple(line.split()) for line in Path(options.triples).read_text(encoding="utf-8").splitlines()]
    vocabulary = build_vocabulary(
        (sentence for story in stories for sentence in (*story["context"], story["ending"])), options.vocab
    )
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    known = [triple for triple in triples if {triple[0], triple[2]} <= vocabulary.ids.keys()]
    tokenizer.knowledge = KnowledgeTable(sorted({relation for _, relation, _ in known}))
    tokenizer.add_triples(known)
    return tokenizer, stories


def make_batches(
    tokenizer: IncrementalEncoderTokenizer,
    stories: list[dict],
    batch_size: int,
    num_batches: int,
    is_bucketed: bool = False,
) -> list[Batch]:
    """Random batches, padded to their longest sentence; bucketed ones are of stories of like length."""
    rng = random.Random(0)
    stories = rng.sample(stories, len(stories))
    if is_bucketed:
        stories.sort(key=lambda story: max(len(sentence.split()) for sentence in story["context"]))
    starts = [rng.randrange(len(stories) - batch_size + 1) for _ in range(num_batches)]
    return [
        dict(
            tokenizer(
                [s["context"] for s in rows],
                text_target=[s["ending"] for s in rows],
                padding=True,
                return_tensors="pt",
            )
        )
        for rows in (stories[start : start + batch_size] for start in starts)
    ]


def context_of(batch: Batch) -> Batch:
    return {name: tensor for name, tensor in batch.items() if name != "labels"}


def make_models(
    options: argparse.Namespace, tokenizer: IncrementalEncoderTokenizer, knowledge: str
) -> tuple[IncrementalEncoderForEndingGeneration, PlainLoop]:
    """The package's model and the plain loop, with the same weights."""
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(
        tokenizer,
        vocab_size=max(options.vocab, len(tokenizer)),
        embedding_size=options.embedding,
        hidden_size=options.hidden,
        knowledge=KNOWLEDGE[knowledge],
        # The plain loop follows the paper's equations.
        prediction_vector="state",
        max_triples=None,
    )
    ours = IncrementalEncoderForEndingGeneration(config)
    return ours, PlainLoop(config).copy_weights(ours)

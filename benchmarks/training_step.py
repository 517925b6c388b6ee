"""
A training step (forward, backward, AdamW) of the package's model against the plain loop, in one run.

    python benchmarks/training_step.py --threads 2

Both are fed with the same random batches, padded to their longest sentence, and take turns, so that what else the
machine does falls on both: trust the ratio, not the times. `--stories` takes a JSON Lines file with `context` and
`ending`, `--triples` one with head, relation and tail a line; the package's own are taken where they are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psutil
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
VARIANTS = ("plain loop", "ours")
# Enough for the vocabulary; each process reads them anew.
MAX_STORIES = 10_000
# What makes a new view of a tensor launches nothing.
VIEWS = {
    "aten::" + name
    for name in (
        "alias as_strided chunk detach expand expand_as flatten lift_fresh narrow permute reshape select slice split "
        "split_with_sizes squeeze t transpose unbind unflatten unsqueeze view view_as _unsafe_view numpy_T matrix_H mT"
    ).split()
}


def main() -> None:
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        knowledge, variant = options.memory_of.split(",")
        print(peak_memory(Bench.build(options, knowledge, options.rounds), variant))
        return
    results = [measure(options, knowledge) for knowledge in options.knowledge.split(",")]
    print_table(results)
    if options.json:
        report = {"torch": torch.__version__, "options": vars(options), "results": results}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128, help="stories a step (default: 128)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: 2)")
    parser.add_argument("--knowledge", default="ga,ca", help="of ga, ca, ie (default: ga,ca)")
    parser.add_argument("--rounds", type=int, default=3, help="timed steps of each (default: 3)")
    parser.add_argument("--hidden", type=int, default=512, help="size of a hidden state (default: 512)")
    parser.add_argument("--embedding", type=int, default=200, help="size of a word vector (default: 200)")
    parser.add_argument("--vocab", type=int, default=10_000, help="size of the vocabulary (default: 10000)")
    parser.add_argument("--stories", help="JSON Lines with `context` and `ending` (default: the package's own)")
    parser.add_argument("--triples", help="head, relation and tail a line (default: the package's own)")
    parser.add_argument("--bucketed", action="store_true", help="batches of stories of like length")
    parser.add_argument("--json", help="file to save the numbers to")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.knowledge.split(",")) - KNOWLEDGE.keys()
    if unknown:
        parser.error(f"`--knowledge` must be of {', '.join(KNOWLEDGE)}; got {', '.join(sorted(unknown))}.")
    return options


@dataclass
class Bench:
    """Both models with the same weights, their optimisers, and batches to train on."""

    models: dict[str, torch.nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]
    batches: list[dict[str, torch.Tensor]]

    @classmethod
    def build(cls, options: argparse.Namespace, knowledge: str, num_batches: int) -> Bench:
        tokenizer, stories = read_stories(options)
        torch.manual_seed(0)
        config = IncrementalEncoderConfig.for_tokenizer(
            tokenizer,
            vocab_size=max(options.vocab, len(tokenizer)),
            embedding_size=options.embedding,
            hidden_size=options.hidden,
            knowledge=KNOWLEDGE[knowledge],
            max_triples=None,
        )
        ours = IncrementalEncoderForEndingGeneration(config).train()
        models = {"plain loop": PlainLoop(config).copy_weights(ours).train(), "ours": ours}
        optimizers = {name: torch.optim.AdamW(model.parameters(), lr=1e-4) for name, model in models.items()}
        return cls(models, optimizers, make_batches(tokenizer, stories, options, num_batches))

    def step(self, variant: str, batch: dict[str, torch.Tensor]) -> float:
        """One training step; the loss."""
        self.optimizers[variant].zero_grad()
        output = self.models[variant](**batch)
        loss = output if isinstance(output, torch.Tensor) else output.loss
        loss.backward()
        self.optimizers[variant].step()
        return loss.item()


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
    tokenizer: IncrementalEncoderTokenizer, stories: list[dict], options: argparse.Namespace, num_batches: int
) -> list[dict[str, torch.Tensor]]:
    rng = random.Random(0)
    stories = rng.sample(stories, len(stories))
    if options.bucketed:
        stories.sort(key=lambda story: max(len(sentence.split()) for sentence in story["context"]))
    starts = [rng.randrange(len(stories) - options.batch + 1) for _ in range(num_batches)]
    batches = [stories[start : start + options.batch] for start in starts]
    return [
        dict(tokenizer([s["context"] for s in batch], [s["ending"] for s in batch], padding=True, return_tensors="pt"))
        for batch in batches
    ]


def measure(options: argparse.Namespace, knowledge: str) -> dict:
    """Times, operations and memory of both variants with one kind of knowledge."""
    bench = Bench.build(options, knowledge, options.rounds)
    check_that_losses_agree(bench)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    rates = []
    for batch in bench.batches:
        rates.append(sgemm_rate())
        for variant in VARIANTS:
            times[variant].append(seconds(lambda variant=variant, batch=batch: bench.step(variant, batch)))
    batch = bench.batches[0]
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "knowledge": knowledge,
        "ratio": statistics.median(a / b for a, b in zip(times["plain loop"], times["ours"], strict=True)),
        "stories_per_second": {name: options.batch / median[name] for name in VARIANTS},
        "operations": {name: count_operations(lambda name=name: bench.step(name, batch)) for name in VARIANTS},
        "peak_mb": {name: memory_in_fresh_process(knowledge, name) for name in VARIANTS},
        "sgemm_gflops": statistics.median(rates),
        "words": int(batch["attention_mask"].sum() + (batch["labels"] >= 0).sum()),
        "padded_words": batch["attention_mask"].numel() + batch["labels"].numel(),
        "seconds": times,
    }


def check_that_losses_agree(bench: Bench) -> None:
    """The first step of each, which also warms up: the same equations must have the same loss."""
    losses = {name: bench.step(name, bench.batches[0]) for name in VARIANTS}
    if abs(losses["ours"] - losses["plain loop"]) > 1e-3 * losses["ours"]:
        raise ValueError(f"The variants do not compute the same: their losses are {losses}.")


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def sgemm_rate(size: int = 2048) -> float:
    """GFLOP/s of a large product, the best of three: what the machine gives at this moment."""
    matrix = torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: matrix @ matrix) for _ in range(3)) / 1e9


def count_operations(run: Callable[[], object]) -> int:
    """Operations launched: those that no other operation called, views left out."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    return sum(
        event.name.startswith("aten::") and event.name not in VIEWS and not _has_operation_above(event)
        for event in profile.events()
    )


def _has_operation_above(event: torch.autograd.profiler_util.FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None and not parent.name.startswith("aten::"):
        parent = parent.cpu_parent
    return parent is not None


def memory_in_fresh_process(knowledge: str, variant: str) -> float:
    command = [sys.executable, *sys.argv, "--memory-of", f"{knowledge},{variant}"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def peak_memory(bench: Bench, variant: str) -> float:
    """MB above what is there before the first step: activations, gradients and the optimiser's own."""
    process, done = psutil.Process(), threading.Event()
    seen = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for batch in bench.batches[:2]:
        bench.step(variant, batch)
    done.set()
    watcher.join()
    return (max(seen) - seen[0]) / 2**20


def print_table(results: list[dict]) -> None:
    row = "{:<10} {:<11} {:>7} {:>10} {:>11} {:>9} {:>14} {:>14}".format
    print(row("knowledge", "variant", "ratio", "stories/s", "operations", "peak MB", "sgemm GFLOP/s", "words/padded"))
    for result in results:
        for variant in VARIANTS:
            print(
                row(
                    result["knowledge"],
                    variant,
                    f"{result['ratio']:.2f}x" if variant == "ours" else "1.00x",
                    f"{result['stories_per_second'][variant]:.1f}",
                    f"{result['operations'][variant]:,}",
                    f"{result['peak_mb'][variant]:,.0f}",
                    f"{result['sgemm_gflops']:.0f}",
                    f"{result['words']}/{result['padded_words']}",
                )
            )


if __name__ == "__main__":
    main()

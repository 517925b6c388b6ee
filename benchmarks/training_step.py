"""
A training step (forward, backward, AdamW) of the package's model against the plain loop and the tests' reference.

    python benchmarks/training_step.py --stories stories.jsonl --triples triples.txt

All are fed with the same batches and take turns, so that what else the machine does falls on all: trust the ratios,
not the times. The package's own stories and triples are taken where none are given.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import torch
from bench_data import KNOWLEDGE, Batch, add_data_options, make_batches, make_models, read_stories
from host_waits import count_host_waits
from measuring import count_operations, in_fresh_process, machine, peak_memory, ratio, seconds, sgemm_rate, take_turns
from work_count import training_gflops

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference import run_system  # noqa: E402

VARIANTS = ("plain loop", "ours")
# The reference needs seconds a story.
NUM_REFERENCE_STORIES = 1
BATCH_SIZES = (1, 8, 32, 128)
# Operations and whether losses agree do not depend on how many stories there are; the time for them does.
NUM_FEW_STORIES = 16


class Trainer:
    """Both models with the same weights, and their optimisers."""

    def __init__(self, options: argparse.Namespace, tokenizer, knowledge: str):
        ours, plain_loop = make_models(options, tokenizer, knowledge)
        self.config = ours.config
        self.models = {"plain loop": plain_loop.train(), "ours": ours.train()}
        # As transformers' Trainer does by default.
        self.optimizers = {
            name: torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True) for name, model in self.models.items()
        }

    def step(self, variant: str, batch: Batch) -> float:
        """One training step; the loss."""
        self.optimizers[variant].zero_grad()
        output = self.models[variant](**batch)
        loss = output if isinstance(output, torch.Tensor) else output.loss
        loss.backward()
        self.optimizers[variant].step()
        return loss.item()

    def check_that_losses_agree(self, batch: Batch) -> None:
        """The first step of each, with few stories: the same equations must have the same loss."""
        losses = {name: self.step(name, batch) for name in VARIANTS}
        if abs(losses["ours"] - losses["plain loop"]) > 1e-3 * losses["ours"]:
            raise ValueError(f"The variants do not compute the same: their losses are {losses}.")


def main() -> None:
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        print(measure_memory(options, *options.memory_of.split(",")))
        return
    tokenizer, stories = read_stories(options)
    results: dict[str, object] = {"machine": machine()}
    for knowledge in options.knowledge.split(","):
        results[knowledge] = compare(options, tokenizer, stories, knowledge)
    if not options.quick:
        results["growth"] = measure_growth(options, tokenizer, stories)
    print_table(results)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_options(parser)
    parser.add_argument("--knowledge", default="ga,ca", help="of ga, ca, ie (default: ga,ca)")
    parser.add_argument("--rounds", type=int, default=2, help="timed steps of each (default: 2)")
    parser.add_argument("--quick", action="store_true", help="times of random batches only")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.knowledge.split(",")) - KNOWLEDGE.keys()
    if unknown:
        parser.error(f"`--knowledge` must be of {', '.join(KNOWLEDGE)}; got {', '.join(sorted(unknown))}.")
    return options


def compare(options: argparse.Namespace, tokenizer, stories: list[dict], knowledge: str) -> dict:
    """Times of random batches; then of bucketed ones, operations and memory."""
    trainer = Trainer(options, tokenizer, knowledge)
    batches = make_batches(tokenizer, stories, options.batch, options.rounds)
    few = make_batches(tokenizer, stories, NUM_FEW_STORIES, 1)[0]
    trainer.check_that_losses_agree(few)
    result = {"random": time_steps(trainer, batches)}
    if options.quick:
        return result
    # Where knowledge costs the plain loop most, length does not matter any more.
    if knowledge != "ca":
        bucketed = make_batches(tokenizer, stories, options.batch, options.rounds, is_bucketed=True)
        result["bucketed"] = time_steps(trainer, bucketed)
    result["operations"] = {name: count_operations(lambda name=name: trainer.step(name, few)) for name in VARIANTS}
    result["host_waits"] = count_host_waits(trainer.models["ours"], few)
    result["peak_mb"] = {name: in_fresh_process("--memory-of", f"{knowledge},{name}") for name in VARIANTS}
    result["reference_stories_per_second"] = time_reference(trainer, batches[0])
    return result


def time_steps(trainer: Trainer, batches: list[Batch]) -> dict:
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    shares = []
    for batch in batches:
        rate = sgemm_rate()
        for name in VARIANTS:
            times[name] += take_turns({name: lambda name=name, batch=batch: trainer.step(name, batch)}, 1)[name]
        # Before and after, because the machine may be shared.
        rate = (rate + sgemm_rate()) / 2
        shares.append(training_gflops(trainer.config, batch) / times["ours"][-1] / rate)
    num_stories = len(batches[0]["input_ids"])
    return {
        "ratio": ratio(times["plain loop"], times["ours"]),
        "stories_per_second": {name: num_stories / statistics.median(times[name]) for name in VARIANTS},
        "share_of_sgemm": statistics.median(shares),
        "needed_gflop": training_gflops(trainer.config, batches[0]),
        "words": int(batches[0]["attention_mask"].sum() + (batches[0]["labels"] >= 0).sum()),
        "padded_words": batches[0]["attention_mask"].numel() + batches[0]["labels"].numel(),
        "seconds": times,
    }


def measure_memory(options: argparse.Namespace, knowledge: str, variant: str) -> float:
    """MB above what is there before the first step: activations, gradients and the optimiser's own."""
    tokenizer, stories = read_stories(options)
    trainer = Trainer(options, tokenizer, knowledge)
    # The second step has the optimiser's own numbers, too; the plain loop, slow as it is, is let off with one.
    batches = make_batches(tokenizer, stories, options.batch, 2 if variant == "ours" else 1)
    return peak_memory(lambda: [trainer.step(variant, batch) for batch in batches])


def time_reference(trainer: Trainer, batch: Batch) -> float:
    """Stories a second of the tests' reference: forward and backward of the equations, written out in loops."""
    weights = {
        name.removeprefix("encoder."): weight.detach().clone().requires_grad_()
        for name, weight in trainer.models["ours"].named_parameters()
    }
    config = trainer.config
    ids = {"start_id": config.bos_token_id, "end_id": config.eos_token_id, "unk_id": config.unk_token_id}
    stories = [ragged(batch, row) for row in range(NUM_REFERENCE_STORIES)]

    def step() -> None:
        losses, _ = run_system(weights, config.story_encoder, config.knowledge, stories, num_slots=None, **ids)
        losses.loss.backward()

    time = seconds(step)
    return len(stories) / time


def ragged(batch: Batch, row: int) -> tuple[list, list, list, list]:
    """A story of a batch as lists, without padding."""
    sentences, graphs = [], []
    for words, mask, triples, triple_mask in zip(
        *(batch[name][row] for name in ("input_ids", "attention_mask", "triple_ids", "triple_mask")), strict=True
    ):
        length = int(mask.sum())
        sentences.append(words[:length].tolist())
        kept = zip(triples[:length], triple_mask[:length].bool(), strict=True)
        graphs.append([[tuple(triple) for triple in rows[real].tolist()] for rows, real in kept])
    labels = batch["labels"][row]
    return sentences, graphs, labels[labels >= 0].tolist(), sentences


def measure_growth(options: argparse.Namespace, tokenizer, stories: list[dict]) -> dict:
    """How our step grows with batch, sentences and words; the larger against the smaller."""
    trainer = Trainer(options, tokenizer, "ga")
    full = make_batches(tokenizer, stories, max(BATCH_SIZES), 1)[0]
    growth: dict[str, object] = {"stories_per_second": {}}
    for size in BATCH_SIZES:
        batch = {name: tensor[:size] for name, tensor in full.items()}
        growth["stories_per_second"][size] = size / best_of_two(trainer, batch)
    quarter = {name: tensor[:32] for name, tensor in full.items()}
    four_times = {
        name: torch.cat(full[name][:128].split(32), dim=1) if name != "labels" else full[name][:32] for name in full
    }
    growth["16_against_4_sentences"] = per_word(trainer, four_times, quarter)
    halves = {name: t if name == "labels" else t[:, :, : t.shape[2] // 2] for name, t in full.items()}
    growth["whole_against_half_sentences"] = per_word(trainer, full, halves)
    return growth


def per_word(trainer: Trainer, large: Batch, small: Batch) -> dict[str, float]:
    """
    Time and needed work a word, of the larger batch against the smaller. Work grows, too: a first sentence is not
    supervised and has no context, and is a smaller part of a longer story.
    """
    batches = {"large": large, "small": small}
    times = take_turns({name: lambda b=batch: trainer.step("ours", b) for name, batch in batches.items()}, 3)
    num_words = {name: int(b["attention_mask"].sum() + (b["labels"] >= 0).sum()) for name, b in batches.items()}
    words = num_words["small"] / num_words["large"]
    work = training_gflops(trainer.config, large) / training_gflops(trainer.config, small)
    return {"time": ratio(times["large"], times["small"]) * words, "work": work * words}


def best_of_two(trainer: Trainer, batch: Batch) -> float:
    return min(seconds(lambda: trainer.step("ours", batch)) for _ in range(2))


def print_table(results: dict) -> None:
    row = "{:<9} {:<9} {:<11} {:>7} {:>10} {:>10} {:>10} {:>8} {:>9}".format
    heads = "knowledge", "batches", "variant", "ratio", "stories/s", "operations", "host waits", "peak MB", "of sgemm"
    print(row(*heads))
    for knowledge in KNOWLEDGE.keys() & results.keys():
        result = results[knowledge]
        for batching in ("random", "bucketed"):
            for variant in VARIANTS if batching in result else ():
                timed, is_ours = result[batching], variant == "ours"
                print(
                    row(
                        knowledge,
                        batching,
                        variant,
                        f"{timed['ratio']:.2f}x" if is_ours else "1.00x",
                        f"{timed['stories_per_second'][variant]:.1f}",
                        f"{result['operations'][variant]:,}" if "operations" in result else "",
                        f"{result['host_waits']}" if is_ours and "host_waits" in result else "",
                        f"{result['peak_mb'][variant]:,.0f}" if "peak_mb" in result else "",
                        f"{timed['share_of_sgemm']:.0%}" if is_ours else "",
                    )
                )


if __name__ == "__main__":
    main()

"""
Writing endings: `generate()` of the package's model against the plain loop with the same weights, in turns.

    python benchmarks/generation.py --stories stories.jsonl --triples triples.txt

Endings have exactly 20 words, so that all do the same work; with "real lengths" each is as long as the one that the
story has. There, the plain loop writes on until the longest is complete, as `generate()` does. `--compile` measures
`torch.compile`, too, on the step of the decoder, which takes a minute.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from bench_data import Batch, add_data_options, context_of, make_batches, make_models, read_stories
from measuring import machine, ratio, seconds, take_turns
from plain_loop import PlainLoop
from transformers import LogitsProcessor

from hf_storyend import IncrementalEncoderForEndingGeneration

NUM_WORDS = 20
# name: stories, beams, rounds, whether endings have real lengths
SETTINGS = {
    "greedy, batch 1": (1, 1, 7, False),
    "greedy": (128, 1, 5, False),
    "greedy, real lengths": (128, 1, 5, True),
    "beam 4": (128, 4, 3, False),
    "beam 4, real lengths": (128, 4, 3, True),
}


class EndsAt(LogitsProcessor):
    """Ends the ending of each row behind a given number of words."""

    def __init__(self, lengths: torch.Tensor, end: int):
        self.lengths, self.end = lengths, end

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # The start symbol stands in front.
        ends = (self.lengths + 1 == input_ids.shape[1]).nonzero().squeeze(1)
        scores[ends] = -torch.inf
        scores[ends, self.end] = 0.0
        return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_options(parser)
    parser.add_argument("--knowledge", default="ga,ca", help="of ga, ca, ie (default: ga,ca)")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer, stories = read_stories(options)
    batch = make_batches(tokenizer, stories, options.batch, 1)[0]
    real_lengths = (batch["labels"] >= 0).sum(dim=1) - 1  # without the end symbol
    equal_lengths = torch.full_like(real_lengths, NUM_WORDS)
    batch = context_of(batch)
    results: dict[str, object] = {"machine": machine()}
    for knowledge in options.knowledge.split(","):
        ours, plain_loop = make_models(options, tokenizer, knowledge)
        # Neither may end early.
        for model in (ours.eval(), plain_loop.eval()):
            model.lm_head.bias.data[ours.config.eos_token_id] = -1e4
        results[knowledge] = {
            name: compare(ours, plain_loop, batch, real_lengths if are_real else equal_lengths, *setting)
            for name, (*setting, are_real) in SETTINGS.items()
            # Where knowledge costs the plain loop most, length does not matter any more.
            if knowledge != "ca" or not are_real
        }
        if options.compile:
            results[knowledge]["compiled step"] = compile_step(ours, batch)
    print_table(results)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def compare(
    ours: IncrementalEncoderForEndingGeneration,
    plain_loop: PlainLoop,
    batch: Batch,
    lengths: torch.Tensor,
    num_stories: int,
    num_beams: int,
    num_rounds: int,
) -> dict:
    story = without_padding({name: tensor[:num_stories] for name, tensor in batch.items()})
    lengths = lengths[:num_stories]
    num_stories, num_words = len(lengths), int(lengths.max())
    processors = []
    if has_ends := int(lengths.min()) < num_words:
        processors = [EndsAt(lengths.repeat_interleave(num_beams), ours.config.eos_token_id)]
    # The end symbol is written by both.
    settings = {"num_beams": num_beams, "max_new_tokens": num_words + has_ends, "logits_processor": processors}
    runs: dict[str, Callable[[], torch.Tensor]] = {
        "plain loop": lambda: plain_loop.generate(lengths + has_ends, num_beams, **story)[:, :num_words],
        "ours": lambda: ours.generate(**story, **settings)[:, 1 : num_words + 1],
    }
    endings = {name: run() for name, run in runs.items()}
    is_word = torch.arange(num_words) < lengths.unsqueeze(1)
    agreement = (endings["ours"] == endings["plain loop"])[is_word].float().mean().item()
    if agreement < 0.9:
        raise ValueError(f"The variants write different endings: only {agreement:.0%} of the words are the same.")
    # Where knowledge costs the plain loop most, a round is long and ratios are far from close.
    times = take_turns(runs, 1 if ours.config.knowledge == "contextual_attention" and num_stories > 1 else num_rounds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    result = {
        "ratio": ratio(times["plain loop"], times["ours"]),
        "ms_per_story": {name: 1000 * value / num_stories for name, value in medians.items()},
        "mean_words": lengths.float().mean().item(),
    }
    if not has_ends:
        # What generate() does besides: processors, choice of words, beams, checks.
        steps = own_seconds(ours, story, num_beams)
        result["share_of_generate_itself"] = max(0.0, 1 - steps / medians["ours"])
    return result


def without_padding(story: Batch) -> Batch:
    longest = int(story["attention_mask"].sum(dim=-1).max())
    return {name: tensor[:, :, :longest] for name, tensor in story.items()}


@torch.no_grad()
def own_seconds(model: IncrementalEncoderForEndingGeneration, story: Batch, num_beams: int) -> float:
    """The encoder and as many steps of the decoder, called one after the other."""
    rows = len(story["input_ids"]) * num_beams
    words = torch.full((rows, 1), model.config.bos_token_id)

    def run() -> None:
        outputs = model.get_encoder()(**story)
        _, kwargs = model._expand_inputs_for_generation(num_beams, True, None, encoder_outputs=outputs)
        cache = None
        for _ in range(NUM_WORDS):
            output = model(encoder_outputs=kwargs["encoder_outputs"], decoder_input_ids=words, past_key_values=cache)
            cache = output.past_key_values

    return min(seconds(run) for _ in range(2))


@torch.no_grad()
def compile_step(model: IncrementalEncoderForEndingGeneration, batch: Batch) -> dict:
    """A step of the decoder for one story, compiled and not."""
    story = {name: tensor[:1] for name, tensor in batch.items()}
    outputs = model.get_encoder()(**story)
    inputs = {"encoder_outputs": outputs, "decoder_input_ids": torch.tensor([[model.config.bos_token_id]])}
    compiled = torch.compile(model)
    first = seconds(lambda: compiled(**inputs, use_cache=False))
    runs = {"eager": lambda: model(**inputs, use_cache=False), "compiled": lambda: compiled(**inputs, use_cache=False)}
    take_turns(runs, 3)
    times = take_turns(runs, 15)
    return {"ratio": ratio(times["eager"], times["compiled"]), "seconds_to_compile": first}


def print_table(results: dict) -> None:
    row = "{:<9} {:<20} {:>7} {:>18} {:>18} {:>18}".format
    print(row("knowledge", "mode", "ratio", "ours, ms/story", "plain, ms/story", "generate() itself"))
    for knowledge, modes in results.items():
        for mode, result in modes.items() if knowledge != "machine" else ():
            if "ms_per_story" not in result:
                print(row(knowledge, mode, f"{result['ratio']:.2f}x", "", "", ""))
                continue
            times = result["ms_per_story"]
            share = result.get("share_of_generate_itself")
            share = "" if share is None else f"{share:.0%}"
            ours, plain = f"{times['ours']:.1f}", f"{times['plain loop']:.1f}"
            print(row(knowledge, mode, f"{result['ratio']:.2f}x", ours, plain, share))


if __name__ == "__main__":
    main()

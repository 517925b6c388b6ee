"""
Exported files against the model: same endings, size, speed, and what int8 costs.

    python benchmarks/onnx_export.py DIRECTORY --num_stories 200

`DIRECTORY` is what `storyend prepare` wrote; validation stories are read. Without it, the package's own stories.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hf_storyend import load
from hf_storyend.data import load_stories
from hf_storyend.export import ExportOptions, OnnxGenerator, export
from hf_storyend.export.runner import NEXT_STATE, _run


def batches(rows: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def nats_per_word(generator: OnnxGenerator, tokenizer: Any, stories: list[str], endings: list[str]) -> float:
    """Mean negative log likelihood of the words of the true endings."""
    total, num_words = 0.0, 0
    for chunk in batches(list(zip(stories, endings, strict=True)), 32):
        batch = tokenizer(
            [story for story, _ in chunk], text_target=[ending for _, ending in chunk], return_tensors="np"
        )
        labels = np.asarray(batch["labels"])
        memory = _run(generator.encoder, batch)
        words = np.full((len(labels), 1), generator.config["decoder_start_token_id"])
        for step in range(labels.shape[1]):
            output = _run(generator.step, {**memory, "decoder_input_ids": words})
            memory.update({name: output[after] for name, after in NEXT_STATE.items()})
            logits = torch.from_numpy(output["logits"]).double().log_softmax(dim=1).numpy()
            is_word = labels[:, step] >= 0
            total -= logits[is_word, labels[is_word, step]].sum()
            num_words += int(is_word.sum())
            words = np.where(is_word, labels[:, step], generator.config["pad_token_id"])[:, None]
    return total / num_words


def timed(write: Any, stories: list[str], size: int) -> tuple[list[str], float]:
    """Endings, and processor milliseconds a story."""
    write(stories[:size])
    start = time.process_time()
    endings = [ending for chunk in batches(stories, size) for ending in write(chunk)]
    return endings, 1000 * (time.process_time() - start) / len(stories)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", nargs="?", help="what `storyend prepare` wrote; default: the package's stories")
    parser.add_argument("--num_stories", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load()
    stories, endings = read_stories(options.data_dir, options.num_stories)

    def write(chunk: list[str]) -> list[str]:
        ids = model.generate(**tokenizer(chunk, return_tensors="pt"), num_beams=1)
        return tokenizer.batch_decode(ids, skip_special_tokens=True, context=chunk)

    expected, alone = timed(write, stories, 1)
    together = timed(write, stories, 32)[1]
    print(f"| files | MB | same endings of {len(stories)} | nats a word | ms a story, batch 1 | batch 32 |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(f"| model, torch | | | | {alone:.0f} | {together:.0f} |")
    for int8 in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            files = export(ExportOptions(output_dir=folder, int8=int8))
            size = sum(path.stat().st_size for path in map(Path, files)) / 1e6
            generator = OnnxGenerator(folder)
            written, alone = timed(generator.generate, stories, 1)
            together = timed(generator.generate, stories, 32)[1]
            same = sum(one == other for one, other in zip(written, expected, strict=True))
            nats = nats_per_word(generator, tokenizer, stories, endings)
        name = "ONNX, int8" if int8 else "ONNX, float32"
        print(f"| {name} | {size:.1f} | {same} | {nats:.4f} | {alone:.0f} | {together:.0f} |", flush=True)


def read_stories(data_dir: str | None, num_stories: int) -> tuple[list[str], list[str]]:
    """Contexts, each one string, and endings."""
    source = "embedded" if data_dir is None else Path(data_dir) / "stories"
    table = load_stories(source, split="train" if data_dir is None else "validation")
    rows = list(next(iter(table.values())))[:num_stories]
    return [" ".join(row["context"]) for row in rows], [row["ending"] for row in rows]


if __name__ == "__main__":
    main()

"""
A model of one's own in about a minute: train on the stories that come with the package, then write endings.

    python examples/quickstart.py

Six hundred stories teach a model to write English, not to reason: this shows how the parts fit together.
"""

import argparse
import math
import time

import torch
from tqdm.auto import tqdm

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.data.embedded import embedded_stories, embedded_tokenizer

STORIES = [
    "Mei put a cake in the oven. She sat down with a good book. The story was very exciting. "
    "Suddenly she smelled smoke.",
    "Omar's old car made a strange noise. He had no money to repair it. He drove to work anyway. "
    "Halfway there the engine stopped.",
    "Nina wanted to win the singing contest. She practiced every day after school. "
    "On the big night her hands were shaking. Her father smiled at her from the first row.",
]


def train(
    model: IncrementalEncoderForEndingGeneration, tokenizer: IncrementalEncoderTokenizer, seconds: float
) -> None:
    """Adam on random batches until the time is up, the learning rate falling with it."""
    stories = embedded_stories()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    progress = tqdm(total=round(seconds), unit="s", desc="training")
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        progress.update(int(elapsed) - progress.n)
        optimizer.param_groups[0]["lr"] = 4e-3 * 0.5 * (1 + math.cos(math.pi * elapsed / seconds))
        batch = [stories[row] for row in torch.randint(len(stories), (24,)).tolist()]
        contexts, endings = [story["context"] for story in batch], [story["ending"] for story in batch]
        output = model(**tokenizer(contexts, text_target=endings, return_tensors="pt"))
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
        progress.set_postfix(perplexity=f"{output.ending_loss.exp().item():.1f}", refresh=False)
    progress.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seconds", type=float, default=90, help="how long to train")
    parser.add_argument("--output_dir", help="where to save model and tokenizer, if anywhere")
    options = parser.parse_args()

    torch.manual_seed(0)
    # Products this small gain nothing from a second thread, and wait for it on a busy machine.
    torch.set_num_threads(1)
    tokenizer = embedded_tokenizer()
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=96, hidden_size=160, num_layers=1)
    model = IncrementalEncoderForEndingGeneration(config)
    print(
        f"{model.num_parameters():,} parameters, {len(tokenizer):,} words, {len(tokenizer.knowledge):,} with triples"
    )
    train(model.train(), tokenizer, options.seconds)

    inputs = tokenizer(STORIES, return_tensors="pt")
    endings = model.eval().generate(**inputs, num_beams=4, no_repeat_ngram_size=3)
    for story, ending in zip(
        STORIES, tokenizer.batch_decode(endings, skip_special_tokens=True, context=STORIES), strict=True
    ):
        print(f"\n{story}\n  -> {ending}")
    if options.output_dir:
        model.save_pretrained(options.output_dir)
        tokenizer.save_pretrained(options.output_dir)
        print(f"\nSaved to {options.output_dir}.")


if __name__ == "__main__":
    main()

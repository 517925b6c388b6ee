"""
How fast stories become tensors: the tokenizer against a plain loop over words, on one core.

    python benchmarks/tokenising.py [--stories 100000] [--data stories.jsonl]
"""

import argparse
import json
import platform
import time
from pathlib import Path

import torch

from hf_storyend.data.embedded import embedded_stories, embedded_tokenizer
from hf_storyend.modeling.text_processing import normalize_text, split_sentences, split_words


def plain_loop(tokenizer, stories: list[str]) -> dict[str, torch.Tensor]:
    """The obvious way: for every story, sentence, word and triple, one assignment."""
    vocabulary, table = tokenizer.get_vocab(), tokenizer.knowledge
    sentences = [split_sentences(normalize_text(story)) for story in stories]
    ids = [[[vocabulary.get(word, 0) for word in split_words(one.lower())] for one in story] for story in sentences]
    words = {index: word for word, index in vocabulary.items()}
    shape = (len(ids), max(map(len, ids)), max(len(sentence) for story in ids for sentence in story))
    batch = {
        "input_ids": torch.full(shape, tokenizer.pad_token_id),
        "attention_mask": torch.zeros(shape, dtype=torch.long),
        "triple_ids": torch.zeros(*shape, table.max_triples, 3, dtype=torch.long),
        "triple_mask": torch.zeros(*shape, table.max_triples, dtype=torch.long),
    }
    for b, story in enumerate(ids):
        for k, sentence in enumerate(story):
            for j, word in enumerate(sentence):
                batch["input_ids"][b, k, j] = word
                batch["attention_mask"][b, k, j] = 1
                for n, triple in enumerate(table.ids(table.of(words[word]), vocabulary)):
                    batch["triple_ids"][b, k, j, n] = torch.tensor(triple)
                    batch["triple_mask"][b, k, j, n] = 1
    return batch


def seconds(read, stories: list[str], batch_size: int) -> float:
    start = time.perf_counter()
    for first in range(0, len(stories), batch_size):
        read(stories[first : first + batch_size])
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--stories", type=int, default=100_000, help="how many stories the tokenizer reads")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--data", help="JSON Lines with `context`; the embedded stories, repeated, unless given")
    parser.add_argument("--json", help="file to save the numbers to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = embedded_tokenizer()
    lines = Path(options.data).read_text(encoding="utf-8").splitlines() if options.data else []
    contexts = [json.loads(line)["context"] for line in lines] or [story["context"] for story in embedded_stories()]
    stories = [" ".join(contexts[row % len(contexts)]) for row in range(options.stories)]
    few = stories[: max(options.batch, len(stories) // 50)]
    ours = seconds(lambda batch: tokenizer(batch, return_tensors="pt"), stories, options.batch)
    loop = seconds(lambda batch: plain_loop(tokenizer, batch), few, options.batch)
    print(f"{platform.machine()}, one thread, torch {torch.__version__}, batches of {options.batch}")
    print(f"tokenizer   {len(stories):>7,} stories in {ours:6.1f} s  {len(stories) / ours:8,.0f} stories/s")
    print(f"plain loop  {len(few):>7,} stories in {loop:6.1f} s  {len(few) / loop:8,.0f} stories/s")
    ratio = (loop / len(few)) / (ours / len(stories))
    print(f"ratio       {ratio:.1f}x")
    if options.json:
        rates = {"tokenizer": len(stories) / ours, "plain loop": len(few) / loop}
        Path(options.json).write_text(json.dumps({"ratio": ratio, "stories_per_second": rates}, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""
Endings, and why, from the model that comes with the package:

    python examples/quickstart.py

Where to go from here: `examples/train.py` trains a model of one's own, `storyend demo` shows all of this in a browser.
"""

from transformers import pipeline

import hf_storyend
from hf_storyend.pretrained import EXAMPLE_STORIES


def main() -> None:
    # Three lines: a model, a story, an ending.
    model = hf_storyend.IncrementalEncoderForEndingGeneration.from_pretrained(hf_storyend.default_model())
    tokenizer = hf_storyend.IncrementalEncoderTokenizer.from_pretrained(hf_storyend.default_model())
    write = pipeline("story-ending", model=model, tokenizer=tokenizer)
    for story in EXAMPLE_STORIES:
        (best,) = write(story)
        print(f"{story}\n  -> {best['ending']}")
        for triple in best["evidence"][:3]:
            print(f"     {triple['weight']:6.1%}  {triple['head']} {triple['relation']} {triple['tail']}")
        print()

    # Any way of writing that `generate()` has.
    for drawn in write(EXAMPLE_STORIES[0], do_sample=True, num_beams=1, num_return_sequences=3):
        print(f"drawn at random: {drawn['ending']}")

    # Knowledge of one's own, and what each word of the ending read.
    tokenizer.add_triples([("smoke", "Causes", "alarm")])
    print(f"\n{hf_storyend.explain(model, tokenizer, EXAMPLE_STORIES[0]).to_markdown()}")


if __name__ == "__main__":
    main()

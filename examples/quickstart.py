"""
Generate and explain endings with the model that comes with the package:

    python examples/quickstart.py

Next: `examples/train.py` trains a model, `storyend demo` opens an interactive demo in a browser.
"""

import hf_storyend
from hf_storyend.pretrained import EXAMPLE_STORIES


def main() -> None:
    # A model, a story, an ending.
    model, tokenizer = hf_storyend.load()
    write = hf_storyend.StoryEndingPipeline(model=model, tokenizer=tokenizer)
    for story in EXAMPLE_STORIES:
        (best,) = write(story)
        print(f"{story}\n  -> {best['ending']}")
        for item in best["evidence"][:3]:
            triple = f"{item['head']} {item['relation']} {item['tail']}"
            print(f"     {item['ending_word']}: {item['share']:.0%} from {triple}")
        print()

    # Any decoding method of `generate()`.
    for sample in write(EXAMPLE_STORIES[0], do_sample=True, num_return_sequences=3):
        print(f"sampled: {sample['ending']}")

    # Additional knowledge, and an explanation of the ending.
    tokenizer.add_triples([("smoke", "Causes", "alarm")])
    print(f"\n{hf_storyend.explain(model, tokenizer, EXAMPLE_STORIES[0]).to_markdown()}")


if __name__ == "__main__":
    main()

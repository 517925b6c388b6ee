"""Commands that generate endings: `storyend generate`, `storyend explain`, `storyend demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..demo.options import DemoOptions
from ..explanation.options import ExplainOptions, parse_triples
from ..options import (
    MAX_SENTENCE_LENGTH,
    MAX_SENTENCES,
    DecodingPreset,
    check_at_least,
    check_finite_numbers,
    option,
)
from ..processes import map_in_processes
from .printing import print_endings, print_json, print_line, print_page


@dataclass(frozen=True)
class GenerateOptions:
    """Options of `storyend generate`, spelt as those of transformers' `generate()`."""

    stories: tuple[str, ...] = option(
        (),
        "Stories, all sentences of a story in one string; default: three example stories.",
        positional=True,
        metavar="STORY",
    )
    model: str | None = option(None, "Model directory or Hub name; default: the model that comes with the package.")
    num_return_sequences: int = option(1, "Endings for each story.")
    decoding: DecodingPreset | None = option(
        None,
        "Preset: `readers`, 8 beams and no length penalty, or `paper`, greedy; default: the model's own setting if it "
        "has beams or samples, else `readers`.",
    )
    num_beams: int | None = option(None, "Beams; default: those of the preset.")
    do_sample: bool = option(False, "Sample tokens instead of searching for the likeliest ending.")
    temperature: float | None = option(
        None, "Temperature of `--do_sample`: below 1 likelier tokens, above 1 more varied ones."
    )
    seed: int = option(0, "Random seed of `--do_sample`.")
    triples: tuple[str, ...] = option(
        (),
        "Add the triple `head,Relation,tail` to the model's knowledge; repeatable.",
        flag="triple",
        metavar="TRIPLE",
    )
    triple_weight: float | None = option(
        None, "Weight of these triples, in nats; default: as strong as the model's strongest."
    )
    evidence_top_k: int = option(3, "Show the effects of the k triples with the highest shares for each ending.")
    max_sentences: int = option(MAX_SENTENCES, "Refuse stories with more sentences.")
    max_sentence_length: int = option(MAX_SENTENCE_LENGTH, "Refuse sentences with more words.")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        check_finite_numbers(self)
        check_at_least(self, 1, "num_return_sequences", "max_sentences", "max_sentence_length")
        check_at_least(self, 1, "num_beams", optional=True)
        check_at_least(self, 0, "evidence_top_k", "seed")
        parse_triples("triple", self.triples)
        if self.temperature is None:
            return
        if not self.do_sample:
            raise ValueError("`temperature` is a setting of sampling: give `do_sample`, too.")
        if not self.temperature > 0:
            raise ValueError(f"`temperature` must be above 0; got {self.temperature}.")

    def pipeline_arguments(self, model: Any) -> dict[str, Any]:
        """
        Return the arguments of `StoryEndingPipeline`.

        Args:
            model: The model that generates, for its own decoding settings.
        """
        from ..pretrained import num_default_beams

        num_endings = self.num_return_sequences
        if not self.do_sample and (self.num_beams or num_default_beams(model, self.decoding)) < num_endings:
            raise ValueError(f"{num_endings} endings need `do_sample` or `num_beams` of at least {num_endings}.")
        # With sampling, the model's own beams would search.
        num_beams = self.num_beams or (1 if self.do_sample else None)
        given = {
            "decoding": self.decoding,
            "num_beams": num_beams,
            "do_sample": self.do_sample or None,
            "temperature": self.temperature,
            "triples": parse_triples("triple", self.triples) or None,
            "triple_weight": self.triple_weight,
        }
        arguments = {name: value for name, value in given.items() if value is not None}
        own = {"evidence_top_k": self.evidence_top_k, "effects": True}
        return {"num_return_sequences": num_endings, **own, **arguments}


def generate(options: GenerateOptions) -> None:
    """
    Generate endings, each with what its words came from: vocabulary, story or triples.

    Example: `storyend generate "Mei put a cake in the oven. She fell asleep." --num_return_sequences 3 --do_sample`
    """
    from ..pretrained import EXAMPLE_STORIES, find_model, pipeline, use_threads_of_one_story

    name = find_model(options.model)
    _hide_progress_bars()
    from ..explanation.story import check_story_size

    stories = options.stories or EXAMPLE_STORIES
    for story in stories:
        check_story_size(story, options.max_sentences, options.max_sentence_length)
    use_threads_of_one_story()
    write = pipeline(name)
    arguments = options.pipeline_arguments(write.model)
    import torch

    def write_endings(index: int, story: str) -> list[dict[str, Any]]:
        # Samples depend on the story's place alone, not on which process writes it.
        torch.manual_seed(options.seed + index)
        return write(story, **arguments)

    results = map_in_processes(write_endings, stories)
    if results is None:
        return
    if options.json:
        print_json([{"story": story, "endings": endings} for story, endings in zip(stories, results, strict=True)])
        return
    for story, endings in zip(stories, results, strict=True):
        print_endings(story, endings)


def explain(options: ExplainOptions) -> None:
    """
    Generate the ending of a story and explain it: what each word came from, effects, attention and clues.

    With a change, a triple added or a triple or sentence removed, both endings are compared.

    Example: `storyend explain "Mei put a cake in the oven. She fell asleep." --model my_model --output_dir why`
    """
    from ..pretrained import find_model, use_threads_of_one_story

    find_model(options.model)
    _hide_progress_bars()
    use_threads_of_one_story()
    from ..explanation.counterfactuals import Counterfactual
    from ..explanation.run import explain_with_options

    result = explain_with_options(options)
    if options.json:
        print_json(result.to_json())
        return
    top_k = options.attention_top_k
    if isinstance(result, Counterfactual):
        print_page("\n".join([result.original.to_markdown(top_k), result.changed.to_markdown(top_k)]))
        print_page(result.to_markdown())
        return
    print_page(result.to_markdown(top_k))


def demo(options: DemoOptions) -> None:
    """
    Try models in a browser: a story in, endings out, with their sources, figures and your own triples.

    Ctrl+C stops it.

    Example: `storyend demo my_model other_model --port 8000`
    """
    from ..demo.app import launch_demo
    from ..demo.space import write_space

    if options.space_dir is not None:
        write_space(options.space_dir, options.models)
        name = Path(options.space_dir).resolve().name
        print_line(f"Written. To push it: hf upload {name} {options.space_dir} --repo-type space")
        return
    page, address = launch_demo(
        options.models,
        host=options.host,
        port=options.port,
        share=options.share,
        open_browser=options.open_browser,
        limits=options.limits,
    )
    print_line(f"Story endings at {address} (Ctrl+C stops)")
    page.block_thread()


def _hide_progress_bars() -> None:
    """Loading takes a second: bars would only flicker."""
    from transformers.utils import logging

    logging.disable_progress_bar()

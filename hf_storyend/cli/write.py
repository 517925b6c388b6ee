"""Commands that generate endings: `storyend generate`, `storyend explain`, `storyend demo`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..demo.options import DemoOptions
from ..explanation.options import ExplainOptions, parse_triples
from ..options import (
    DECODING_HELP,
    MAX_SENTENCE_LENGTH,
    MAX_SENTENCES,
    REQUIRED,
    SAMPLE_HELP,
    SEED_HELP,
    TEMPERATURE_HELP,
    TOP_K_HELP,
    TOP_P_HELP,
    DecodingPreset,
    check_at_least,
    check_finite_numbers,
    check_sampling,
    decoding_arguments,
    option,
    samples,
)
from ..processes import from_main_process, launched_processes, map_in_processes
from .printing import print_endings, print_json, print_line, print_lines, print_on_stderr, print_page

# Standard input, or output, in place of a file.
_STANDARD = "-"
_FILES = "Files"


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
    input: str | None = option(
        None,
        "File of stories, a story a line: .jsonl (`story` or `context`), .csv (`story`, or `sentence1` ...) or .txt, "
        "plain or .gz; `-` is standard input.",
        group=_FILES,
    )
    output: str | None = option(
        None,
        "JSON Lines file of the endings; the same command resumes an interrupted run; default: standard output.",
        group=_FILES,
    )
    input_format: Literal["jsonl", "csv", "txt"] | None = option(
        None, "Format of `--input`; default: by its name; for `-`, JSON Lines if it starts with `{`.", group=_FILES
    )
    batch_size: int = option(64, "Stories of `--input` in a batch, over all processes.", group=_FILES)
    details: bool = option(False, "Also write what words of these endings came from, and scores.", group=_FILES)
    decoding: DecodingPreset | None = option(None, DECODING_HELP)
    num_beams: int | None = option(None, "Beams; default: those of the preset.")
    do_sample: bool = option(False, SAMPLE_HELP)
    temperature: float | None = option(None, TEMPERATURE_HELP)
    top_p: float | None = option(None, TOP_P_HELP)
    top_k: int | None = option(None, TOP_K_HELP)
    seed: int = option(0, SEED_HELP)
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
        check_at_least(self, 1, "num_return_sequences", "max_sentences", "max_sentence_length", "batch_size")
        check_at_least(self, 1, "num_beams", optional=True)
        check_at_least(self, 0, "evidence_top_k", "seed")
        check_sampling(self)
        if self.triple_weight is not None and not self.triples and self.input is None:
            raise ValueError("`triple_weight` is the weight of triples of your own: give `triple`, too.")
        parse_triples("triple", self.triples)
        if self.input is not None and self.stories:
            raise ValueError("Stories come from `input` or from the command line, not from both.")
        if self.input is None:
            for name in ("output", "input_format", "details"):
                if getattr(self, name):
                    raise ValueError(f"`{name}` is for files of stories: give `input`, too.")

    def arguments(self, model: Any) -> dict[str, Any]:
        """
        Return the arguments of `write_endings`.

        Args:
            model: The model that generates, for its own decoding settings.
        """
        from ..pretrained import num_default_beams

        num_endings = self.num_return_sequences
        if not samples(self) and (self.num_beams or num_default_beams(model, self.decoding)) < num_endings:
            raise ValueError(f"{num_endings} endings need `do_sample` or `num_beams` of at least {num_endings}.")
        weight = {} if self.triple_weight is None else {"triple_weight": self.triple_weight}
        return {"num_return_sequences": num_endings, **weight, **decoding_arguments(self)}


def generate(options: GenerateOptions) -> None:
    """
    Generate endings, each with what its words came from: vocabulary, story or triples; or those of a file of stories.

    `storyend generate --input stories.jsonl --output endings.jsonl` writes the endings of a file of any size.

    Example: `storyend generate "Mei put a cake in the oven. She fell asleep." --num_return_sequences 3 --do_sample`
    """
    from ..pretrained import EXAMPLE_STORIES, find_model
    from ..story_text import check_story_size

    name, stories = find_model(options.model), options.stories or EXAMPLE_STORIES
    if options.input is not None:
        _generate_file(options, name)
        return
    for number, story in enumerate(stories, start=1):
        _refuse_path(story, "generate", number)
        check_story_size(story, options.max_sentences, options.max_sentence_length)
    _write_stories(options, name, stories)


def _write_stories(options: GenerateOptions, name: str, stories: tuple[str, ...]) -> None:
    """Write and print the endings of stories from the command line."""
    from ..pretrained import load, use_threads_of_one_story

    _hide_progress_bars()
    use_threads_of_one_story()
    model, tokenizer = load(name)
    arguments, triples = options.arguments(model), parse_triples("triple", options.triples)
    import torch

    from ..modeling.endings import write_endings
    from ..story_text import notes_on_story

    def write(index: int, story: str) -> list[dict[str, Any]]:
        # Samples depend on the story's place alone, not on which process writes it.
        torch.manual_seed(options.seed + index)
        own = {"triples": [triples], "evidence_top_k": options.evidence_top_k, "effects": True}
        return write_endings(model, tokenizer, [story], **own, **arguments)[0]

    results = map_in_processes(write, stories)
    if results is None:
        return
    notes = [notes_on_story(tokenizer, story) for story in stories]
    if options.json:
        print_json(
            [
                {"story": story, "endings": endings, "unknown_words": own.unknown_words, "is_english": own.is_english}
                for story, endings, own in zip(stories, results, notes, strict=True)
            ]
        )
        return
    for story, endings, own in zip(stories, results, notes, strict=True):
        print_endings(story, endings, own.lines())


def _generate_file(options: GenerateOptions, name: str) -> None:
    """Write the endings of a file of stories."""
    from ..generation.input_files import file_format, scan_stories
    from ..story_text import check_story_size

    output = None if options.output in (None, _STANDARD) else Path(str(options.output))
    check = partial(
        check_story_size, max_sentences=options.max_sentences, max_sentence_length=options.max_sentence_length
    )
    with _input_file(str(options.input), options.input_format) as (path, input_format):
        _check_paths(path, output)
        format_name = input_format or file_format(path)
        num_stories, digest = from_main_process(lambda: scan_stories(path, format_name, check))
        from ..generation.run import GenerationSettings, generate_file
        from ..pretrained import load

        _hide_progress_bars()
        model, tokenizer = load(name)
        model.to(_device())
        report = generate_file(
            model,
            tokenizer,
            path,
            output,
            num_stories=num_stories,
            input_digest=digest,
            settings=GenerationSettings(
                {
                    **options.arguments(model),
                    **({"evidence_top_k": options.evidence_top_k} if options.details else {}),
                },
                options.batch_size,
                options.seed,
                tuple(parse_triples("triple", options.triples)),
                options.details,
            ),
            format=format_name,
            write=print_lines,
        )
    if report is None:
        return
    if report.num_not_english:
        print_on_stderr(f"{report.num_not_english:,} of the stories hardly look like English: `is_english` is false.")
    if output is not None:
        num_written = report.num_stories - report.num_resumed
        resumed = f" ({report.num_resumed:,} were there already)" if report.num_resumed else ""
        rate = f", {60 * num_written / report.seconds:,.0f} a minute" if num_written else ""
        print_line(f"{output}: endings of {report.num_stories:,} stories{resumed}{rate}.")


@contextmanager
def _input_file(name: str, input_format: str | None) -> Iterator[tuple[Path, str | None]]:
    """Yield the file of stories and its format, if known; standard input is copied to a temporary file."""
    if name != _STANDARD:
        yield Path(name), input_format
        return
    if launched_processes() > 1:
        raise ValueError("Several processes can't share standard input: give a file as `input`.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard_input"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        with path.open("rb") as copy:
            is_json = copy.read(1 << 10).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        try:
            yield path, input_format or ("jsonl" if is_json else "txt")
        except ValueError as error:
            # Errors name the file: one that nobody has heard of.
            raise ValueError(str(error).replace(str(path), "Standard input")) from error


def _check_paths(path: Path, output: Path | None) -> None:
    if output is None:
        return
    if output.is_dir():
        raise ValueError(f"`output` {output} is a directory: name a file.")
    if output.resolve() == path.resolve():
        raise ValueError(f"`input` and `output` are both {path}: endings go to a file of their own.")


def _refuse_path(story: str, command: str, number: int) -> None:
    """Refuse the name of a file, or of a directory, in place of a story."""
    if not story.strip():
        raise ValueError(f"Story {number} is empty.")
    if story == _STANDARD:
        raise ValueError("`-` is no story: `--input -` reads stories from standard input.")
    try:
        is_file, is_directory = os.path.isfile(story), os.path.isdir(story)
    except ValueError:
        # A zero byte is in no path.
        return
    if is_file and command == "generate":
        raise ValueError(f"`{story}` is a file: to end the stories in it, give it as `--input {story}`.")
    if is_file:
        raise ValueError(f"`{story}` is a file; `{command}` takes the story itself.")
    if is_directory:
        raise ValueError(f"`{story}` is a directory, no story; a model is given as `--model {story}`.")


def _device() -> Any:
    """Return the device of this process."""
    import torch

    from ..processes import start_accelerator

    if launched_processes() > 1:
        return start_accelerator().device
    return (torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None) or "cpu"


@dataclass(frozen=True)
class RankOptions:
    """Options of `storyend rank`."""

    story: str = option(REQUIRED, "The story, all its sentences in one string.", positional=True, metavar="STORY")
    endings: tuple[str, ...] = option((), "An ending to rank; repeatable.", flag="ending", metavar="ENDING")
    model: str | None = option(None, "Model directory or Hub name; default: the model that comes with the package.")
    max_sentences: int = option(MAX_SENTENCES, "Refuse stories with more sentences.")
    max_sentence_length: int = option(MAX_SENTENCE_LENGTH, "Refuse sentences and endings with more words.")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "max_sentences", "max_sentence_length")
        if not self.endings:
            raise ValueError("`ending` is missing: give at least one.")


def rank(options: RankOptions) -> None:
    """
    Rank endings of a story, the best first: by the model's ending ranker or, if it has none, by log probability.

    Example: `storyend rank "Mei put a cake in the oven. She fell asleep." --ending "It burnt." --ending "She swam."`
    """
    from ..pretrained import find_model, use_threads_of_one_story
    from ..story_text import check_ending_size, check_story_size

    name = find_model(options.model)
    _refuse_path(options.story, "rank", 1)
    check_story_size(options.story, options.max_sentences, options.max_sentence_length)
    for number, ending in enumerate(options.endings, start=1):
        check_ending_size(ending, number, options.max_sentence_length)
    from ..ranking import rank as rank_endings

    _hide_progress_bars()
    use_threads_of_one_story()
    ranked = rank_endings(options.story, options.endings, name)
    if options.json:
        print_json(ranked)
        return
    for item in ranked:
        print_line(f"{item['score']:8.2f}  {item['ending']}")


def explain(options: ExplainOptions) -> None:
    """
    Generate the ending of a story and explain it: what each word came from, effects, attention and clues.

    With a change, a triple added or a triple or sentence removed, both endings are compared.

    Example: `storyend explain "Mei put a cake in the oven. She fell asleep." --model my_model --output_dir why`
    """
    from ..pretrained import find_model, use_threads_of_one_story

    find_model(options.model)
    if options.story is not None:
        _refuse_path(options.story, "explain", 1)
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

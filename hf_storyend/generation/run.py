"""Write the endings of a file of stories: in batches of similar lengths, resumable, by all processes of a launch."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tqdm.auto import tqdm

from ..data.text_files import at_line
from ..modeling.endings import write_endings, write_texts
from ..processes import from_main_process, map_in_processes
from ..story_text import StoryNotes, notes_on_story
from .input_files import ENDING, InputStory, stream_stories
from .output_file import EndingsFile, json_line

if TYPE_CHECKING:
    from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

logger = logging.getLogger(__name__)

# Batches that are grouped by length, and written at once: what a killed run may have to write again.
_BATCHES_PER_CHUNK = 8
# Without a terminal there is no bar, but a line now and then.
_SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class GenerationSettings:
    """
    How the endings of a file are written; runs with other settings don't go on with each other's files.

    Args:
        arguments: Arguments of `write_endings`, `decoding` and those of `generate()` among them.
        batch_size: Stories in a batch.
        seed: Random seed of sampling.
        triples: Knowledge for all stories.
        details: Whether to write what the words came from, too.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 64
    seed: int = 0
    triples: tuple[tuple[str, str, str], ...] = ()
    details: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name, as JSON would have them."""
        own = {"batch_size": self.batch_size, "seed": self.seed, "triples": self.triples, "details": self.details}
        return json.loads(json.dumps({**self.arguments, **own}))


@dataclass(frozen=True)
class FileReport:
    """
    What was written.

    Args:
        num_stories: Stories of the file.
        num_resumed: Stories whose endings an interrupted run had written before.
        num_not_english: Stories, of those written now, that hardly look English.
        seconds: Time from the first batch to the last.
    """

    num_stories: int
    num_resumed: int
    num_not_english: int
    seconds: float


def generate_file(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    input_file: Path,
    output_file: Path | None,
    *,
    num_stories: int,
    input_digest: str,
    settings: GenerationSettings | None = None,
    format: str | None = None,
    write: Callable[[str], None] | None = None,
) -> FileReport | None:
    """
    Write the ending of each story of a file to the same line of another, in JSON Lines.

    Args:
        model: A model in eval mode.
        tokenizer: Its tokenizer.
        input_file: Stories, as `stream_stories` reads them.
        output_file: File to write; None: `write` gets the lines.
        num_stories: Number of stories, as `scan_stories` has counted them.
        input_digest: SHA-256 of the input, from `scan_stories`.
        settings: How the endings are written.
        format: Format of the input; default: by its name.
        write: What is called with each chunk of lines, if there is no `output_file`.

    Returns:
        What was written; None in all processes but the main one.
    """
    settings = settings or GenerationSettings()
    output = None
    if output_file is not None:
        run = {
            "input": input_digest,
            "num_stories": num_stories,
            "model": model_digest(model, tokenizer),
            "options": settings.to_dict(),
        }
        output = EndingsFile(output_file, run, settings.batch_size * _BATCHES_PER_CHUNK)
    with closing(output) if output is not None else nullcontext():
        return _write_file(model, tokenizer, input_file, output, num_stories, settings, format, write)


def _write_file(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    input_file: Path,
    output: EndingsFile | None,
    num_stories: int,
    settings: GenerationSettings,
    format: str | None,
    write: Callable[[str], None] | None,
) -> FileReport | None:
    chunk_size = settings.batch_size * _BATCHES_PER_CHUNK
    num_resumed = from_main_process(lambda: output.begin(num_stories) if output is not None else 0)
    writer = _Writer(model, tokenizer, input_file, settings)
    stories = islice(stream_stories(input_file, format), num_resumed, None)
    start, num_not_english, is_main = time.monotonic(), 0, True
    with _progress(num_stories, num_resumed) as advance:
        for number, chunk in enumerate(_chunks(stories, chunk_size), start=num_resumed // chunk_size):
            records = writer.write_chunk(number, chunk)
            is_main = records is not None
            if records is not None:
                num_not_english += sum(record.get("is_english") is False for record in records)
                _append(records, output, write)
                advance(len(records))
    if not is_main:
        return None
    if output is not None and num_resumed < num_stories:
        output.finish()
    return FileReport(num_stories, num_resumed, num_not_english, time.monotonic() - start)


def model_digest(model: IncrementalEncoderForEndingGeneration, tokenizer: IncrementalEncoderTokenizer) -> str:
    """Return the SHA-256 of all that endings depend on: weights, settings, vocabulary and knowledge."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
    settings = model.config.to_dict() | {"generation": model.generation_config.to_dict()}
    # What follows from the library in use is no part of a model.
    settings.pop("transformers_version", None)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(tokenizer.save_vocabulary(folder)):
            digest.update(Path(path).read_bytes())
    return digest.hexdigest()


class _Writer:
    """Endings of chunks of stories."""

    def __init__(
        self,
        model: IncrementalEncoderForEndingGeneration,
        tokenizer: IncrementalEncoderTokenizer,
        input_file: Path,
        settings: GenerationSettings,
    ):
        self.model, self.tokenizer, self.input_file, self.settings = model, tokenizer, input_file, settings

    def write_chunk(self, number: int, chunk: Sequence[InputStory]) -> list[dict[str, Any]] | None:
        """Return the records of a chunk in the order of its stories; None in all processes but the main one."""
        # Similar lengths together: little padding.
        order = sorted(range(len(chunk)), key=lambda place: _length(chunk[place].story))
        size = self.settings.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]

        def write_batch(index: int, places: list[int]) -> list[dict[str, Any]]:
            # Samples depend on the place of the story alone, not on processes or on where a run was resumed.
            torch.manual_seed(self.settings.seed + number * _BATCHES_PER_CHUNK + index)
            return self._write_batch([chunk[place] for place in places])

        written = map_in_processes(write_batch, batches)
        if written is None:
            return None
        records: dict[int, dict[str, Any]] = {}
        for places, batch in zip(batches, written, strict=True):
            records.update(zip(places, batch, strict=True))
        return [records[place] for place in range(len(chunk))]

    def _write_batch(self, batch: Sequence[InputStory]) -> list[dict[str, Any]]:
        try:
            return self._records(batch)
        except ValueError:
            # One of them is at fault: its line is named.
            for story in batch:
                with at_line(self.input_file, story.line):
                    self._records([story])
            raise

    def _records(self, batch: Sequence[InputStory]) -> list[dict[str, Any]]:
        settings, stories = self.settings, [story.story for story in batch]
        triples, arguments = [[*settings.triples, *story.triples] for story in batch], dict(settings.arguments)
        if not any(triples):
            arguments.pop("triple_weight", None)
        endings: list[list[Any]]
        if settings.details:
            endings = write_endings(self.model, self.tokenizer, stories, triples=triples, **arguments)
        else:
            endings = write_texts(self.model, self.tokenizer, stories, triples=triples, **arguments)
        return [
            {**story.record, **_ending_fields(own), **_note_fields(notes_on_story(self.tokenizer, story.story))}
            for story, own in zip(batch, endings, strict=True)
        ]


def _ending_fields(endings: Sequence[Any]) -> dict[str, Any]:
    """Return the best ending, and all of them where there are several or more than their text."""
    if len(endings) == 1 and isinstance(endings[0], str):
        return {ENDING: endings[0]}
    best = endings[0]
    return {ENDING: best if isinstance(best, str) else best[ENDING], "endings": list(endings)}


def _note_fields(notes: StoryNotes) -> dict[str, Any]:
    unknown = {"unknown_words": notes.unknown_words} if notes.unknown_words else {}
    return unknown if notes.is_english else {**unknown, "is_english": False}


def _length(story: str | list[str]) -> int:
    return len(story) if isinstance(story, str) else sum(map(len, story))


def _chunks(stories: Iterable[InputStory], size: int) -> Iterator[list[InputStory]]:
    stories = iter(stories)
    while chunk := list(islice(stories, size)):
        yield chunk


def _append(
    records: Sequence[Mapping[str, Any]], output: EndingsFile | None, write: Callable[[str], None] | None
) -> None:
    if output is not None:
        output.append(records)
    elif write is not None:
        write("".join(map(json_line, records)))


@contextmanager
def _progress(num_stories: int, num_resumed: int) -> Iterator[Callable[[int], None]]:
    """Yield what is told how many stories were written; it shows a bar, or logs a line now and then."""
    with tqdm(total=num_stories, initial=num_resumed, desc="endings", unit=" stories", disable=None) as bar:
        start = last = time.monotonic()
        num_written = 0

        def advance(number: int) -> None:
            nonlocal last, num_written
            bar.update(number)
            num_written += number
            now = time.monotonic()
            if bar.disable and now - last >= _SECONDS_BETWEEN_LINES:
                last = now
                rate = 60 * num_written / (now - start)
                logger.info(
                    "%s of %s stories, %.0f a minute", f"{num_resumed + num_written:,}", f"{num_stories:,}", rate
                )

        yield advance

"""`storyend prepare`: stories, knowledge and vectors in, tokenizer, first model and tokenised data out."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, DatasetDict

from .data.collator import LengthBuckets, padding_share, tokenise_stories
from .data.embeddings import WordVectors, load_word_vectors
from .data.splits import find_leaks, split_stories
from .data.stories import EMBEDDED, embedded_edges, load_stories
from .data.vocabulary import Vocabulary, build_vocabulary
from .files import atomic_directory, file_digest, file_lock
from .knowledge import Policy, ReadReport, build_knowledge_table, describe, read_edges
from .modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    KnowledgeTable,
)

REPORT = "report.json"


def input_digests(paths: Sequence[Path]) -> dict[str, str]:
    """Digests of files, and of all files in directories, by path."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return {str(file): file_digest(file) for file in files if file.is_file()}


def fingerprint(content: Any) -> str:
    """One string for anything JSON can hold; equal for equal content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def read_report(directory: Path) -> dict[str, Any] | None:
    """The report of a prepared directory, or None if there is none."""
    path = directory / REPORT
    if not path.is_file():
        return None
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} can't be read: {error}. Remove the directory and prepare again.") from error
    if not isinstance(report, dict):
        raise ValueError(f"{path} is not a report. Remove the directory and prepare again.")
    return report


_BATCH_SIZE = 128


def story_statistics(
    tokenised: DatasetDict, tokenizer: IncrementalEncoderTokenizer, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For each split: stories, mean words of each sentence and of the ending, unknown words, padding in batches."""
    return {name: _split_statistics(rows, tokenizer, seed) for name, rows in tokenised.items()}


def _split_statistics(rows: Dataset, tokenizer: IncrementalEncoderTokenizer, seed: int) -> dict[str, Any]:
    # The end symbol of an ending is no word.
    stories, endings = list(rows["input_ids"]), [ending[:-1] for ending in rows["labels"]]
    by_place: dict[int, list[int]] = {}
    for story in stories:
        for place, sentence in enumerate(story):
            by_place.setdefault(place, []).append(len(sentence))
    words = [
        word for story, ending in zip(stories, endings, strict=True) for part in (*story, ending) for word in part
    ]
    buckets = LengthBuckets(rows["length"], _BATCH_SIZE, seed=seed)
    in_order = [
        list(range(start, min(start + _BATCH_SIZE, len(stories)))) for start in range(0, len(stories), _BATCH_SIZE)
    ]
    return {
        "stories": len(stories),
        "words_by_sentence": [round(sum(lengths) / len(lengths), 2) for lengths in by_place.values()],
        "words_of_ending": round(sum(map(len, endings)) / len(endings), 2),
        "unknown_words": words.count(tokenizer.unk_token_id) / len(words),
        "padding_by_length": padding_share(stories, buckets.global_batches()),
        "padding_as_they_come": padding_share(stories, in_order),
    }


def describe_report(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = [
        "# Prepared data",
        "",
        "| split | stories | words a sentence | words an ending | unknown words | padding |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, split in report["stories"].items():
        words = " / ".join(f"{number:.1f}" for number in split["words_by_sentence"])
        padding = f"{split['padding_by_length']:.1%} (as they come: {split['padding_as_they_come']:.1%})"
        lines.append(
            f"| {name} | {split['stories']:,} | {words} | {split['words_of_ending']:.1f} "
            f"| {split['unknown_words']:.2%} | {padding} |"
        )
    vocabulary, model = report["vocabulary"], report["model"]
    lines += [
        "",
        f"Padding is that of batches of {_BATCH_SIZE} stories of like length.",
        "",
        f"**Vocabulary**: {vocabulary['size']:,} words, {vocabulary['coverage']:.2%} of the running words of train.",
        "",
        *_section("Leaks", report["leaks"]),
        *_section("Knowledge", describe(report["knowledge"]) if report["knowledge"] else "none"),
        *_section("Word vectors", report["vectors"] or "drawn at random"),
        f"**Model**: {model['parameters']:,} parameters, knowledge: {model['knowledge'] or 'none'}",
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, text: str) -> list[str]:
    """A line a bullet; indented lines stay part of the one above. Text out of files can't become HTML."""
    lines = text.replace("<", r"\<").split("\n")
    bullets = [line if line.startswith((" ", "-")) else f"- {line}" for line in lines]
    return [f"**{title}**:", "", *bullets, ""]


# Raised whenever the same inputs give other files, so that a directory of before is not taken for one of now.
_FORMAT = 2


@dataclass(frozen=True)
class PreparationOptions:
    """
    All that decides what is prepared.

    Args:
        stories: A file or directory of stories, a dataset on the Hub, or `"embedded"`.
        conceptnet: Files with triples; none with the embedded stories means the embedded triples.
        glove: Word vectors, or None for random ones.
        vocab_size: Number of words, special symbols included.
        lower_case: Whether the vocabulary is in lower case.
        split_contractions: Whether `didn't` is two words.
        knowledge: Knowledge encoder of the model: `"graph_attention"`, `"contextual_attention"` or None.
        max_triples: Most triples a word.
        policy: Which triples stay: `"weight"`, `"tail_frequency"` or `"weight_and_frequency"`.
        relations: Relations to keep; all unless given.
        min_weight: Triples of a smaller weight are left out.
        inverse, symmetric: Whether edges count from their tail too: all, or those of symmetric relations.
        multi_word: Whether concepts of several words are matched in text.
        hidden_size, num_layers: Size of the LSTM.
        embedding_size: Size of word vectors; that of `glove` where it is given, else 200.
        num_train: Training stories where the source has no splits of its own; by default nine tenths.
        seed: Of the split and of all that is drawn.
    """

    stories: str = EMBEDDED
    conceptnet: tuple[str, ...] = ()
    glove: str | None = None
    vocab_size: int = 10_000
    lower_case: bool = True
    split_contractions: bool = True
    knowledge: str | None = "contextual_attention"
    max_triples: int = 10
    policy: Policy = "weight_and_frequency"
    relations: tuple[str, ...] | None = None
    min_weight: float | None = None
    inverse: bool = False
    symmetric: bool = False
    multi_word: bool = False
    hidden_size: int = 512
    num_layers: int = 2
    embedding_size: int | None = None
    num_train: int | None = None
    seed: int = 0


def prepare(
    options: PreparationOptions, output: str | Path, *, overwrite: bool = False, num_proc: int | None = None
) -> dict[str, Any]:
    """
    Write a directory that training can start from and return its report.

    In it are the tokenizer and a model that knows nothing yet (so that `from_pretrained(output)` works), `stories` and
    `tokenised` data sets, and `report.json` with its readable form `report.md`. If the directory was made before from
    the same inputs it is left as it is, and its report has `cached: True`; one made from others is replaced only if
    `overwrite` says so. A process that another one is ahead of waits for it.
    """
    output = Path(output)
    _check_options(options)
    inputs = _input_files(options)
    key = fingerprint([version("hf_storyend"), _FORMAT, asdict(options), inputs])
    with file_lock(output):
        return _find_or_write(options, output, inputs, key, overwrite, num_proc)


def _find_or_write(
    options: PreparationOptions,
    output: Path,
    inputs: dict[str, str],
    key: str,
    overwrite: bool,
    num_proc: int | None,
) -> dict[str, Any]:
    done = read_report(output)
    if done is not None and done.get("fingerprint") == key:
        return {**done, "cached": True}
    if output.exists() and not overwrite and (not output.is_dir() or any(output.iterdir())):
        was = "was prepared from other inputs" if done else "exists and is not a prepared directory"
        raise ValueError(f"{output} {was}. Choose another one, or say that it may be overwritten.")
    with atomic_directory(output) as folder:
        report = {
            "fingerprint": key,
            "options": asdict(options),
            "inputs": inputs,
            **_write(options, folder, num_proc),
        }
        text = json.dumps(report, indent=1, ensure_ascii=False)
        (folder / REPORT).write_text(text + "\n", encoding="utf-8")
        (folder / "report.md").write_text(describe_report(report), encoding="utf-8")
    return {**json.loads(text), "cached": False}


def _check_options(options: PreparationOptions) -> None:
    """An option that would change nothing is a mistake worth telling."""
    if options.conceptnet:
        return
    # The embedded triples are edges like others, but for their weights.
    needs_files = ["min_weight"]
    needs_files += ["inverse", "symmetric", "multi_word", "relations"] if options.stories != EMBEDDED else []
    for name in needs_files:
        if getattr(options, name):
            raise ValueError(f"`{name}` is about triples, and there are none to use it on: give `conceptnet` files.")


def _input_files(options: PreparationOptions) -> dict[str, str]:
    named = [options.stories] if options.stories != EMBEDDED else []
    named += [*options.conceptnet, *([options.glove] if options.glove else [])]
    paths = [Path(name).expanduser() for name in named]
    for name, path in zip(named, paths, strict=True):
        if name != options.stories and not path.is_file():
            raise ValueError(f"{name} is not a file.")
    return input_digests([path for path in paths if path.exists()])


def _write(options: PreparationOptions, folder: Path, num_proc: int | None) -> dict[str, Any]:
    stories = _load_splits(options)
    train = stories["train"]
    sentences = (text for row in train for text in (*row["context"], row["ending"]))
    vocabulary = build_vocabulary(sentences, options.vocab_size, options.lower_case, options.split_contractions)
    tokenizer = _tokenizer(options, vocabulary)
    vectors = None
    if options.glove is not None:
        vectors = load_word_vectors(options.glove, vocabulary.ids, dimension=options.embedding_size, seed=options.seed)
    model = initial_model(tokenizer, options, vectors)
    tokenised = tokenise_stories(stories, tokenizer, num_proc=num_proc)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    stories.save_to_disk(folder / "stories")
    tokenised.save_to_disk(folder / "tokenised")
    return {
        "stories": story_statistics(tokenised, tokenizer, seed=options.seed),
        "leaks": find_leaks(stories).describe(),
        "vocabulary": {"size": len(vocabulary.ids), "coverage": vocabulary.coverage},
        "knowledge": tokenizer.knowledge.statistics,
        "vectors": vectors.describe() if vectors else None,
        "model": {"knowledge": options.knowledge, "parameters": model.num_parameters()},
        "versions": {name: version(name) for name in ("hf_storyend", "torch", "transformers", "datasets")},
        "python": platform.python_version(),
    }


def _load_splits(options: PreparationOptions) -> DatasetDict:
    stories = load_stories(options.stories)
    if "train" not in stories:
        raise ValueError(f"{options.stories} has no split `train`; there is {', '.join(stories)}.")
    if len(stories) > 1:
        return stories
    if options.num_train is None:
        return split_stories(stories, fractions=(0.9, 0.05, 0.05), seed=options.seed)
    return split_stories(stories, num_train=options.num_train, seed=options.seed)


def _tokenizer(options: PreparationOptions, vocabulary: Vocabulary) -> IncrementalEncoderTokenizer:
    tokenizer = IncrementalEncoderTokenizer(
        vocab=vocabulary.ids, do_lower_case=options.lower_case, split_contractions=options.split_contractions
    )
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = _knowledge(options, vocabulary)
    return tokenizer


def _knowledge(options: PreparationOptions, vocabulary: Vocabulary) -> KnowledgeTable:
    report = ReadReport() if options.conceptnet else None
    if options.conceptnet:
        edges = read_edges(options.conceptnet, min_weight=options.min_weight, report=report)
    elif options.stories == EMBEDDED:
        edges = embedded_edges()
    else:
        return KnowledgeTable(max_triples=options.max_triples)
    return build_knowledge_table(
        edges,
        vocabulary.ids,
        counts=vocabulary.counts,
        relations=options.relations,
        max_triples=options.max_triples,
        policy=options.policy,
        inverse=options.inverse,
        symmetric=options.symmetric,
        multi_word=options.multi_word,
        report=report,
    )


def initial_model(
    tokenizer: IncrementalEncoderTokenizer, options: PreparationOptions, vectors: WordVectors | None = None
) -> IncrementalEncoderForEndingGeneration:
    """A model that has learnt nothing yet but, if given, its word vectors."""
    sizes: dict[str, Any] = {"embedding_size": options.embedding_size or 200}
    if vectors is not None:
        # The gates are scaled to the spread of the vectors, so the vectors can stay as they are.
        spread = round(float(vectors.matrix.std()), 4)
        sizes = {"embedding_size": vectors.matrix.shape[1], "initializer_range": spread}
    config = IncrementalEncoderConfig.for_tokenizer(
        tokenizer,
        knowledge=options.knowledge,
        hidden_size=options.hidden_size,
        num_layers=options.num_layers,
        **sizes,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        model = IncrementalEncoderForEndingGeneration(config)
    if vectors is not None:
        model.get_input_embeddings().weight.data.copy_(vectors.matrix)
    return model

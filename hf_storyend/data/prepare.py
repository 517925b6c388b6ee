"""`prepare`: from stories, triples and word vectors to a directory that training starts from."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset, DatasetDict

from ..files import atomic_directory, file_digest, file_lock, remove_leftovers
from ..knowledge.build import build_knowledge_table
from ..knowledge.conceptnet import read_edges
from ..knowledge.edges import Edge, ReadReport
from ..knowledge.reach import measure_reach
from ..knowledge.selection import DEFAULT_MIN_LIFT, STORY_LIFT, Policy
from ..knowledge.story_lift import HeldOutWeights, build_story_lift_table
from ..manifest import MANIFEST, ManifestError, read_manifest, recover_directory, write_manifest
from ..modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    KnowledgeTable,
)
from .batching import tokenise_stories
from .embedded import embedded_edges
from .embeddings import WordVectors, find_vectors, load_word_vectors
from .options import EMBEDDED, PrepareOptions
from .report import read_report, split_statistics, write_report
from .splits import find_leaks, split_stories
from .stories import load_stories
from .story_words import add_held_out_columns, find_names, story_words
from .vocabulary import Vocabulary, build_vocabulary

# Incremented when equal inputs give other files: directories of earlier versions are no cache hits then.
_FORMAT = 3
_DEFAULT_EMBEDDING_SIZE = 200
# Everything in a directory prepared by version 0.1 but the code of the model.
_WRITTEN = (
    *("config.json", "generation_config.json", "model.safetensors", "tokenizer_config.json", "report.json"),
    *("report.md", "stories", "tokenised", "special_tokens_map.json", "added_tokens.json"),
    *IncrementalEncoderTokenizer.vocab_files_names.values(),
)


def prepare(options: PrepareOptions) -> dict[str, Any]:
    """
    Write a directory that training starts from and return its report.

    The directory holds the tokenizer with its knowledge table and an untrained model (`from_pretrained(output_dir)`
    works), the datasets `stories` and `tokenised`, and the report as `report.json` and `report.md`.

    A directory written from the same inputs is a cache hit: it is left unchanged, and the report has `cached: True`.
    One written from other inputs is an error unless `options.overwrite` is true. Anything else that stands there, and
    a prepared directory to which other files were added, is never replaced. Processes that prepare the same directory
    at the same time wait for each other; the first one writes.
    """
    output = Path(options.output_dir)
    inputs = _input_digests(options)
    fingerprint = _fingerprint([version("hf_storyend"), _FORMAT, options.content(), inputs])
    with file_lock(output):
        recover_directory(output)
        existing = read_report(output)
        if existing is not None and existing.get("fingerprint") == fingerprint:
            return {**existing, "cached": True}
        _check_free(output, existing is not None, options.overwrite)
        if output.parent.is_dir():
            remove_leftovers(output.parent, re.escape(output.name))
        with atomic_directory(output) as folder:
            header = {"fingerprint": fingerprint, "options": options.content(), "inputs": inputs}
            report = write_report(folder, {**header, **_write(options, folder)})
            write_manifest(folder, "prepared data", fingerprint=fingerprint)
    return {**report, "cached": False}


def _input_digests(options: PrepareOptions) -> dict[str, str]:
    """Return the digest of every input file, also of those in directories."""
    files = [Path(name).expanduser() for name in (*options.conceptnet, *([options.glove] if options.glove else []))]
    for file in files:
        if not file.is_file():
            raise ValueError(f"{file} is not a file.")
    stories = Path(options.stories).expanduser()
    if options.stories != EMBEDDED and stories.exists():
        files = [*(sorted(stories.rglob("*")) if stories.is_dir() else [stories]), *files]
    return {str(file): file_digest(file) for file in files if file.is_file()}


def _fingerprint(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _check_free(output: Path, is_prepared: bool, overwrite: bool) -> None:
    if not os.path.lexists(output) or (output.is_dir() and not any(output.iterdir())):
        return
    if not is_prepared:
        raise ValueError(
            f"{output} exists and is not a prepared directory: choose another one. Nothing but prepared directories "
            "is replaced, with `overwrite` either."
        )
    if not overwrite:
        raise ValueError(
            f"{output} was prepared from other inputs. Choose another directory, or allow to replace it with "
            "`overwrite`."
        )
    added = _added(output)
    if added:
        raise ValueError(
            f"{output} can't be replaced: it also has {', '.join(added[:5])}, which `prepare` did not write. "
            "Move that away, or choose another directory."
        )


def _added(output: Path) -> list[str]:
    """Return what others put into a prepared directory, or into a directory of it."""
    try:
        written = {MANIFEST, *read_manifest(output)["files"]}
    except ManifestError:
        # Prepared by an earlier version; the code of the model had other names.
        return sorted({path.name for path in output.iterdir() if path.suffix != ".py"} - set(_WRITTEN))
    files = (path for path in output.rglob("*") if path.is_symlink() or not path.is_dir())
    # `datasets` puts what it computes beside the data.
    names = {path.relative_to(output).as_posix() for path in files if not path.match("cache-*.arrow")}
    return sorted(names - written)


def _write(options: PrepareOptions, folder: Path) -> dict[str, Any]:
    """Write everything but the report, and return what the report says of it."""
    stories = _load_splits(options)
    vocabulary = _build_vocabulary(options, stories)
    tokenizer = _build_tokenizer(options, vocabulary)
    vectors = None
    if options.glove is not None:
        vectors = load_word_vectors(options.glove, vocabulary.ids, dimension=options.embedding_size, seed=options.seed)
    tokenised = tokenise_stories(stories, tokenizer, num_proc=options.num_proc)
    if options.policy == STORY_LIFT:
        tokenizer.knowledge, held_out = _build_story_lift(options, vocabulary, tokenised["train"])
        tokenised["train"] = add_held_out_columns(tokenised["train"], held_out)
    else:
        tokenizer.knowledge = _build_knowledge(options, vocabulary)
    if len(tokenizer.knowledge) and "validation" in stories:
        rows = stories["validation"]
        tokenizer.knowledge.statistics["reach"] = measure_reach(tokenizer, rows["context"][:], rows["ending"][:])
    model = build_initial_model(tokenizer, options, vectors)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    stories.save_to_disk(folder / "stories")
    tokenised.save_to_disk(folder / "tokenised")
    return {
        "stories": split_statistics(tokenised, tokenizer.unk_token_id, seed=options.seed),
        "leaks": find_leaks(stories).describe(),
        "vocabulary": {"size": len(vocabulary.ids), "coverage": vocabulary.coverage},
        "knowledge": tokenizer.knowledge.statistics,
        "vectors": vectors.describe() if vectors else None,
        "model": {"knowledge": options.knowledge, "parameters": model.num_parameters()},
        "versions": {name: version(name) for name in ("hf_storyend", "torch", "transformers", "datasets")},
        "python": platform.python_version(),
    }


def _load_splits(options: PrepareOptions) -> DatasetDict:
    stories = load_stories(options.stories)
    if "train" not in stories:
        raise ValueError(f"{options.stories} has no split `train`; there is {', '.join(stories)}.")
    if len(stories) > 1:
        return stories
    if options.num_train is None:
        return split_stories(stories, fractions=(0.9, 0.05, 0.05), seed=options.seed)
    return split_stories(stories, num_train=options.num_train, seed=options.seed)


def _build_vocabulary(options: PrepareOptions, stories: DatasetDict) -> Vocabulary:
    sentences = (sentence for story in stories["train"] for sentence in (*story["context"], story["ending"]))
    return build_vocabulary(sentences, options.vocab_size, options.lower_case, options.split_contractions)


def _build_tokenizer(options: PrepareOptions, vocabulary: Vocabulary) -> IncrementalEncoderTokenizer:
    tokenizer = IncrementalEncoderTokenizer(
        vocab=vocabulary.ids, do_lower_case=options.lower_case, split_contractions=options.split_contractions
    )
    tokenizer.word_forms = vocabulary.word_forms
    return tokenizer


def _read_edges(options: PrepareOptions) -> tuple[Iterable[Edge], ReadReport | None]:
    """Return the edges, none if there is no knowledge, and the report on reading files."""
    if not options.conceptnet:
        return embedded_edges() if options.stories == EMBEDDED else (), None
    report = ReadReport()
    return read_edges(options.conceptnet, min_weight=options.min_weight, report=report), report


def _build_story_lift(
    options: PrepareOptions, vocabulary: Vocabulary, train: Dataset
) -> tuple[KnowledgeTable, HeldOutWeights]:
    edges, report = _read_edges(options)
    return build_story_lift_table(
        edges,
        vocabulary.ids,
        story_words(train),
        names=find_names(train, vocabulary),
        vectors_of=None if options.glove is None else partial(find_vectors, options.glove),
        counts=vocabulary.counts,
        relations=options.relations,
        max_triples=options.max_triples,
        min_lift=DEFAULT_MIN_LIFT if options.min_lift is None else options.min_lift,
        report=report,
    )


def _build_knowledge(options: PrepareOptions, vocabulary: Vocabulary) -> KnowledgeTable:
    edges, report = _read_edges(options)
    if not edges:
        return KnowledgeTable(max_triples=options.max_triples)
    return build_knowledge_table(
        edges,
        vocabulary.ids,
        counts=vocabulary.counts,
        relations=options.relations,
        max_triples=options.max_triples,
        policy=cast(Policy, options.policy),
        inverse=options.inverse,
        symmetric=options.symmetric,
        multi_word=options.multi_word,
        report=report,
    )


def build_initial_model(
    tokenizer: IncrementalEncoderTokenizer, options: PrepareOptions, vectors: WordVectors | None = None
) -> IncrementalEncoderForEndingGeneration:
    """Return an untrained model whose embeddings are `vectors`, if there are any."""
    sizes: dict[str, Any] = {"embedding_size": options.embedding_size or _DEFAULT_EMBEDDING_SIZE}
    if vectors is not None:
        # The other weights get the standard deviation of the vectors, so that the vectors need no scaling.
        deviation = round(float(vectors.matrix.std()), 4)
        sizes = {"embedding_size": vectors.matrix.shape[1], "initializer_range": deviation}
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

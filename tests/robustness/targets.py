"""Every file that the package reads: a small valid example, its mutations, and its reader."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from robustness.mutations import BLIND, STRUCTURED_JSON, STRUCTURED_TENSORS, Mutation, huge_word, inside_gzip
from safetensors.torch import load_file, save_file

from hf_storyend import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    KnowledgeTable,
)
from hf_storyend.annotation import draw_sample, read_judgements, read_key, read_systems, write_sample
from hf_storyend.data import load_stories
from hf_storyend.data.embeddings import load_word_vectors
from hf_storyend.data.report import read_report
from hf_storyend.data.story_files import read_cloze_questions, read_stories
from hf_storyend.evaluation.loading import read_endings
from hf_storyend.files import file_digest
from hf_storyend.hub.verify_code import check_code
from hf_storyend.knowledge import ReadReport, read_edges
from hf_storyend.training.checkpoints import Checkpoint, RunState, load_checkpoint, save_checkpoint
from hf_storyend.training.option_parsing import parse_options
from hf_storyend.training.progress import TrainingLog

STORIES = [
    {"context": ["Anna put a cake in the oven.", "She watched a film."], "ending": "The kitchen was full of smoke."},
    {
        "context": ["Tom lost his key.", "He said: “no”!", "It rained."],
        "ending": "A mouse had the key, so he laughed.",
    },
    {"context": ["We saw ducks — five.", "One swam."], "ending": "We fed them bread."},
]
WORDS = "<unk> <pad> <s> </s> anna cake oven burn smoke kitchen she the a in was . put trick or treat".split()
RELATIONS = ["AtLocation", "Causes", "UsedFor"]


@dataclass(frozen=True)
class Target:
    """
    A reader, and the files to corrupt.

    Args:
        build: Writes valid files into an empty directory.
        read: Reads them; a `ValueError` or `OSError` that names a file is a valid answer.
        corrupted: Files to corrupt by name, each with its mutations.
        mend: Called after a file was corrupted, for what an attacker would put right, such as checksums.
    """

    build: Callable[[Path], object]
    read: Callable[[Path], object]
    corrupted: dict[str, tuple[Mutation, ...]]
    mend: Callable[[Path], object] | None = field(default=None)


JSON = (*BLIND, *STRUCTURED_JSON)
TENSORS = (*BLIND, *STRUCTURED_TENSORS)
GZIP = (*BLIND, *map(inside_gzip, BLIND))


def tiny_tokenizer() -> IncrementalEncoderTokenizer:
    tokenizer = IncrementalEncoderTokenizer(vocab={word: index for index, word in enumerate(WORDS)})
    tokenizer.word_forms = {"anna": "Anna"}
    tokenizer.knowledge = KnowledgeTable(
        RELATIONS,
        max_triples=2,
        triples={"oven": [("oven", "UsedFor", "cake")], "burn": [("burn", "Causes", "smoke")]},
        concepts={"burnt": ["burn"]},
        phrases={"trick or treat": [("treat", "Causes", "smoke")]},
        statistics={"policy": "weight"},
    )
    return tokenizer


def tiny_model() -> IncrementalEncoderForEndingGeneration:
    config = IncrementalEncoderConfig(
        vocab_size=len(WORDS), num_relations=len(RELATIONS), embedding_size=2, hidden_size=3, num_layers=1
    )
    torch.manual_seed(0)
    return IncrementalEncoderForEndingGeneration(config)


def _read_model(folder: Path) -> object:
    model = IncrementalEncoderForEndingGeneration.from_pretrained(folder)
    with torch.no_grad():
        return model(input_ids=torch.tensor([[[0]]]), decoder_input_ids=torch.tensor([[0]]))


def _split_model(folder: Path) -> None:
    tiny_model().save_pretrained(folder)
    weights = list(load_file(folder / "model.safetensors").items())
    (folder / "model.safetensors").unlink()
    places = {}
    for number, part in enumerate((weights[:5], weights[5:]), start=1):
        name = f"model-{number:05}-of-00002.safetensors"
        save_file(dict(part), folder / name, metadata={"format": "pt"})
        places |= dict.fromkeys((key for key, _ in part), name)
    index = {"metadata": {"total_size": 1000}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _read_tokenizer(folder: Path) -> object:
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(folder)
    inputs = tokenizer("Anna put a cake in the oven. Trick or treat.", return_tensors="pt")
    return tokenizer.batch_decode(inputs["input_ids"][0], context="Anna put a cake in the oven.")


def _write_checkpoint(folder: Path) -> None:
    tensors = {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.zeros(2)}
    state = {"run": RunState(step=3).to_dict(), "recipe": {}, "scaler": {}, "identity": {"seed": 0}}
    save_checkpoint(folder, Checkpoint(3, tensors, {"weight/exp_avg": torch.ones(2)}, state), keep=1)


def _read_checkpoint(folder: Path) -> object:
    return load_checkpoint(folder / "checkpoint-3")


def _sign_checkpoint(folder: Path) -> None:
    """Checksums, as an attacker would write them."""
    path = folder / "checkpoint-3" / "manifest.json"
    names = ("model.safetensors", "optimizer.safetensors", "state.json")
    path.write_text(json.dumps({"files": {name: file_digest(path.with_name(name)) for name in names}}))


def _write_stories(name: str, folder: Path) -> None:
    path = folder / name
    if ".jsonl" in name:
        content = "".join(json.dumps(story, ensure_ascii=False) + "\n" for story in STORIES)
    elif name.endswith(".txt"):
        content = "".join(f"{' '.join(story['context'])} {story['ending']}\n" for story in STORIES)
    elif name == "cloze.csv":
        content = _table(
            ["InputStoryid", *(f"InputSentence{number}" for number in range(1, 5))]
            + ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"],
            [
                ["id", "A b.", "C, d.", 'E "f".', "G.", "H.", "I.", "2"],
                ["id2", "A.", "B.", "C.", "D.", "E.", "F.", "1"],
            ],
        )
    else:
        content = _table(
            ["storyid", "storytitle", *(f"sentence{number}" for number in range(1, 6))],
            [["x", "t", "A b.", "C, d.", 'E "f".', "G\nh.", "Ünd."], ["y", "u", "A.", "B.", "C.", "D.", "E."]],
        )
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())


def _table(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


def _write_pair(folder: Path) -> None:
    (folder / "a.post").write_text("".join("\t".join(story["context"]) + "\n" for story in STORIES), encoding="utf-8")
    (folder / "a.response").write_text("".join(story["ending"] + "\n" for story in STORIES), encoding="utf-8")


def _write_dump(name: str, folder: Path) -> None:
    if name == "compact.txt":
        content = "cook /r/AtLocation kitchen\nfire /r/Causes smoke\n"
    elif name == "phrases.tsv":
        content = "AtLocation\thot soup\tkitchen\nUsedFor\toven\tcook\n"
    else:
        lines = [
            f"/a/[/r/{relation}/,/c/en/{head}/,/c/{language}/{tail}/]\t/r/{relation}\t/c/en/{head}/n\t/c/{language}/{tail}"
            f'\t{{"dataset": "/d/x", "weight": {weight}}}\n'
            for relation, head, language, tail, weight in [
                ("IsA", "cake", "en", "food", 1.0),
                ("UsedFor", "oven", "en", "bake", 2.5),
                ("IsA", "kuchen", "de", "essen", 1),
                ("Causes", "fire", "en", "smoke", 3),
            ]
        ]
        content = "".join(lines)
    (folder / name).write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())


def _read_dump(name: str, folder: Path) -> object:
    return list(read_edges(folder / name, progress=False, report=ReadReport()))


def _write_vectors(name: str, folder: Path) -> None:
    header = "4 3\n" if name == "word2vec.txt" else ""
    content = header + "cake 0.1 -0.2 3e-1\noven 1 2 3\nthe 0 0 0.5\nice cream 1 1 1\n"
    (folder / name).write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())


def _read_vectors(name: str, folder: Path) -> object:
    return load_word_vectors(folder / name, {"cake": 0, "oven": 1, "Oven": 2})


def _write_endings(folder: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        _write_stories(name, folder)
    (folder / "plain.txt").write_text("".join(story["ending"] + "\n" for story in STORIES), encoding="utf-8")


def _read_scored(name: str, folder: Path) -> object:
    return read_endings(folder / name, Dataset.from_list(STORIES))


def _write_study(folder: Path) -> None:
    _write_endings(folder)
    sample = draw_sample(read_systems([folder / "one.jsonl", folder / "two.jsonl"]), num_stories=2, num_annotators=1)
    write_sample(sample, folder / "study")
    sheet = folder / "study" / "sheets" / "sheet_1.csv"
    text = sheet.read_text(encoding="utf-8")
    sheet.write_text(text.replace('"","",""', '"1","2","other"'), encoding="utf-8")


def _read_study(folder: Path) -> object:
    sample = read_key(folder / "study" / "key.json")
    return read_judgements(sample, [folder / "study" / "sheets" / "sheet_1.csv"])


def _write_options(folder: Path) -> None:
    values = {
        "max_steps": 10,
        "system": "ie",
        "learning_rate": 0.01,
        "load_best_model_at_end": False,
        "run_name": "a b",
    }
    (folder / "o.json").write_text(json.dumps(values))
    (folder / "o.yaml").write_text("".join(f"{name}: {value}\n" for name, value in values.items()))


def _read_options(name: str, folder: Path) -> object:
    """The program ends with a message on standard error: here it is the error."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parse_options([str(folder / name)])
    except SystemExit as error:
        raise ValueError(said.getvalue().replace("usage: ", str(folder))) from error


def _write_report(folder: Path) -> None:
    (folder / "report.json").write_text(json.dumps({"fingerprint": "abc", "stories": {"train": {"stories": 3}}}))


def _write_log(folder: Path) -> None:
    events = [{"step": step, "loss": 1.0 / step, "epoch": 0.1} for step in range(1, 4)]
    (folder / "train_log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def _write_coded_model(folder: Path) -> None:
    (folder / "config.json").write_text(
        json.dumps({"library_versions": {"torch": "2"}, "auto_map": {"AutoModel": "a.B"}})
    )
    (folder / "words.py").write_text("x = 1\n")


def _story_target(name: str, read: Callable[[Path], Any], mutations: tuple[Mutation, ...]) -> Target:
    return Target(partial(_write_stories, name), lambda folder: read(folder / name), {name: mutations})


def _saved_dataset(folder: Path) -> None:
    Dataset.from_list(STORIES * 3).save_to_disk(str(folder / "saved"))


ARROW = "saved/data-00000-of-00001.arrow"

TARGETS: dict[str, Target] = {
    "model": Target(
        lambda folder: tiny_model().save_pretrained(folder),
        _read_model,
        {"config.json": JSON, "generation_config.json": JSON, "model.safetensors": TENSORS},
    ),
    "sharded model": Target(_split_model, _read_model, {"model.safetensors.index.json": JSON}),
    "tokenizer": Target(
        lambda folder: tiny_tokenizer().save_pretrained(folder),
        _read_tokenizer,
        {"tokenizer_config.json": JSON, "vocab.json": JSON, "knowledge.json": JSON, "word_forms.json": JSON},
    ),
    "knowledge table": Target(
        lambda folder: tiny_tokenizer().knowledge.save(folder / "knowledge.json"),
        lambda folder: KnowledgeTable.load(folder / "knowledge.json"),
        {"knowledge.json": JSON},
    ),
    "checkpoint": Target(
        _write_checkpoint,
        _read_checkpoint,
        {f"checkpoint-3/{name}": JSON for name in ("manifest.json", "state.json")}
        | {f"checkpoint-3/{name}.safetensors": TENSORS for name in ("model", "optimizer")},
    ),
    "forged checkpoint": Target(
        _write_checkpoint,
        _read_checkpoint,
        {"checkpoint-3/state.json": JSON, "checkpoint-3/model.safetensors": TENSORS},
        mend=_sign_checkpoint,
    ),
    "rocstories": _story_target("roc.csv", read_stories, BLIND),
    "story cloze": _story_target("cloze.csv", read_cloze_questions, BLIND),
    "json lines": _story_target("stories.jsonl", read_stories, JSON),
    "gzipped json lines": _story_target("stories.jsonl.gz", read_stories, GZIP),
    "plain text": _story_target("stories.txt", read_stories, BLIND),
    "post and response": Target(
        _write_pair, lambda folder: read_stories(folder / "a.post"), {"a.post": BLIND, "a.response": BLIND}
    ),
    "saved dataset": Target(
        _saved_dataset,
        lambda folder: load_stories(folder / "saved"),
        {ARROW: (*BLIND, *[huge_word] * 4), "saved/state.json": JSON, "saved/dataset_info.json": JSON},
    ),
    **{
        f"conceptnet {name}": Target(partial(_write_dump, name), partial(_read_dump, name), {name: mutations})
        for name, mutations in [
            ("dump.csv", BLIND),
            ("dump.csv.gz", GZIP),
            ("compact.txt", BLIND),
            ("phrases.tsv", BLIND),
        ]
    },
    **{
        f"vectors {name}": Target(partial(_write_vectors, name), partial(_read_vectors, name), {name: mutations})
        for name, mutations in [("glove.txt", BLIND), ("glove.txt.gz", GZIP), ("word2vec.txt", BLIND)]
    },
    "scored text": Target(_write_endings, partial(_read_scored, "plain.txt"), {"plain.txt": BLIND}),
    "scored json lines": Target(_write_endings, partial(_read_scored, "one.jsonl"), {"one.jsonl": JSON}),
    "endings to annotate": Target(
        _write_endings,
        lambda folder: read_systems([folder / "one.jsonl", folder / "two.jsonl"]),
        {"one.jsonl": JSON, "two.jsonl": JSON},
    ),
    "annotation": Target(
        _write_study, _read_study, {"study/key.json": (*JSON, *STRUCTURED_JSON), "study/sheets/sheet_1.csv": BLIND}
    ),
    "options in yaml": Target(_write_options, partial(_read_options, "o.yaml"), {"o.yaml": BLIND}),
    "options in json": Target(_write_options, partial(_read_options, "o.json"), {"o.json": JSON}),
    "report": Target(_write_report, read_report, {"report.json": JSON}),
    "log": Target(_write_log, lambda folder: TrainingLog(folder, writes=False).truncate(2), {"train_log.jsonl": JSON}),
    "code of a model": Target(_write_coded_model, check_code, {"config.json": JSON, "words.py": BLIND}),
}

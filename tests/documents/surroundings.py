"""What documents take for granted: files called as they call them, small and written here."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from annotation.sheet_rows import rewrite
from documents.markdown_code import ROOT

from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.training import TrainingOptions, train

NUM_TRAIN, NUM_TEST = 40, 30
NAMES, THINGS, PLACES = ("Anna", "Omar", "Lena", "Ben", "Mei"), ("cake", "pie", "bun", "roll", "tart"), range(4)
ROOMS = ("kitchen", "garden", "hall", "attic")
TRIPLES = [("oven", "UsedFor", "bake"), ("cake", "AtLocation", "oven"), ("smoke", "Causes", "alarm")]


def own_stories() -> list[list[str]]:
    """A hundred stories of five sentences."""
    return [
        [
            f"{name} wanted to bake a {thing}.",
            f"{name} put the {thing} in the oven.",
            f"Then {name} fell asleep in the {ROOMS[room]}.",
            "The smoke alarm woke everybody up.",
            f"{name} let the {thing} burn in the {ROOMS[room]}.",
        ]
        for name, thing, room in product(NAMES, THINGS, PLACES)
    ]


def write_raw_files(folder: Path) -> None:
    """Stories, triples, vectors, and endings of other systems."""
    stories = own_stories()
    sentences = [f"sentence{number}" for number in range(1, 6)]
    rows = [[f"id-{number}", "A title", *story] for number, story in enumerate(stories)]
    _write_csv(folder / "rocstories.csv", ["storyid", "storytitle", *sentences], rows)
    context = [f"InputSentence{number}" for number in range(1, 5)]
    quiz = ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
    questions = [[f"id-{number}", *story, "The oven fell asleep.", 1] for number, story in enumerate(stories[:5])]
    _write_csv(folder / "cloze_test_val.csv", ["InputStoryid", *context, *quiz], questions)
    lines = (f'/a/[]\t/r/{name}\t/c/en/{head}\t/c/en/{tail}\t{{"weight": 1.0}}\n' for head, name, tail in TRIPLES)
    (folder / "conceptnet-assertions-5.7.0.csv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    vectors = (" ".join([word, *["0.1", "-0.2"] * 100]) + "\n" for word in ("oven", "cake", "bake", "the"))
    (folder / "glove.6B.200d.txt").write_text("".join(vectors), encoding="utf-8")
    (folder / "theirs.txt").write_text("Everybody ate it anyway.\n" * NUM_TEST, encoding="utf-8")
    _write_records(folder / "ours.jsonl", [{"ending": "Nobody was hungry."}] * NUM_TEST)
    for name in ("ie", "seq2seq"):
        records = [{"context": story[:4], "ending": f"The {name} was burnt."} for story in stories]
        _write_records(folder / f"{name}.jsonl", records * 2)
    (folder / "rocstories").mkdir()
    records = [{"context": story[:4], "ending": story[4]} for story in stories]
    _write_records(folder / "rocstories" / "test.jsonl", records[:NUM_TEST])


def link_scripts(folder: Path) -> None:
    """The source tree that commands are typed in."""
    for path in ROOT.iterdir():
        if path.name.startswith(".") or (folder / path.name).exists():
            continue
        if path.name == "results":
            # Commands write there, too.
            shutil.copytree(path, folder / path.name)
        else:
            (folder / path.name).symlink_to(path)


def write_trained_files(folder: Path) -> None:
    """`prepared` and `my_model`, as preparing and training leave them, and a second model."""
    options = PrepareOptions(
        output_dir=str(folder / "prepared"),
        stories=str(folder / "rocstories.csv"),
        conceptnet=(str(folder / "conceptnet-assertions-5.7.0.csv.gz"),),
        hidden_size=16,
        num_layers=1,
        embedding_size=12,
        num_train=NUM_TRAIN,
    )
    prepare(options)
    settings = {"max_steps": 2, "per_device_train_batch_size": 8, "num_sample_endings": 1, "max_eval_samples": 4}
    train(TrainingOptions(data_dir=str(folder / "prepared"), output_dir=str(folder / "my_model"), **settings))
    for name in ("other_model", "OWNER/NAME"):
        shutil.copytree(folder / "my_model", folder / name)


def score_sheets(folder: Path) -> None:
    """Do what annotators do: the sheets of all studies in a folder get their scores."""

    def fill(rows: list[dict[str, str]]) -> None:
        for number, row in enumerate(rows):
            row |= {"grammar": str(number % 3), "logicality": "1"}

    for sheet in folder.glob("*/sheets/*.csv"):
        rewrite(sheet, fill)


def _write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _write_records(path: Path, records: Sequence[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

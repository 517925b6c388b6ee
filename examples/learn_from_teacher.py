"""
Train a model on endings that a teacher writes, beside those of people.

    python examples/learn_from_teacher.py --teacher smollm2 --stories rocstories/train.jsonl --config student.yaml \\
        --output_dir from_teacher

The teacher is the directory of a causal language model of transformers. It is fine-tuned on the first stories, and
writes an ending for each of those after them; it is used here only. The student is trained with the options of
`storyend train` in the file of `--config`, on the stories of its `data_dir` and those with the teacher's endings. The
result is OUTPUT_DIR/student. Steps take from minutes to hours on one core; the same command goes on after an
interruption. Name the teacher and its licence in the card of the student.
"""

import argparse
import logging
from pathlib import Path

import torch
import yaml
from transformers import TrainingArguments

from hf_storyend.data.stories import load_stories
from hf_storyend.ranking.teacher import tuned_teacher
from hf_storyend.ranking.teacher_endings import save_teacher_endings, save_usable_stories
from hf_storyend.training import TrainingOptions, train


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    stories = load_stories(options.stories, split="train")["train"]
    contexts, endings = stories["context"][:], stories["ending"][:]
    for_teacher = list(zip(contexts, endings, strict=True))[: options.num_teacher_stories]
    for_student = contexts[options.num_teacher_stories :][: options.num_stories]

    written, usable = (options.output_dir / name for name in ("endings.jsonl", "extra_stories.jsonl"))
    teacher, tokenizer = tuned_teacher(
        options.teacher,
        options.output_dir / "teacher",
        for_teacher,
        schedule(options),
        num_frozen_layers=options.num_frozen_layers,
    )
    if options.bf16:
        teacher = teacher.to(torch.bfloat16)
    save_teacher_endings(written, teacher, tokenizer, for_student)
    print(f"{save_usable_stories(written, usable):,} of {len(for_student):,} endings are used.")

    settings = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    student = str(options.output_dir / "student")
    train(TrainingOptions(**{**settings, "extra_stories": str(usable), "output_dir": student}))


def schedule(options: argparse.Namespace) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(options.output_dir / "teacher_run"),
        learning_rate=options.learning_rate,
        lr_scheduler_type="cosine",
        num_train_epochs=1,
        per_device_train_batch_size=32,
        train_sampling_strategy="group_by_length",
        warmup_steps=30,
        bf16=options.bf16,
        save_steps=100,
        save_total_limit=2,
        logging_steps=20,
        remove_unused_columns=False,
        report_to=[],
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="Directory of a causal language model.")
    parser.add_argument("--stories", required=True, help="Training stories.")
    parser.add_argument("--config", type=Path, required=True, help="Options of `storyend train` for the student.")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--num_teacher_stories", type=int, default=12000, help="Stories to fine-tune the teacher on.")
    parser.add_argument("--num_stories", type=int, default=30000, help="Stories that the teacher ends.")
    parser.add_argument("--num_frozen_layers", type=int, default=12, help="Layers of the teacher that stay.")
    parser.add_argument("--learning_rate", type=float, default=4e-4, help="Of the teacher.")
    parser.add_argument("--bf16", action="store_true", help="Teach and write in bfloat16.")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

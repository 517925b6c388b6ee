"""
Train an ending ranker for a model, from candidates of the model that a teacher scores.

    python examples/train_ranker.py --teacher smollm2 --stories rocstories/train.jsonl --output_dir ranker

The teacher is the directory of a causal language model of transformers. It is fine-tuned on the first stories, and
scores candidates for those after them; it is used here only. The result, OUTPUT_DIR/model, is the model with its
ranker. Each step takes hours on one core at its default size; the same command goes on after an interruption.
"""

import argparse
import logging
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments

import hf_storyend
from hf_storyend.data.stories import load_stories
from hf_storyend.ranking.candidates import read_lines, save_candidates
from hf_storyend.ranking.teacher import fine_tune_teacher, save_scores
from hf_storyend.ranking.training import ScoredStory, add_ranker, train_ranker, with_neighbours


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    train = load_stories(options.stories, split="train")["train"]
    stories = list(zip(train["context"], train["ending"], strict=True))
    for_teacher = stories[: options.num_teacher_stories]
    for_ranker = stories[options.num_teacher_stories :][: options.num_stories]

    model, tokenizer = hf_storyend.load(options.model)
    candidates, scores = options.output_dir / "candidates.jsonl", options.output_dir / "scores.jsonl"
    save_candidates(candidates, model, tokenizer, [context for context, _ in for_ranker])
    teacher, teacher_tokenizer = fine_tuned(options, for_teacher)
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        save_scores(scores, candidates, teacher.eval(), teacher_tokenizer, for_ranker)

    scored = [
        ScoredStory(context, line["endings"][:-1], line["teacher_scores"][:-1], human)
        for line, (context, human) in zip(read_lines(scores), for_ranker, strict=True)
    ]
    add_ranker(model, ranker_size=options.ranker_size, num_ranker_layers=options.num_ranker_layers)
    settings = {"learning_rate": options.learning_rate, "num_train_epochs": options.num_train_epochs}
    train_ranker(model, tokenizer, with_neighbours(scored), training(options.output_dir / "ranker", **settings))
    model.save_pretrained(options.output_dir / "model")
    tokenizer.save_pretrained(options.output_dir / "model")


def fine_tuned(options: argparse.Namespace, stories: list) -> tuple:
    done = options.output_dir / "teacher"
    source = done if done.is_dir() else options.teacher
    teacher = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(options.teacher)
    if source == options.teacher:
        settings = {"learning_rate": 2e-4, "num_train_epochs": 1, "bf16": options.bf16}
        fine_tune_teacher(teacher, tokenizer, stories, training(options.output_dir / "teacher_run", **settings))
        teacher.save_pretrained(done)
    return teacher, tokenizer


def training(output_dir: Path, **settings) -> TrainingArguments:
    schedule = {"lr_scheduler_type": "cosine", "warmup_steps": 50, "save_steps": 100, "save_total_limit": 2}
    return TrainingArguments(
        output_dir=str(output_dir),
        per_device_train_batch_size=16,
        remove_unused_columns=False,
        report_to=[],
        logging_steps=20,
        **{**schedule, **settings},
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="Model that writes the candidates; default: the package's.")
    parser.add_argument("--teacher", type=Path, required=True, help="Directory of a causal language model.")
    parser.add_argument("--stories", required=True, help="Training stories.")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--num_teacher_stories", type=int, default=4400, help="Stories to fine-tune the teacher on.")
    parser.add_argument("--num_stories", type=int, default=10000, help="Stories to train the ranker on.")
    parser.add_argument("--ranker_size", type=int, default=256)
    parser.add_argument("--num_ranker_layers", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--num_train_epochs", type=float, default=4)
    parser.add_argument("--bf16", action="store_true", help="Fine-tune and score in bfloat16.")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

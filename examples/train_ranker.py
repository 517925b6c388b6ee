"""
Train an ending ranker for a model, from endings of people and from candidates of the model that a teacher scores.

    python examples/train_ranker.py --teacher smollm2 --encoder minilm --stories rocstories/train.jsonl \\
        --output_dir ranker

The teacher is the directory of a causal language model of transformers. It is fine-tuned on the first stories, and
scores candidates for those after them; it is used here only. The ranker starts from an encoder of BERT's architecture,
if one is given, and learns to tell human endings from wrong ones, then to choose as the teacher does. The result,
OUTPUT_DIR/model, is the model with its ranker. Steps take from minutes to hours on one core; the same command goes on
after an interruption.
"""

import argparse
import logging
from pathlib import Path

import torch
from transformers import TrainingArguments

import hf_storyend
from hf_storyend.data.stories import load_stories
from hf_storyend.ranking.candidates import read_lines, save_candidates
from hf_storyend.ranking.pretrained_encoder import start_from_encoder
from hf_storyend.ranking.teacher import save_scores, tuned_teacher
from hf_storyend.ranking.training import ScoredStory, add_ranker, train_ranker, with_wrong_endings

# Those of MiniLM, but for the number of layers and the word vectors.
SIZES = {"ranker_size": 384, "ranker_embedding_size": 128, "num_ranker_layers": 4, "num_ranker_heads": 12}


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
    settings = {"learning_rate": 2e-4, "num_train_epochs": 1, "bf16": options.bf16}
    schedule = training(options.output_dir / "teacher_run", **settings)
    teacher, teacher_tokenizer = tuned_teacher(options.teacher, options.output_dir / "teacher", for_teacher, schedule)
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        save_scores(scores, candidates, teacher, teacher_tokenizer, for_ranker)

    add_ranker(model, **{name: getattr(options, name) for name in SIZES})
    if options.encoder is not None:
        start_from_encoder(model.ranker, tokenizer, options.encoder)
    human = [ScoredStory(context, [], [], ending) for context, ending in stories[: options.num_contrast_stories]]
    scored = [
        ScoredStory(context, line["endings"][:-1], line["teacher_scores"][:-1], ending)
        for line, (context, ending) in zip(read_lines(scores), for_ranker, strict=True)
    ]
    for name, part, epochs in (("contrast", human, 1), ("choice", scored, options.num_train_epochs)):
        settings = {"learning_rate": options.learning_rate, "num_train_epochs": epochs, "bf16": options.bf16}
        train_ranker(model, tokenizer, with_wrong_endings(part), training(options.output_dir / name, **settings))
    model.save_pretrained(options.output_dir / "model")
    tokenizer.save_pretrained(options.output_dir / "model")


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
    parser.add_argument("--encoder", type=Path, help="Directory of an encoder to start from; default: random weights.")
    parser.add_argument("--num_contrast_stories", type=int, default=60000, help="Stories for the first part.")
    for name, value in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--num_train_epochs", type=float, default=4)
    parser.add_argument("--bf16", action="store_true", help="Train and score in bfloat16.")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

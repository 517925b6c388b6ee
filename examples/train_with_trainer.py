"""
Train with transformers' own `Seq2SeqTrainer`, for existing training pipelines.

    python examples/train_with_trainer.py --output_dir my_model --num_train_epochs 5
    python examples/train_with_trainer.py --data_dir prepared --output_dir my_model --max_steps 1000

All options of `Seq2SeqTrainingArguments` work. `examples/train.py` adds bit-exact resuming, batches grouped by length
and a loss that does not depend on the number of processes.
"""

from dataclasses import dataclass, field

from transformers import HfArgumentParser, Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_storyend.data import StoryCollator
from hf_storyend.evaluation import score_endings
from hf_storyend.training import TrainingOptions, build_model, load_training_data


@dataclass
class StoryArguments:
    """Options that the Trainer does not have."""

    data_dir: str | None = field(
        default=None, metadata={"help": "Directory written by `storyend prepare`; default: the embedded stories."}
    )
    system: str = field(default="ie-msa-ca", metadata={"help": "`storyend systems` lists them."})


@dataclass
class EndingArguments(Seq2SeqTrainingArguments):
    """The Trainer's arguments with defaults for the embedded stories."""

    output_dir: str = "trained_with_trainer"
    learning_rate: float = 2e-3
    max_grad_norm: float = 5.0
    per_device_train_batch_size: int = 32
    per_device_eval_batch_size: int = 64
    predict_with_generate: bool = True
    eval_strategy: str = "epoch"
    report_to: str = "none"


def main() -> None:
    parser = HfArgumentParser((StoryArguments, EndingArguments), description=__doc__.strip().splitlines()[0])
    chosen, arguments = parser.parse_args_into_dataclasses()
    options = TrainingOptions(data_dir=chosen.data_dir, system=chosen.system, seed=arguments.seed)
    data = load_training_data(options)
    stories, tokenised = data.validation

    def bleu(prediction) -> dict[str, float]:
        ids = prediction.predictions
        ids[ids < 0] = data.tokenizer.pad_token_id
        endings = data.tokenizer.batch_decode(ids, skip_special_tokens=True, context=stories["context"])
        metrics = score_endings(stories, endings, tokenizer=data.tokenizer).metrics
        return {name: metrics[name] for name in ("bleu_1", "bleu_2", "distinct_2")}

    trainer = Seq2SeqTrainer(
        build_model(options, data),
        arguments,
        data_collator=StoryCollator(data.tokenizer),
        train_dataset=data.tokenised["train"].remove_columns("length"),
        eval_dataset=tokenised.remove_columns("length"),
        processing_class=data.tokenizer,
        compute_metrics=bleu,
    )
    trainer.train()
    print(trainer.evaluate())
    trainer.save_model()


if __name__ == "__main__":
    main()

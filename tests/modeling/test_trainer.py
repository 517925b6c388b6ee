"""Training by transformers' Trainer and Seq2SeqTrainer, as they are."""

import copy

import torch
from datasets import Dataset
from transformers import (
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

from hf_storyend import IncrementalEncoderTokenizer

STORIES = {
    "story": ["Anna put a cake in the oven. They watched a long film.", "Tom opened the window. They saw smoke."] * 4,
    "ending": ["The cake was burnt.", "The kitchen was full of smoke."] * 4,
}


def tokenised(tokenizer) -> Dataset:
    def read(rows):
        return tokenizer(rows["story"], text_target=rows["ending"], return_triples=False)

    return Dataset.from_dict(STORIES).map(read, batched=True, remove_columns=["story", "ending"])


def test_trainer_as_it_is(tokenizer, model, tmp_path):
    dataset = tokenised(tokenizer)
    arguments = TrainingArguments(
        str(tmp_path), max_steps=120, learning_rate=0.02, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        use_cpu=True, report_to=[], save_steps=120, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=dataset, eval_dataset=dataset, processing_class=tokenizer)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < before / 5
    predictions = trainer.predict(dataset).predictions
    assert predictions.shape[0] == 8 and predictions.shape[2] == model.config.vocab_size
    # The checkpoint is complete: code, tokenizer and knowledge are in it.
    checkpoint = tmp_path / "checkpoint-120"
    assert {"knowledge.json", "vocab.json", "modeling_incremental_encoder.py"} <= {
        p.name for p in checkpoint.iterdir()
    }
    assert type(AutoTokenizer.from_pretrained(checkpoint)) is IncrementalEncoderTokenizer


def test_seq2seq_trainer_generates(tokenizer, model, tmp_path):
    dataset, seen = tokenised(tokenizer), []

    def compute_metrics(prediction):
        words = prediction.predictions.clip(min=0)
        seen.extend(tokenizer.batch_decode(words, skip_special_tokens=True))
        return {"rows": len(words)}

    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), max_steps=150, learning_rate=0.02, per_device_train_batch_size=8, predict_with_generate=True,
        use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, generation_max_length=20,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        model,
        arguments,
        train_dataset=dataset,
        eval_dataset=dataset,
        processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    assert trainer.evaluate()["eval_rows"] == 8
    assert set(seen) == set(STORIES["ending"])


def test_accumulated_gradients_weigh_words_and_not_batches(tokenizer, model, tmp_path):
    """One update from 8 stories, at once or 2 at a time: the endings of the batches have different lengths."""
    endings = [
        "The cake was burnt.",
        "The kitchen was full of smoke.",
        "Tom asked.",
        "They saw the long film on Friday.",
    ]
    rows = {"story": STORIES["story"], "ending": endings * 2}

    def read(batch):
        return tokenizer(batch["story"], text_target=batch["ending"], return_triples=False)

    dataset = Dataset.from_dict(rows).map(read, batched=True, remove_columns=["story", "ending"])
    weights = []
    for batch_size, steps in ((8, 1), (2, 4)):
        arguments = TrainingArguments(
            str(tmp_path), max_steps=1, learning_rate=1.0, per_device_train_batch_size=batch_size, optim="sgd",
            gradient_accumulation_steps=steps, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True,
            max_grad_norm=0.0, lr_scheduler_type="constant",
        )  # fmt: skip
        trained = copy.deepcopy(model)
        Trainer(trained, arguments, train_dataset=dataset, processing_class=tokenizer).train()
        weights.append(trained.state_dict())
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], rtol=1e-4, atol=1e-6, msg=name)
    assert not torch.equal(weights[0]["lm_head.weight"], model.lm_head.weight)

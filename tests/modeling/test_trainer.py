"""Training by transformers' Trainer and Seq2SeqTrainer, as they are."""

import copy
import math

import pytest
import torch
from datasets import Dataset
from small_model import small_model
from transformers import (
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)
from transformers.trainer_pt_utils import LabelSmoother

from hf_storyend import IncrementalEncoderTokenizer
from hf_storyend.evaluation import ending_metrics, label_log_likelihoods

STORIES = {
    "story": ["Anna put a cake in the oven. They watched a long film.", "Tom opened the window. They saw smoke."] * 4,
    "ending": ["The cake was burnt.", "The kitchen was full of smoke."] * 4,
}


def tokenised(tokenizer, stories=STORIES) -> Dataset:
    def read(rows):
        return tokenizer(rows["story"], text_target=rows["ending"], return_triples=False)

    return Dataset.from_dict(stories).map(read, batched=True, remove_columns=["story", "ending"])


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
    dataset = tokenised(tokenizer, {"story": STORIES["story"], "ending": endings * 2})
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


NAMES = {
    "story": [
        "Quentin put a cake in the oven. They saw Zorbl.",
        "McDuff asked. They watched a long film.",
        "They saw.",
    ],
    "ending": ["Then Quentin was burnt.", "The kitchen was full of smoke.", "They saw Ludmila."],
}


@torch.no_grad()
def smoothed_loss(model, batch, factor, with_encoder):
    """Label smoothing as it is defined, with slots of no word at -40; and the encoder's part."""
    output = model(**batch)
    log_probabilities = output.logits.log_softmax(dim=-1).clamp(min=-40)
    is_real = batch["labels"] != -100
    of_labels = log_probabilities.gather(2, batch["labels"].clamp(min=0).unsqueeze(2)).squeeze(2)
    loss = -((1 - factor) * of_labels + factor * log_probabilities.mean(dim=2))[is_real].mean()
    return float(loss + (output.loss - output.ending_loss if with_encoder else 0.0))


@pytest.mark.parametrize("system", ["ie-msa-ga", "ie-msa-ga-copy", "ie-copy-tails", "hlstm", "seq2seq"])
def test_label_smoothing(system, tokenizer, tmp_path):
    """The loss of transformers' own smoother, in training with the encoder's supervision and in evaluation without."""
    model = small_model(system, tokenizer)
    dataset = tokenised(tokenizer, NAMES)
    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), max_steps=1, learning_rate=0.0, per_device_train_batch_size=3, per_device_eval_batch_size=3,
        label_smoothing_factor=0.1, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    collate = DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Seq2SeqTrainer(
        model, arguments, train_dataset=dataset, eval_dataset=dataset, processing_class=tokenizer,
        data_collator=collate,
    )  # fmt: skip
    batch = collate([{**row} for row in dataset])
    in_training, in_evaluation = (smoothed_loss(model, batch, 0.1, flag) for flag in (True, False))
    trainer.train()
    # In training, the padding symbol carries the encoder's loss: one of some fifty columns of a tenth.
    assert trainer.state.log_history[0]["loss"] == pytest.approx(in_training, abs=0.1 * 8 / len(tokenizer))
    assert trainer.evaluate()["eval_loss"] == pytest.approx(in_evaluation, rel=1e-4)
    arguments.predict_with_generate = True
    assert trainer.evaluate()["eval_loss"] == pytest.approx(in_evaluation, rel=1e-4)


@pytest.mark.parametrize("system", ["ie-msa-ga", "ie-msa-ga-copy", "hlstm"])
def test_a_loss_of_the_caller_has_the_gradients_of_the_models_own(system, tokenizer):
    """Smoothing by nothing: what `Trainer` computes from logits is what `forward` computes from labels."""
    model = small_model(system, tokenizer).train()
    batch = DataCollatorForSeq2Seq(tokenizer, model=model)([{**row} for row in tokenised(tokenizer, NAMES)])
    labels = batch.pop("labels")
    num_words = int((labels != -100).sum())
    model(**batch, labels=labels).loss.backward()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    output = model(**batch, num_items_in_batch=num_words)
    LabelSmoother(epsilon=0.0)(output, labels).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-3, atol=1e-5, msg=name)


def test_without_a_collator_for_decoders_smoothing_says_what_is_missing(tokenizer, model, tmp_path):
    arguments = TrainingArguments(str(tmp_path), max_steps=1, label_smoothing_factor=0.1, use_cpu=True, report_to=[])
    trainer = Trainer(model, arguments, train_dataset=tokenised(tokenizer), processing_class=tokenizer)
    with pytest.raises(ValueError, match="DataCollatorForSeq2Seq"):
        trainer.train()


@pytest.mark.parametrize("system", ["ie-msa-ga", "ie-msa-ga-copy", "ie-copy-tails", "hlstm", "seq2seq"])
def test_neftune(system, tokenizer, tmp_path):
    """Noise changes the loss of training, and no embedding keeps it."""
    losses = []
    for alpha in (None, 50.0):
        model = small_model(system, tokenizer)
        arguments = TrainingArguments(
            str(tmp_path), max_steps=1, learning_rate=0.0, per_device_train_batch_size=3, neftune_noise_alpha=alpha,
            use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=tokenised(tokenizer, NAMES), processing_class=tokenizer)
        trainer.train()
        losses.append(trainer.state.log_history[0]["loss"])
        assert not model.get_input_embeddings()._forward_hooks
    assert losses[0] != losses[1] and losses[1] == losses[1]


def test_gradient_checkpointing_is_refused(tokenizer, model, tmp_path):
    arguments = TrainingArguments(str(tmp_path), max_steps=1, gradient_checkpointing=True, use_cpu=True, report_to=[])
    trainer = Trainer(model, arguments, train_dataset=tokenised(tokenizer), processing_class=tokenizer)
    with pytest.raises(ValueError, match="Gradient checkpointing is not supported"):
        trainer.train()


@pytest.mark.parametrize("system", ["ie-msa-ga", "ie-copy-tails", "hlstm-copy"])
def test_the_loss_of_endings_and_perplexity_are_reported_beside_the_objective(system, tokenizer, tmp_path):
    """In batches of two stories, which have other numbers of words than the whole."""
    model, dataset = small_model(system, tokenizer), tokenised(tokenizer, NAMES)
    arguments = Seq2SeqTrainingArguments(str(tmp_path), per_device_eval_batch_size=2, use_cpu=True, report_to=[])
    trainer = Seq2SeqTrainer(
        model, arguments, eval_dataset=dataset, processing_class=tokenizer, compute_metrics=ending_metrics,
        preprocess_logits_for_metrics=label_log_likelihoods,
    )  # fmt: skip
    told = trainer.evaluate()
    with torch.no_grad():
        whole = model(**tokenizer.pad([{**row} for row in dataset], return_tensors="pt"))
    assert told["eval_ending_loss"] == pytest.approx(float(whole.ending_loss), rel=1e-4)
    assert told["eval_perplexity"] == pytest.approx(math.exp(whole.ending_loss), rel=1e-3)
    assert (told["eval_loss"] > told["eval_ending_loss"] * 1.1) == system.startswith("ie")
    arguments.predict_with_generate = True
    with pytest.raises(ValueError, match="`predict_with_generate=True` replaces them"):
        trainer.evaluate()

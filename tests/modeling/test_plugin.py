"""An ordinary citizen of transformers: saving, loading, precision, devices, resizing, compiling, training."""

import json

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from story_cases import KNOWLEDGE, as_tensors, context_of, random_stories, tiny_config, tiny_model
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

both = pytest.mark.parametrize("knowledge", KNOWLEDGE)


@both
def test_saved_and_loaded_it_is_the_same(knowledge, tmp_path):
    model, batch = tiny_model(torch.float32, knowledge=knowledge), as_tensors(random_stories(0))
    model.generation_config.num_beams = 3
    model.save_pretrained(tmp_path)
    assert load_file(tmp_path / "model.safetensors").keys() == model.state_dict().keys()
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM, IncrementalEncoderForEndingGeneration):
        loaded = auto_class.from_pretrained(tmp_path)
        assert type(loaded) is IncrementalEncoderForEndingGeneration
        assert loaded.config.to_diff_dict() == model.config.to_diff_dict()
        assert loaded.generation_config.num_beams == 3
        assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in loaded.state_dict().items())
        # Weights in a mapped file lie at other addresses, for which a product may be summed in another order.
        torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-6)
    assert type(AutoConfig.from_pretrained(tmp_path)) is IncrementalEncoderConfig


def test_a_missing_weight_is_initialised(tmp_path):
    """As when a system gains a part that the checkpoint does not have: no uninitialised memory."""
    tiny_model(torch.float32, knowledge=None).save_pretrained(tmp_path)
    config = tiny_config(knowledge="contextual_attention")
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(
        tmp_path, config=config, ignore_mismatched_sizes=True
    )
    assert all(parameter.isfinite().all() and parameter.abs().max() < 10 for parameter in loaded.parameters())
    assert loaded.encoder.knowledge.forward_reader.weight_ih.std() > 0


def test_initial_weights():
    model = tiny_model()
    size = model.config.hidden_size
    forget = [model.encoder.lstm.word_gates.bias, model.encoder.lstm.step_gates[1].bias]
    for bias in forget:
        assert (bias[size : 2 * size] == 1).all() and bias.sum() == size
    assert model.lm_head.bias.abs().max() == 0
    assert model.encoder.embed_tokens.weight.std().item() == pytest.approx(1.0, rel=0.2)
    assert all(parameter.std() > 0 for name, parameter in model.named_parameters() if "bias" not in name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_kept(dtype, tmp_path):
    tiny_model(torch.float32).to(dtype).save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.dtype == dtype
    assert AutoModel.from_pretrained(tmp_path, dtype=torch.float32).dtype == torch.float32
    words = loaded.generate(**context_of(as_tensors(random_stories(0))), num_beams=2, max_new_tokens=4)
    assert words.shape[0] == 3


@pytest.mark.parametrize("device_map", ["auto", "cpu", {"": "cpu"}, {"encoder": "cpu", "lm_head": "cpu"}])
def test_device_map(device_map, tmp_path):
    model, batch = tiny_model(torch.float32), as_tensors(random_stories(0))
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path, device_map=device_map)
    torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-6)
    expected = model.generate(**context_of(batch), max_new_tokens=5)
    assert torch.equal(loaded.generate(**context_of(batch), max_new_tokens=5), expected)


def test_meta_device():
    with torch.device("meta"):
        model = IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig())
    assert all(parameter.is_meta for parameter in model.parameters())
    batch = {name: tensor.to("meta") for name, tensor in as_tensors(random_stories(0)).items()}
    assert model(**context_of(batch), decoder_input_ids=batch["labels"]).logits.shape[-1] == 10_000


@both
def test_the_size_of_the_paper(knowledge):
    with torch.device("meta"):
        model = IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig(knowledge=knowledge))
    words, relations, embedding, hidden = 10_000, 45, 200, 512
    lstm = 4 * hidden * (embedding + hidden + hidden + 1) + 4 * hidden * (2 * hidden + 1)
    graph = 0 if knowledge is None else 2 * embedding
    attention = hidden * hidden + hidden * graph + hidden * (hidden + graph) + hidden
    graph_attention = 3 * embedding**2
    contextual_attention = 2 * 3 * embedding * (embedding + embedding + 2) + hidden * graph
    encoder = {None: 0, "graph_attention": graph_attention, "contextual_attention": contextual_attention}[knowledge]
    encoder += relations * embedding if knowledge else 0
    expected = words * embedding + lstm + attention + encoder + words * (hidden + 1)
    assert model.num_parameters() == expected


def test_resizing_the_vocabulary():
    model, batch = tiny_model(torch.float32), as_tensors(random_stories(0))
    before = model(**batch).logits
    model.resize_token_embeddings(30)
    assert model.config.vocab_size == 30
    assert model.get_input_embeddings().num_embeddings == model.get_output_embeddings().out_features == 30
    after = model(**batch).logits
    torch.testing.assert_close(after[..., : before.shape[-1]], before)
    batch["input_ids"][0, 0, 0] = 29
    model(**batch)


def test_tied_word_vectors(tmp_path):
    model = tiny_model(torch.float32, embedding_size=7, tie_word_embeddings=True)
    assert model.lm_head.weight is model.encoder.embed_tokens.weight
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.lm_head.weight is loaded.encoder.embed_tokens.weight
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)
    assert tiny_model(embedding_size=7).lm_head.weight is not tiny_model(embedding_size=7).encoder.embed_tokens.weight


@both
def test_forward_compiles_as_one_graph(knowledge):
    stories = random_stories(2, num_stories=2, max_sentences=2, max_words=2, max_ending=2)
    model, batch = tiny_model(knowledge=knowledge), as_tensors(stories)
    expected = model(**batch)
    expected.loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    torch.compiler.reset()
    # aot_eager traces forward and backward as inductor would, without needing a C++ compiler.
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    output = compiled(**batch, use_cache=False)
    torch.testing.assert_close(output.loss, expected.loss)
    output.loss.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name])


def test_outputs_as_tuple_and_by_name():
    model, batch = tiny_model(), as_tensors(random_stories(0))
    named = model(**batch, output_attentions=True, output_hidden_states=True)
    plain = model(**batch, output_attentions=True, output_hidden_states=True, return_dict=False)
    assert torch.equal(plain[0], named.loss) and torch.equal(plain[1], named.logits)
    assert len(plain) == len(named.to_tuple())
    assert len(named.decoder_hidden_states) == 3 and len(named.encoder_hidden_states) == 3
    bare = model(**batch)
    assert bare.encoder_attentions is None and bare.state_attentions is None and bare.triple_attentions is None
    assert model(**batch, use_cache=False).past_key_values is None


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


def test_the_saved_configuration_names_the_code(tmp_path, model):
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["auto_map"] == {
        "AutoConfig": "configuration_incremental_encoder.IncrementalEncoderConfig",
        "AutoModel": "modeling_incremental_encoder.IncrementalEncoderForEndingGeneration",
        "AutoModelForSeq2SeqLM": "modeling_incremental_encoder.IncrementalEncoderForEndingGeneration",
    }

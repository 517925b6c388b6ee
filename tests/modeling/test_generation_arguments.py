"""Arguments of `generate()` that generic code gives: each works as in any model, or is refused in one line."""

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    SynthIDTextWatermarkingConfig,
    WatermarkDetector,
    WatermarkingConfig,
)

import hf_storyend
from hf_storyend.pretrained import EXAMPLE_STORIES

STORIES = [EXAMPLE_STORIES[0], "Zorblax bought a car. The car of Zorblax made a strange noise."]


@pytest.fixture(scope="module")
def loaded():
    hf_storyend.register()
    folder = hf_storyend.default_model()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return AutoModelForSeq2SeqLM.from_pretrained(folder), tokenizer, tokenizer(STORIES, return_tensors="pt")


@pytest.mark.parametrize("num_beams", [1, 3])
def test_logits_and_transition_scores(loaded, num_beams):
    """Logits that are asked for score an ending as the model itself does, words out of the vocabulary included."""
    model, tokenizer, inputs = loaded
    name = int(inputs["copy_ids"][1][inputs["copy_ids"][1] >= len(tokenizer)][0])
    output = model.generate(
        **inputs, num_beams=num_beams, output_logits=True, output_scores=True, return_dict_in_generate=True,
        decoder_input_ids=torch.tensor([[2, 50], [2, name]]), max_new_tokens=6, min_new_tokens=6,
    )  # fmt: skip
    assert (output.sequences[1] == name).any() and len(output.logits) == len(output.scores) == 6
    indices = output.beam_indices if num_beams > 1 else None
    steps = model.compute_transition_scores(output.sequences, output.logits, indices, normalize_logits=True)
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=output.sequences[:, :-1]).logits[:, -6:]
    columns = model.output_columns(output.sequences)[:, -6:]
    expected = logits.log_softmax(dim=2).gather(2, columns.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(steps, expected, rtol=1e-4, atol=1e-4)


def test_only_allowed_words_are_written_copied_ones_included(loaded):
    model, tokenizer, inputs = loaded
    inputs = tokenizer(STORIES[1], return_tensors="pt")
    name = int(inputs["copy_ids"].max())
    allowed = {0: ["she", "he"], 1: [name], 2: [tokenizer.eos_token_id]}
    seen = []

    def words_after(row, ids):
        seen.append(ids.tolist())
        return [tokenizer.convert_tokens_to_ids(w) if isinstance(w, str) else w for w in allowed[len(ids) - 1]]

    for num_beams in (1, 2):
        ids = model.generate(**inputs, prefix_allowed_tokens_fn=words_after, num_beams=num_beams, max_new_tokens=3)
        assert tokenizer.decode(ids[0], skip_special_tokens=True) in ("He Zorblax", "She Zorblax")
    assert any(name in ids for ids in seen), "the function sees ids that spell the word"


@pytest.mark.parametrize("scheme", ["lefthash", pytest.param("selfhash", marks=pytest.mark.slow)])
def test_watermarks_are_detected(loaded, scheme):
    model, _, inputs = loaded
    config = WatermarkingConfig(bias=4.0, seeding_scheme=scheme)
    length = {"max_new_tokens": 20, "min_new_tokens": 20}
    marked = model.generate(**inputs, **length, watermarking_config=config, do_sample=False)
    plain = model.generate(**inputs, **length, do_sample=False)
    detector = WatermarkDetector(model_config=model.config, device="cpu", watermarking_config=config)
    scores = [detector(model.output_columns(ids), return_dict=True).z_score for ids in (marked, plain)]
    assert (scores[0] > 3).all() and (scores[0] > scores[1]).all()


@pytest.mark.slow
def test_synthid_watermarks_are_in_the_words(loaded):
    """Words are chosen whose g-values are high: their mean is that of a coin unless the ending is marked."""
    model, _, inputs = loaded
    config = SynthIDTextWatermarkingConfig(keys=[654, 400, 836, 123, 340, 443, 597, 160], ngram_len=3)
    settings = {"do_sample": True, "num_return_sequences": 10, "max_new_tokens": 30, "min_new_tokens": 30}
    processor = config.construct_processor(model.config.vocab_size, "cpu")
    means = []
    for given in ({"watermarking_config": config}, {}):
        torch.manual_seed(0)
        ids = model.generate(**inputs, **settings, **given)[:, 1:]
        means.append(processor.compute_g_values(model.output_columns(ids)).float().mean().item())
    assert means[0] > means[1] + 0.02 and abs(means[1] - 0.5) < 0.02


def test_a_function_as_custom_generate(loaded):
    """It gets what transformers' own decoding methods get: an encoded story and columns of the logits."""
    model, tokenizer, inputs = loaded

    def write_the_name(model, input_ids, logits_processor, stopping_criteria, generation_config, **kwargs):
        assert kwargs["encoder_outputs"].state_hidden.shape[0] == len(input_ids)
        step = model(**model.prepare_inputs_for_generation(input_ids, **kwargs)).logits[:, -1]
        assert step.shape == (len(input_ids), model.config.num_output_words)
        slot = torch.full((len(input_ids), 1), model.config.vocab_size)
        return torch.cat((input_ids, slot, logits_processor(input_ids, step).argmax(dim=1, keepdim=True)), dim=1)

    ids = model.generate(**inputs, custom_generate=write_the_name)
    assert tokenizer.decode(ids[1], skip_special_tokens=True).startswith("Zorblax")


CUSTOM_METHOD = """
def generate(model, generation_config=None, custom_generate=None, words=2, **kwargs):
    return model.generate(generation_config=generation_config, **{**kwargs, "max_new_tokens": words})
"""


def test_a_folder_as_custom_generate(loaded, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    (tmp_path / "method" / "custom_generate").mkdir(parents=True)
    (tmp_path / "method" / "custom_generate" / "generate.py").write_text(CUSTOM_METHOD)
    model, tokenizer, inputs = loaded
    slot = model.config.vocab_size
    # The ids that the inner call returns spell the copied word already.
    settings = {"sequence_bias": [[[slot], 100.0]]}
    expected = model.generate(**inputs, **settings, max_new_tokens=3)
    assert tokenizer.decode(expected[1], skip_special_tokens=True) == "Zorblax Zorblax Zorblax"
    method = {"custom_generate": str(tmp_path / "method"), "trust_remote_code": True}
    assert torch.equal(model.generate(**inputs, **settings, **method, words=3), expected)
    with pytest.raises(ValueError, match="trust_remote_code"):
        model.generate(**inputs, custom_generate=str(tmp_path / "method"))


@pytest.mark.parametrize("in_config", [False, True])
def test_max_length_of_the_caller_wins_over_what_the_model_was_saved_with(loaded, in_config):
    model, _, inputs = loaded
    assert model.generation_config.max_new_tokens == 30
    config = GenerationConfig(max_length=5, min_length=5)
    given = {"generation_config": config} if in_config else {"max_length": 5, "min_length": 5}
    assert model.generate(**inputs, **given).shape == (2, 5)
    prompt = torch.tensor([[2, 50], [2, 60]])
    assert model.generate(**inputs, **given, decoder_input_ids=prompt).shape == (2, 5)
    assert config.max_length == 5 and config.max_new_tokens is None
    both = model.generate(**inputs, max_length=5, max_new_tokens=7, min_new_tokens=7)
    assert both.shape == (2, 8), "as transformers says"


UNSUPPORTED = {
    "guidance_scale": 1.5,
    "negative_prompt_ids": torch.tensor([[5]]),
    "encoder_repetition_penalty": 1.5,
    "encoder_no_repeat_ngram_size": 2,
    "token_healing": True,
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_can_not_work_is_refused_in_one_line(loaded, name):
    model, tokenizer, inputs = loaded
    value = UNSUPPORTED[name]
    with pytest.raises(ValueError, match=f"^`{name}` is not supported: [^\n]+$"):
        model.generate(**inputs, **{name: value}, tokenizer=tokenizer)
    if name != "negative_prompt_ids":
        with pytest.raises(ValueError, match=f"^`{name}` is not supported"):
            model.generate(**inputs, generation_config=GenerationConfig(**{name: value}))


def test_values_that_change_nothing_are_accepted(loaded):
    model, _, inputs = loaded
    neutral = {"guidance_scale": 1.0, "negative_prompt_ids": None, "encoder_no_repeat_ngram_size": 0}
    assert np.array_equal(model.generate(**inputs, **neutral), model.generate(**inputs))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"assistant_model": True}, "assisted generation is not supported with stateful models"),
        ({"prompt_lookup_num_tokens": 2}, "assisted generation is not supported with stateful models"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "requires `trust_remote_code=True`"),
        ({"dola_layers": "high"}, "requires `trust_remote_code=True`"),
        ({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5}, "requires `trust_remote_code=True`"),
        ({"num_beams": 3, "force_words_ids": [[50]]}, "requires `trust_remote_code=True`"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_methods_that_transformers_refuses_or_keeps_elsewhere(loaded, settings, match):
    model, _, inputs = loaded
    settings = {**settings, "assistant_model": model} if "assistant_model" in settings else settings
    with pytest.raises(ValueError, match=match):
        model.generate(**inputs, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"typical_p": 0.5}, {"epsilon_cutoff": 0.01}, {"eta_cutoff": 0.01}, {"min_p": 0.1}, {"top_h": 0.4},
        {"temperature": 0.5, "top_k": 5, "top_p": 0.8}, {"renormalize_logits": True}, {"remove_invalid_values": True},
    ],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_every_warper_keeps_sampling_to_words(loaded, settings):
    model, tokenizer, inputs = loaded
    torch.manual_seed(0)
    ids = model.generate(**inputs, do_sample=True, num_return_sequences=3, max_new_tokens=6, **settings)
    assert ids.shape[0] == 6 and "<unk>" not in "".join(tokenizer.batch_decode(ids))


def test_forced_biased_and_suppressed_words(loaded):
    model, tokenizer, inputs = loaded
    word, end = tokenizer.convert_tokens_to_ids("they"), tokenizer.eos_token_id
    assert (model.generate(**inputs, forced_bos_token_id=word)[:, 1] == word).all()
    assert (model.generate(**inputs, forced_eos_token_id=end, max_new_tokens=3)[:, -1] == end).all()
    assert (model.generate(**inputs, sequence_bias=[[[word], 50.0]], max_new_tokens=2)[:, 1:] == word).all()
    first = model.generate(**inputs)[:, 1]
    assert (model.generate(**inputs, begin_suppress_tokens=first.tolist())[:, 1] != first).all()
    short = model.generate(**inputs, exponential_decay_length_penalty=(1, 4.0))
    assert short.shape[1] < model.generate(**inputs).shape[1]

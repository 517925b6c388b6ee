"""`generate()` of every system: the same words and scores with or without cache, alone or in a batch, in all modes."""

import pytest
import torch
from story_cases import (
    COPYING,
    END,
    INCREMENTAL,
    KNOWING,
    PADDING,
    START,
    UNKNOWN,
    as_tensors,
    batch_for,
    context_of,
    random_stories,
    stories_for,
    tiny_model,
    tiny_system,
)
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MaxTimeCriteria,
    StoppingCriteriaList,
    TextStreamer,
)

from hf_storyend.modeling.modeling_incremental_encoder import RecurrentCache
from hf_storyend.systems import SYSTEMS

every_system = pytest.mark.parametrize("name", SYSTEMS)
MODES = {
    "greedy": {},
    "beam": {"num_beams": 4},
    "returned beams": {"num_beams": 4, "num_return_sequences": 3},
    "repetition penalty": {"repetition_penalty": 1.5},
    "no repeated n-grams": {"no_repeat_ngram_size": 2, "num_beams": 2, "repetition_penalty": 1.3},
    "bad words": {"bad_words_ids": [[5], [6, 7]]},
    "minimum length": {"min_new_tokens": 5},
}
SAMPLING = {
    "sample": {"do_sample": True},
    "temperature, top-k, top-p": {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9},
    "beam sample": {"do_sample": True, "num_beams": 3},
    "several samples": {"do_sample": True, "num_return_sequences": 3},
}
# Every mode in the paper's best system and in the one with copying; the main ones in all.
MAIN_MODES = ["greedy", "returned beams", "no repeated n-grams"]
SYSTEM_MODES = [
    (name, mode) for name in SYSTEMS for mode in MODES if mode in MAIN_MODES or name in ("ie-msa-ca", "ie-msa-ga-copy")
]
SYSTEM_SAMPLING = [
    (name, mode) for name in SYSTEMS for mode in SAMPLING if mode == "several samples" or name == "ie-msa-ca"
]


def ready_to_copy(name, **kwargs):
    """A model for which copying is likely."""
    model = tiny_system(name, **kwargs)
    if SYSTEMS[name].copy:
        model.encoder.copying.scorer.weight.data *= 4
    return model


def generate(model, batch, **kwargs):
    kwargs = {"max_new_tokens": 8, "return_dict_in_generate": True, "output_scores": True, **kwargs}
    return model.generate(**context_of(batch), **kwargs)


class EndsInTurn(LogitsProcessor):
    """The first ending has one word, the next one three, and so on."""

    def __call__(self, input_ids, scores):
        ends = 2 * torch.arange(len(scores)) + 2 == input_ids.shape[1]
        scores = scores.index_fill(1, torch.tensor([END]), -torch.inf)
        scores[ends] = torch.full_like(scores[ends], -torch.inf).index_fill(1, torch.tensor([END]), 0.0)
        return scores


def without_padding(sequence):
    words = sequence.tolist()
    return words[: words.index(END) + 1] if END in words else words


@pytest.mark.parametrize(("name", "mode"), SYSTEM_MODES)
def test_with_and_without_cache(name, mode):
    model, batch = ready_to_copy(name), batch_for(name, 0)
    cached, plain = generate(model, batch, **MODES[mode]), generate(model, batch, use_cache=False, **MODES[mode])
    assert torch.equal(cached.sequences, plain.sequences)
    for one, other in zip(cached.scores, plain.scores, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "mode"), SYSTEM_MODES)
def test_alone_and_in_a_padded_batch(name, mode):
    stories, model = stories_for(name, 1, num_stories=4), ready_to_copy(name)
    together = generate(model, as_tensors(stories, extra_sentences=1, extra_words=2), **MODES[mode])
    rows = MODES[mode].get("num_return_sequences", 1)
    for b, story in enumerate(stories):
        alone = generate(model, as_tensors([story]), **MODES[mode])
        for r in range(rows):
            assert without_padding(together.sequences[b * rows + r]) == without_padding(alone.sequences[r])
        if "num_beams" in MODES[mode]:
            expected = together.sequences_scores[b * rows : (b + 1) * rows]
            torch.testing.assert_close(alone.sequences_scores, expected, rtol=1e-5, atol=1e-5)


@every_system
@pytest.mark.parametrize("num_beams", [1, 3])
def test_from_the_attentional_vector(name, num_beams):
    model, stories = ready_to_copy(name, prediction_vector="attentional"), stories_for(name, 4)
    cached, plain = (
        generate(model, as_tensors(stories), num_beams=num_beams, max_new_tokens=6, use_cache=use_cache)
        for use_cache in (True, False)
    )
    assert torch.equal(cached.sequences, plain.sequences)
    alone = generate(model, as_tensors(stories[1:2]), num_beams=num_beams, max_new_tokens=6)
    assert without_padding(alone.sequences[0]) == without_padding(cached.sequences[1])


@pytest.mark.parametrize(("name", "mode"), SYSTEM_SAMPLING)
def test_sampling_is_repeatable_and_cache_does_not_matter(name, mode):
    model, batch = ready_to_copy(name), batch_for(name, 2)
    runs = []
    for use_cache in (True, True, False):
        torch.manual_seed(1)
        runs.append(generate(model, batch, use_cache=use_cache, **SAMPLING[mode]).sequences)
    assert torch.equal(runs[0], runs[1]) and torch.equal(runs[0], runs[2])


@every_system
def test_scores_and_attentions_are_those_of_the_forward_pass(name):
    model, batch = ready_to_copy(name), batch_for(name, 5)
    output = generate(
        model,
        batch,
        output_logits=True,
        output_attentions=True,
        output_hidden_states=True,
        logits_processor=[EndsInTurn()],
    )
    words = output.sequences[:, :-1]
    reading = {"decoder_input_ids": words, "decoder_attention_mask": torch.ones_like(words)}
    forward = model(**context_of(batch), **reading, output_attentions=True, use_cache=False)
    for step, expected in enumerate(output.logits):
        unfinished = (output.sequences[:, 1 : step + 1] != END).all(dim=1)
        torch.testing.assert_close(forward.logits[unfinished, step], expected[unfinished].to(forward.logits.dtype))
    num_attended = batch["input_ids"].shape[2] if name in INCREMENTAL else batch["input_ids"].flatten(1).shape[1]
    assert len(output.cross_attentions) == output.sequences.shape[1] - 1
    assert all(step[0].shape == (3, 1, num_attended) for step in output.cross_attentions)
    torch.testing.assert_close(
        torch.cat([step[0] for step in output.cross_attentions], dim=1), forward.state_attentions
    )
    assert len(output.encoder_attentions) == (3 if name in KNOWING else 1)
    assert len(output.decoder_hidden_states[0]) == 1 + model.config.num_layers


@pytest.mark.parametrize("mode", [*MODES, *SAMPLING])
@pytest.mark.parametrize("given", [None, "config", "argument"])
def test_unknown_padding_and_start_are_never_produced(mode, given):
    model = tiny_model()
    model.lm_head.bias.data[[UNKNOWN, PADDING, START]] = 50.0
    config = GenerationConfig(max_new_tokens=8, eos_token_id=END, pad_token_id=1, decoder_start_token_id=2)
    own = {None: {}, "config": {"generation_config": config}, "argument": {"suppress_tokens": [9]}}[given]
    model.lm_head.bias.data[9] = 60.0 if given == "argument" else 0.0
    options = {**MODES, **SAMPLING}[mode]
    if given == "config":
        config.update(**options)
        options = {}
    sequences = model.generate(**context_of(as_tensors(random_stories(4))), **own, **options)
    for row in sequences[:, 1:]:
        words = without_padding(row)
        assert not {UNKNOWN, PADDING, START} & set(words)
        assert given != "argument" or 9 not in words


@every_system
def test_special_symbols_are_never_produced_by_any_system(name):
    model, batch = ready_to_copy(name), batch_for(name, 4)
    model.lm_head.bias.data[[UNKNOWN, PADDING, START]] = 50.0
    for options in ({}, {"num_beams": 3}):
        for row in generate(model, batch, **options).sequences[:, 1:]:
            assert not {UNKNOWN, PADDING, START} & set(without_padding(row))


@every_system
@pytest.mark.parametrize("num_beams", [1, 3])
def test_transition_scores(name, num_beams):
    model, batch = ready_to_copy(name), batch_for(name, 4)
    output = generate(model, batch, num_beams=num_beams, length_penalty=0.0)
    indices = output.beam_indices if num_beams > 1 else None
    steps = model.compute_transition_scores(output.sequences, output.scores, indices, normalize_logits=num_beams == 1)
    if num_beams > 1:
        torch.testing.assert_close(steps.sum(dim=1), output.sequences_scores)
        return
    as_they_are = model.compute_transition_scores(output.sequences, output.scores)
    for step, scores in enumerate(output.scores):
        unfinished = (output.sequences[:, 1 : step + 1] != END).all(dim=1)
        torch.testing.assert_close(as_they_are[unfinished, step], scores.amax(-1)[unfinished])
        best = scores.log_softmax(-1).amax(-1)
        torch.testing.assert_close(steps[unfinished, step], best[unfinished])


@pytest.mark.parametrize("name", COPYING)
@pytest.mark.parametrize("num_beams", [1, 4])
def test_slots_are_produced_and_only_those_of_the_story(name, num_beams):
    model, stories = tiny_system(name), stories_for(name, 5, num_stories=12)
    model.encoder.copying.scorer.weight.data *= 20
    model.lm_head.bias.data -= 3
    model.lm_head.bias.data[END] = -20
    sequences = generate(model, as_tensors(stories), num_beams=num_beams).sequences
    first = model.config.vocab_size
    for row, (*_, copied) in zip(sequences.tolist(), stories, strict=True):
        own = {word for sentence in copied for word in sentence}
        assert {word for word in row if word >= first} <= own
    assert (sequences >= first).any()


@every_system
def test_an_encoded_story_is_decoded_again_and_stays_as_it_was(name):
    model, batch = ready_to_copy(name), batch_for(name, 6)
    encoded = model.get_encoder()(**context_of(batch))
    before = {key: tensor.clone() for key, tensor in encoded.items()}
    expected = generate(model, batch, num_beams=2).sequences
    for _ in range(2):
        assert torch.equal(model.generate(encoder_outputs=encoded, num_beams=2, max_new_tokens=8), expected)
    assert all(torch.equal(encoded[key], tensor) for key, tensor in before.items())


def test_without_a_story_the_start_symbol_is_one():
    assert tiny_model().generate(max_new_tokens=3).shape[0] == 1


def test_greedy_follows_the_argmax():
    model, batch = tiny_model(), as_tensors(random_stories(6, num_stories=1))
    words = [START]
    for _ in range(8):
        logits = model(**context_of(batch), decoder_input_ids=torch.tensor([words])).logits[0, -1]
        logits[[UNKNOWN, PADDING, START]] = float("-inf")
        words.append(int(logits.argmax()))
        if words[-1] == END:
            break
    assert generate(model, batch).sequences[0].tolist() == words


def test_wide_beams_are_exhaustive_search():
    model, batch = tiny_model(seed=3), as_tensors(random_stories(7, num_stories=1))
    words = range(END, model.config.vocab_size)
    encoded = model.get_encoder()(**context_of(batch))
    scores = []
    for first in words:
        logits = model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([[START, first]])).logits[0]
        steps = logits.log_softmax(-1)
        scores.append(steps[0, first] + (0 if first == END else steps[1, END:].max()))
    wide = {"num_beams": len(words), "max_new_tokens": 2, "length_penalty": 0.0, "early_stopping": "never"}
    found = generate(model, batch, **wide).sequences_scores[0]
    assert found.item() == pytest.approx(max(scores).item(), abs=1e-5)


@pytest.mark.parametrize("prompt", [None, [[2, 5], [2, 6], [2, 7]]])
@pytest.mark.parametrize("mode", ["beam", "beam sample", "several samples"])
@pytest.mark.parametrize("name", ["ie-msa-ca", "hlstm-copy"])
def test_rows_of_a_story_are_those_of_the_story_repeated(name, prompt, mode):
    """Beams and samples share a story: the result is as if it had been given once for each of them."""
    model, batch = ready_to_copy(name), batch_for(name, 8)
    options = {**MODES, **SAMPLING}[mode]
    num_rows = options.get("num_beams", options.get("num_return_sequences"))
    settings = {} if prompt is None else {"decoder_input_ids": torch.tensor(prompt)}
    wanted = {"output_attentions": True, "output_hidden_states": True, "output_logits": True}
    torch.manual_seed(1)
    output = generate(model, batch, **options, **settings, **wanted)
    repeated = {key: tensor.repeat_interleave(num_rows, dim=0) for key, tensor in context_of(batch).items()}
    words = torch.full((3 * num_rows, 1), START)
    words = words if prompt is None else torch.tensor(prompt).repeat_interleave(num_rows, dim=0)
    wanted = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}
    forward = model(**repeated, decoder_input_ids=words, **wanted)
    torch.testing.assert_close(output.logits[0].to(forward.logits.dtype), forward.logits[:, -1])
    torch.testing.assert_close(output.cross_attentions[0][0], forward.state_attentions)
    torch.testing.assert_close(output.decoder_hidden_states[0], forward.decoder_hidden_states)


def test_streamer_stopping_and_own_processors():
    model, batch = tiny_model(), as_tensors(random_stories(8, num_stories=1))

    class Tokenizer:
        def decode(self, ids, **kwargs):
            return " ".join(map(str, ids)) + " "

    class Collect(TextStreamer):
        text = ""

        def on_finalized_text(self, text, stream_end=False):
            self.text += text

    streamer = Collect(Tokenizer())
    sequence = generate(model, batch, streamer=streamer).sequences[0]
    assert streamer.text.split() == [str(int(word)) for word in sequence]

    def only_eight(_, scores):
        return torch.full_like(scores, float("-inf")).index_fill_(1, torch.tensor([8]), 0.0)

    eights = generate(model, batch, logits_processor=LogitsProcessorList([only_eight])).sequences[0, 1:]
    assert (eights == 8).all() and len(eights) == 8
    stopped = generate(model, batch, stopping_criteria=StoppingCriteriaList([MaxTimeCriteria(0.0)]))
    assert stopped.sequences.shape[1] == 2


def test_prompts_of_one_length_are_continued_and_others_refused():
    model, batch = tiny_model(), as_tensors(random_stories(9))
    words = torch.tensor([[2, 5, 6]] * 3)
    mask = torch.ones_like(words)
    plain = generate(model, batch, decoder_input_ids=words).sequences
    assert torch.equal(plain[:, :3], words)
    assert torch.equal(generate(model, batch, decoder_input_ids=words, decoder_attention_mask=mask).sequences, plain)
    mask[1, 2] = 0
    with pytest.raises(ValueError, match="prompts of one length"):
        generate(model, batch, decoder_input_ids=words, decoder_attention_mask=mask)


def test_only_words_not_read_yet_are_read():
    model = tiny_model()
    words, read = torch.tensor([[2, 5, 6], [2, 7, 8]]), RecurrentCache()
    read.update_state(model.get_encoder().lstm.initial_state(2, like=model.lm_head.weight), num_new_words=2)
    inputs = model.prepare_inputs_for_generation(words, past_key_values=read, use_cache=True, labels=words)
    assert inputs.keys() == {"decoder_input_ids", "use_cache", "past_key_values"} and inputs["use_cache"] is True
    assert inputs["decoder_input_ids"].tolist() == [[6], [8]]
    assert torch.equal(model.prepare_inputs_for_generation(words)["decoder_input_ids"], words)
    mask = torch.ones_like(words)
    later = model.prepare_inputs_for_generation(words, next_sequence_length=1, decoder_attention_mask=mask)
    assert "decoder_attention_mask" not in later, "it was for the words of the prompt"


def test_modes_that_need_to_take_words_back_are_refused():
    model, batch = tiny_model(), as_tensors(random_stories(10, num_stories=1))
    with pytest.raises(ValueError, match="stateful"):
        generate(model, batch, prompt_lookup_num_tokens=2)
    with pytest.raises(ValueError, match="taken back"):
        RecurrentCache().crop(1)


def test_the_cache_moves_with_its_rows():
    model, batch = tiny_model(), as_tensors(random_stories(11))
    cache = model(**batch).past_key_values
    assert isinstance(cache, RecurrentCache)
    assert cache.get_seq_length() == batch["labels"].shape[1] and cache.get_max_length() == -1
    hidden, cell = cache.hidden.clone(), cache.cell.clone()
    cache.reorder_cache(torch.tensor([2, 0, 0]))
    assert torch.equal(cache.hidden, hidden[[2, 0, 0]]) and torch.equal(cache.cell, cell[[2, 0, 0]])
    cache.batch_repeat_interleave(2)
    assert torch.equal(cache.hidden, hidden[[2, 2, 0, 0, 0, 0]]) and torch.equal(cache.cell, cell[[2, 2, 0, 0, 0, 0]])
    cache.reset()
    assert cache.get_seq_length() == 0 and cache.hidden is None and cache.cell is None
    cache.batch_select_indices(torch.tensor([0]))
    cache.batch_repeat_interleave(2)
    assert cache.hidden is None, "an empty cache has no rows to move"


def test_generate_makes_no_cache_of_its_own():
    """It asks the class."""
    assert type(tiny_model())._supports_default_dynamic_cache() is False


def test_a_new_model_writes_at_most_thirty_words():
    """As the authors' code."""
    assert tiny_model().generation_config.max_new_tokens == 30


def test_a_mask_of_another_shape_is_refused_by_generate():
    model, story = tiny_model(torch.float32), context_of(as_tensors(random_stories(0)))
    with pytest.raises(ValueError, match="attention_mask"):
        model.generate(**{**story, "attention_mask": story["attention_mask"][..., None]})


@pytest.mark.parametrize("given", ["argument", "config", "model"])
def test_logits_that_are_asked_for_are_those_of_the_model(given):
    model, batch = tiny_model(), context_of(as_tensors(random_stories(2)))
    settings = {"max_new_tokens": 3, "return_dict_in_generate": True, "output_logits": True}
    if given == "config":
        settings = {"generation_config": GenerationConfig(**settings, eos_token_id=END, decoder_start_token_id=2)}
    if given == "model":
        model.generation_config.update(**settings)
        settings = {}
    assert all(logits.isfinite().all() for logits in model.generate(**batch, **settings).logits)


def test_several_endings_of_an_encoded_story_are_scored_as_alone():
    model, stories = tiny_model(), random_stories(9)
    batch = context_of(as_tensors(stories))
    twice = {name: tensor.repeat_interleave(2, dim=0) for name, tensor in model.get_encoder()(**batch).items()}
    encoded = type(model.get_encoder()(**batch))(**twice)
    words = torch.tensor([[2, 5], [2, 6], [2, 7], [2, 7], [2, 8], [2, 8]])
    logits = model(encoder_outputs=encoded, decoder_input_ids=words).logits
    mask = torch.tensor([[1, 1], [1, 0]] * 3)
    masked = model(encoder_outputs=encoded, decoder_input_ids=words, decoder_attention_mask=mask).logits
    assert (masked[1::2, 1] == 0).all() and (masked[0::2, 1] != 0).any()
    for row in range(6):
        story = context_of(as_tensors(stories[row // 2 : row // 2 + 1]))
        alone = model(**story, decoder_input_ids=words[row : row + 1]).logits
        torch.testing.assert_close(logits[row : row + 1], alone)


@every_system
def test_what_a_mask_leaves_out_changes_nothing(name):
    model, batch = tiny_system(name), batch_for(name, 6)
    words = torch.randint(END + 1, model.config.vocab_size, (3, 4))
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
    with torch.no_grad():
        masked = model(**context_of(batch), decoder_input_ids=words, decoder_attention_mask=mask)
        step_by_step, cache = [], None
        encoded = model.get_encoder()(**context_of(batch))
        for step in range(4):
            here = {"decoder_input_ids": words[:, [step]], "decoder_attention_mask": mask[:, [step]]}
            output = model(encoder_outputs=encoded, past_key_values=cache, **here)
            step_by_step.append(output.logits)
            cache = output.past_key_values
        torch.testing.assert_close(torch.cat(step_by_step, dim=1), masked.logits)
        torch.testing.assert_close(cache.hidden, masked.past_key_values.hidden)
        torch.testing.assert_close(cache.cell, masked.past_key_values.cell)
        for row, length in enumerate(mask.sum(dim=1).tolist()):
            assert (masked.logits[row, length:] == 0).all()
            if length:
                story = {key: tensor[[row]] for key, tensor in context_of(batch).items()}
                alone = model(**story, decoder_input_ids=words[[row], :length])
                torch.testing.assert_close(masked.logits[[row], :length], alone.logits)
                torch.testing.assert_close(masked.past_key_values.hidden[[row]], alone.past_key_values.hidden)
    assert torch.equal(masked.past_key_values.hidden[2], encoded.state_hidden[2])


@every_system
@pytest.mark.parametrize("num_words", [1, 3])
def test_generation_continued_from_a_cache_is_that_of_one_longer_call(name, num_words):
    model, inputs = tiny_system(name), context_of(batch_for(name, 6))
    settings = {"min_new_tokens": 8, "max_new_tokens": 8, "do_sample": False}
    expected = model.generate(**inputs, **settings)
    words = expected[:, : num_words + 1]
    # The last word is not read yet.
    cache = model(**inputs, decoder_input_ids=words[:, :-1], use_cache=True).past_key_values
    rest = {**settings, "min_new_tokens": 8 - num_words, "max_new_tokens": 8 - num_words}
    continued = model.generate(**inputs, **rest, decoder_input_ids=words, past_key_values=cache)
    assert torch.equal(continued, expected)
    with pytest.raises(ValueError, match="`past_key_values` has read"):
        model.generate(**inputs, **rest, decoder_input_ids=words[:, :1], past_key_values=cache)


@every_system
@pytest.mark.parametrize("use_cache", [True, False])
def test_endings_that_ended_before_a_call_stay_as_they_are(name, use_cache):
    """A batch is continued in pieces until the last story has its end."""
    model, inputs = ready_to_copy(name), context_of(batch_for(name, 6))
    settings = {"logits_processor": [EndsInTurn()], "return_dict_in_generate": True, "use_cache": use_cache}
    whole = model.generate(**inputs, **settings, max_new_tokens=6).sequences
    assert [len(without_padding(row)) for row in whole] == [3, 5, 7]
    begun = model.generate(**inputs, **settings, max_new_tokens=1)
    for _ in range(5):
        state = {"past_key_values": begun.past_key_values} if use_cache else {}
        begun = model.generate(
            **inputs, **settings, **state, decoder_input_ids=begun.sequences, max_new_tokens=1, eos_token_id=[END]
        )
    assert torch.equal(begun.sequences, whole)
    beams = model.generate(**inputs, decoder_input_ids=whole[:, :5], num_beams=3, max_new_tokens=2)
    assert torch.equal(beams[:2, 5:], torch.full((2, beams.shape[1] - 5), PADDING))


@every_system
@pytest.mark.parametrize("mode", ["beam", "returned beams", "several samples"])
def test_beams_and_samples_go_on_from_a_cache_as_without_it(name, mode):
    model, inputs, settings = ready_to_copy(name), context_of(batch_for(name, 6)), {**MODES, **SAMPLING}[mode]
    begun = model.generate(**inputs, max_new_tokens=2, min_new_tokens=2, return_dict_in_generate=True)
    endings = []
    for state in ({}, {"past_key_values": begun.past_key_values}):
        torch.manual_seed(0)
        prompt = {"decoder_input_ids": begun.sequences, **state}
        endings.append(model.generate(**inputs, **prompt, **settings, max_new_tokens=5))
    assert torch.equal(*endings)


def test_the_states_of_beams_are_no_states_of_fewer_endings():
    model, inputs = tiny_model(), context_of(as_tensors(random_stories(9)))
    begun = model.generate(**inputs, num_beams=4, max_new_tokens=2, return_dict_in_generate=True)
    with pytest.raises(ValueError, match="`past_key_values` has 12 rows for 3 rows"):
        model.generate(**inputs, decoder_input_ids=begun.sequences, past_key_values=begun.past_key_values)

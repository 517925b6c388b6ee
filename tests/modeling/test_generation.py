"""`generate()`, in all its standard modes: same words and scores with or without cache, alone or in a batch."""

import pytest
import torch
from story_cases import END, KNOWLEDGE, PADDING, as_tensors, context_of, random_stories, tiny_model
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MaxTimeCriteria,
    StoppingCriteriaList,
    TextStreamer,
)

from hf_storyend.modeling import modeling_incremental_encoder
from hf_storyend.modeling.forbidden_words import ForbiddenWords
from hf_storyend.modeling.recurrent_cache import RecurrentCache

both = pytest.mark.parametrize("knowledge", KNOWLEDGE)
MODES = {
    "greedy": {},
    "beam": {"num_beams": 4},
    "returned beams": {"num_beams": 4, "num_return_sequences": 3},
    "repetition penalty": {"repetition_penalty": 1.5},
    "no repeated n-grams": {"no_repeat_ngram_size": 2, "num_beams": 2},
    "bad words": {"bad_words_ids": [[5], [6, 7]]},
    "minimum length": {"min_new_tokens": 5},
}
SAMPLING = {
    "sample": {"do_sample": True},
    "temperature, top-k, top-p": {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9},
    "beam sample": {"do_sample": True, "num_beams": 3},
    "several samples": {"do_sample": True, "num_return_sequences": 3},
}


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


@both
@pytest.mark.parametrize("mode", MODES)
def test_with_and_without_cache(knowledge, mode):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(0))
    cached, plain = generate(model, batch, **MODES[mode]), generate(model, batch, use_cache=False, **MODES[mode])
    assert torch.equal(cached.sequences, plain.sequences)
    for one, other in zip(cached.scores, plain.scores, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@both
@pytest.mark.parametrize("mode", MODES)
def test_alone_and_in_a_padded_batch(knowledge, mode):
    stories, model = random_stories(1, num_stories=4), tiny_model(knowledge=knowledge)
    together = generate(model, as_tensors(stories, extra_sentences=1, extra_words=2), **MODES[mode])
    rows = MODES[mode].get("num_return_sequences", 1)
    for b, story in enumerate(stories):
        alone = generate(model, as_tensors([story]), **MODES[mode])
        for r in range(rows):
            assert without_padding(together.sequences[b * rows + r]) == without_padding(alone.sequences[r])
        if "num_beams" in MODES[mode]:
            expected = together.sequences_scores[b * rows : (b + 1) * rows]
            torch.testing.assert_close(alone.sequences_scores, expected, rtol=1e-5, atol=1e-5)


@both
@pytest.mark.parametrize("mode", SAMPLING)
def test_sampling_is_repeatable_and_cache_does_not_matter(knowledge, mode):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(2))
    runs = []
    for use_cache in (True, True, False):
        torch.manual_seed(1)
        runs.append(generate(model, batch, use_cache=use_cache, **SAMPLING[mode]).sequences)
    assert torch.equal(runs[0], runs[1]) and torch.equal(runs[0], runs[2])


@both
def test_scores_are_those_of_the_forward_pass(knowledge):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(3))
    output = generate(model, batch, output_logits=True)
    logits = model(**context_of(batch), decoder_input_ids=output.sequences[:, :-1]).logits
    for step, expected in enumerate(output.logits):
        unfinished = (output.sequences[:, 1 : step + 1] != END).all(dim=1)
        torch.testing.assert_close(logits[unfinished, step], expected[unfinished].to(logits.dtype))


@pytest.mark.parametrize("mode", [*MODES, *SAMPLING])
@pytest.mark.parametrize("given", [None, "config", "argument"])
def test_unknown_padding_and_start_are_never_produced(mode, given):
    model = tiny_model()
    model.lm_head.bias.data[[0, 1, 2]] = 50.0
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
        assert not {0, 1, 2} & set(words)
        assert given != "argument" or 9 not in words


@both
def test_attentions_come_with_the_ending(knowledge):
    stories = random_stories(5)
    model, batch = tiny_model(knowledge=knowledge), as_tensors(stories)
    output = generate(model, batch, output_attentions=True, output_hidden_states=True, logits_processor=[EndsInTurn()])
    num_words = batch["input_ids"].shape[2]
    assert len(output.cross_attentions) == output.sequences.shape[1] - 1
    assert all(step[0].shape == (3, 1, num_words) for step in output.cross_attentions)
    if knowledge:
        assert all(step[0].shape == (3, 1, num_words) for step in output.decoder_attentions)
    words = output.sequences[:, :-1]
    reading = {"decoder_input_ids": words, "decoder_attention_mask": words != PADDING}
    expected = model(**context_of(batch), **reading, output_attentions=True)
    torch.testing.assert_close(
        torch.cat([step[0] for step in output.cross_attentions], dim=1), expected.state_attentions
    )
    assert len(output.encoder_attentions) == (3 if knowledge else 1)
    assert len(output.decoder_hidden_states[0]) == 1 + model.config.num_layers


def test_greedy_follows_the_argmax():
    model, batch = tiny_model(), as_tensors(random_stories(6, num_stories=1))
    words = [2]
    for _ in range(8):
        logits = model(**context_of(batch), decoder_input_ids=torch.tensor([words])).logits[0, -1]
        logits[[0, 1, 2]] = float("-inf")
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
        logits = model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([[2, first]])).logits[0]
        steps = logits.log_softmax(-1)
        scores.append(steps[0, first] + (0 if first == END else steps[1, END:].max()))
    wide = {"num_beams": len(words), "max_new_tokens": 2, "length_penalty": 0.0, "early_stopping": "never"}
    found = generate(model, batch, **wide).sequences_scores[0]
    assert found.item() == pytest.approx(max(scores).item(), abs=1e-5)


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


def test_an_encoded_story_and_no_story():
    model, batch = tiny_model(), as_tensors(random_stories(9))
    encoded = model.get_encoder()(**context_of(batch))
    expected = generate(model, batch, num_beams=2).sequences
    assert torch.equal(model.generate(encoder_outputs=encoded, num_beams=2, max_new_tokens=8), expected)
    assert model.generate(max_new_tokens=3).shape[0] == 1, "without a story the start symbol is one"


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
    assert cache.get_seq_length() == batch["labels"].shape[1]
    hidden, cell = cache.hidden.clone(), cache.cell.clone()
    cache.reorder_cache(torch.tensor([2, 0, 0]))
    assert torch.equal(cache.hidden, hidden[[2, 0, 0]]) and torch.equal(cache.cell, cell[[2, 0, 0]])
    cache.batch_repeat_interleave(2)
    assert torch.equal(cache.hidden, hidden[[2, 2, 0, 0, 0, 0]])
    cache.reset()
    assert cache.get_seq_length() == 0 and cache.hidden is None


def test_beams_share_a_memory():
    """What all beams of a story only read is not repeated, and what the caller gave stays as it was."""
    model, batch, seen = tiny_model(), as_tensors(random_stories(12)), []
    encoded = model.get_encoder()(**context_of(batch))
    shapes = {name: tensor.shape for name, tensor in encoded.items()}
    model.encoder.attention.register_forward_pre_hook(
        lambda module, inputs: seen.append((len(inputs[0]), inputs[1] and len(inputs[1].mask)))
    )
    expected = generate(model, batch, num_beams=4).sequences
    assert {memories for rows, memories in seen if rows == 12} == {3}
    assert torch.equal(model.generate(encoder_outputs=encoded, num_beams=4, max_new_tokens=8), expected)
    assert {name: tensor.shape for name, tensor in encoded.items()} == shapes


@pytest.mark.parametrize("in_place", [False, True])
def test_forbidden_words_change_the_scores_they_were_given_only_if_they_may(in_place):
    scores = torch.zeros(2, 5)
    processor = ForbiddenWords([3, 1, 3], in_place)
    assert processor(torch.zeros(2, 1), scores).isinf().nonzero()[:, 1].tolist() == [1, 3, 1, 3]
    assert (scores == 0).all() != in_place


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


@both
def test_complete_endings_cost_nothing(knowledge):
    """The product with the vocabulary sees the endings that are still written, and no others."""
    model, batch, num_rows = tiny_model(knowledge=knowledge), as_tensors(random_stories(5)), []
    model.lm_head.register_forward_pre_hook(lambda module, inputs: num_rows.append(inputs[0].flatten(0, -2).shape[0]))
    words = generate(model, batch, logits_processor=[EndsInTurn()]).sequences[:, :-1]
    assert num_rows == (words != PADDING).sum(dim=0).tolist() == [3, 3, 3, 2, 2, 1]


@both
@pytest.mark.parametrize("mode", ["beam", "returned beams", "beam sample"])
def test_stories_that_are_decided_cost_nothing(monkeypatch, knowledge, mode):
    """Their beams are carried along until all stories are decided, but not read; the result is the same."""
    model, batch, num_rows = tiny_model(knowledge=knowledge), as_tensors(random_stories(7, num_stories=8)), []
    model.lm_head.bias.data[END] = 1.0
    options = {**{**MODES, **SAMPLING}[mode], "max_new_tokens": 12}
    hook = lambda module, inputs: num_rows.append(inputs[0].flatten(0, -2).shape[0])  # noqa: E731
    handle = model.lm_head.register_forward_pre_hook(hook)
    torch.manual_seed(1)
    quick = generate(model, batch, **options)
    handle.remove()
    first, *num_rows = num_rows
    assert first == 8, "all beams of a story begin alike"
    assert num_rows == sorted(num_rows, reverse=True) and 0 < num_rows[-1] < num_rows[0]
    assert all(rows % options["num_beams"] == 0 for rows in num_rows)
    monkeypatch.setattr(modeling_incremental_encoder, "mask_of_open_endings", lambda *_: None)
    torch.manual_seed(1)
    plain = generate(model, batch, **options)
    assert torch.equal(quick.sequences, plain.sequences) and torch.equal(quick.beam_indices, plain.beam_indices)
    torch.testing.assert_close(quick.sequences_scores, plain.sequences_scores)


@both
@pytest.mark.parametrize("prompt", [None, [[2, 5], [2, 6], [2, 7]]])
@pytest.mark.parametrize("mode", ["beam", "beam sample", "several samples"])
def test_rows_that_begin_alike_are_read_once(monkeypatch, knowledge, prompt, mode):
    """Until their first word is chosen, a story's beams are one row; what comes out is as if each had been read."""
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(8))
    options = {**MODES, **SAMPLING}[mode] | {"output_attentions": True, "output_hidden_states": True}
    if prompt is not None:
        options["decoder_input_ids"] = torch.tensor(prompt)
    seen = []
    handle = model.lm_head.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0].flatten(0, -2))))
    torch.manual_seed(1)
    once = generate(model, batch, **options)
    handle.remove()
    num_words = 1 if prompt is None else 2
    assert seen[0] == 3 * num_words < seen[1] * num_words
    monkeypatch.setattr(modeling_incremental_encoder, "num_alike_rows", lambda *_: 1)
    torch.manual_seed(1)
    each = generate(model, batch, **options)
    assert torch.equal(once.sequences, each.sequences)
    for name in ("scores", "decoder_hidden_states", "cross_attentions"):
        torch.testing.assert_close(getattr(once, name), getattr(each, name), rtol=1e-5, atol=1e-5)


def test_rows_of_a_story_that_begin_with_other_words_are_each_read():
    """As where one asks how likely a story makes several endings, with a memory that they share."""
    model, batch = tiny_model().eval(), as_tensors(random_stories(9))
    encoded = model.get_encoder()(**context_of(batch))
    twice = {name: encoded[name].repeat_interleave(2, dim=0) for name in ("state_hidden", "state_cell")}
    shared = type(encoded)(**{**dict(encoded.items()), **twice})
    words = torch.tensor([[2, 5], [2, 6], [2, 7], [2, 7], [2, 8], [2, 8]])
    logits = model(encoder_outputs=shared, decoder_input_ids=words).logits
    alike, mask = words[[0, 0, 2, 2, 4, 4]], torch.tensor([[1, 1], [1, 0]] * 3)
    masked = model(encoder_outputs=shared, decoder_input_ids=alike, decoder_attention_mask=mask).logits
    assert (masked[1::2, 1] == 0).all() and (masked[0::2, 1] != 0).any(), "nor those of which others are read"
    for row in range(6):
        story = context_of(as_tensors(random_stories(9)[row // 2 : row // 2 + 1]))
        alone = model(**story, decoder_input_ids=words[row : row + 1]).logits
        torch.testing.assert_close(logits[row : row + 1], alone)


@both
def test_what_a_mask_leaves_out_changes_nothing(knowledge):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(6))
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
                story = {name: tensor[[row]] for name, tensor in context_of(batch).items()}
                alone = model(**story, decoder_input_ids=words[[row], :length])
                torch.testing.assert_close(masked.logits[[row], :length], alone.logits)
                torch.testing.assert_close(masked.past_key_values.hidden[[row]], alone.past_key_values.hidden)
    assert torch.equal(masked.past_key_values.hidden[2], encoded.state_hidden[2])

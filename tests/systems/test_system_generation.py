"""`generate()` of every system: with or without cache, alone or in a batch, slots included."""

import pytest
import torch
from story_cases import END, context_of
from system_cases import COPYING, NEW_SYSTEMS, as_batch, batch_for, copy_stories, tiny_system

from hf_storyend.systems import SYSTEMS

every = pytest.mark.parametrize("name", NEW_SYSTEMS)
MODES = {
    "greedy": {},
    "returned beams": {"num_beams": 4, "num_return_sequences": 3},
    "no repeated n-grams": {"no_repeat_ngram_size": 2, "num_beams": 2, "repetition_penalty": 1.3},
}


def generate(model, batch, **kwargs):
    kwargs = {"max_new_tokens": 8, "return_dict_in_generate": True, "output_scores": True, **kwargs}
    return model.generate(**context_of(batch), **kwargs)


def ready_to_copy(name, **kwargs):
    """A model for which copying is likely."""
    model = tiny_system(name, **kwargs)
    if SYSTEMS[name].copy:
        model.encoder.copying.scorer.weight.data *= 4
    return model


def without_padding(sequence):
    words = sequence.tolist()
    return words[: words.index(END) + 1] if END in words else words


@every
@pytest.mark.parametrize("mode", MODES)
def test_with_and_without_cache(name, mode):
    model, batch = ready_to_copy(name), batch_for(name, 0)
    cached, plain = generate(model, batch, **MODES[mode]), generate(model, batch, use_cache=False, **MODES[mode])
    assert torch.equal(cached.sequences, plain.sequences)
    for one, other in zip(cached.scores, plain.scores, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@every
@pytest.mark.parametrize("mode", MODES)
def test_alone_and_in_a_padded_batch(name, mode):
    stories, model = copy_stories(1, SYSTEMS[name].copy, num_stories=4), ready_to_copy(name)
    together = generate(model, as_batch(stories, extra_sentences=1, extra_words=2), **MODES[mode])
    rows = MODES[mode].get("num_return_sequences", 1)
    for b, story in enumerate(stories):
        alone = generate(model, as_batch([story]), **MODES[mode])
        for r in range(rows):
            assert without_padding(together.sequences[b * rows + r]) == without_padding(alone.sequences[r])
        if "num_beams" in MODES[mode]:
            expected = together.sequences_scores[b * rows : (b + 1) * rows]
            torch.testing.assert_close(alone.sequences_scores, expected, rtol=1e-5, atol=1e-5)


@every
def test_sampling_is_repeatable_and_cache_does_not_matter(name):
    model, batch = ready_to_copy(name), batch_for(name, 2)
    runs = []
    for use_cache in (True, True, False):
        torch.manual_seed(1)
        options = {"do_sample": True, "top_k": 5, "top_p": 0.9, "num_return_sequences": 3}
        runs.append(generate(model, batch, use_cache=use_cache, **options).sequences)
    assert torch.equal(runs[0], runs[1]) and torch.equal(runs[0], runs[2])


@every
def test_scores_and_attentions_are_those_of_the_forward_pass(name):
    model, batch = ready_to_copy(name), batch_for(name, 3)
    output = generate(model, batch, output_logits=True, output_attentions=True, output_hidden_states=True)
    forward = model(**context_of(batch), decoder_input_ids=output.sequences[:, :-1], output_attentions=True)
    for step, expected in enumerate(output.logits):
        unfinished = (output.sequences[:, 1 : step + 1] != END).all(dim=1)
        torch.testing.assert_close(forward.logits[unfinished, step], expected[unfinished].to(forward.logits.dtype))
    attentions = torch.cat([step[0] for step in output.cross_attentions], dim=1)
    torch.testing.assert_close(attentions, forward.state_attentions)


@every
def test_training_and_evaluation_have_the_same_loss(name):
    """In training it is made without holding logits."""
    model, batch = ready_to_copy(name), batch_for(name, 3)
    for part in ("loss", "ending_loss"):
        losses = [model.train(is_training)(**batch)[part] for is_training in (True, False)]
        torch.testing.assert_close(*losses)


@every
def test_words_may_lie_anywhere_in_memory(name):
    model, batch = ready_to_copy(name), batch_for(name, 3)
    words = torch.arange(4, 4 + 5 * len(batch["input_ids"])).view(5, -1).remainder(20).T
    assert not words.is_contiguous()
    logits = [model(**context_of(batch), decoder_input_ids=ids).logits for ids in (words, words.contiguous())]
    assert torch.equal(*logits)


@every
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
def test_slots_are_written_and_only_those_of_the_story(name, num_beams):
    model, stories = tiny_system(name), copy_stories(5, copies=True, num_stories=4)
    model.encoder.copying.scorer.weight.data *= 20
    model.lm_head.bias.data[END] = -20
    sequences = generate(model, as_batch(stories), num_beams=num_beams).sequences
    first = model.config.vocab_size
    for row, (*_, copied) in zip(sequences.tolist(), stories, strict=True):
        own = {word for sentence in copied for word in sentence}
        assert {word for word in row if word >= first} <= own
    assert (sequences >= first).any()


@pytest.mark.parametrize("name", COPYING)
def test_a_story_encoded_before(name):
    model, batch = ready_to_copy(name), batch_for(name, 6)
    encoded = model.get_encoder()(**context_of(batch))
    expected = generate(model, batch, num_beams=2).sequences
    for _ in range(2):
        assert torch.equal(model.generate(encoder_outputs=encoded, num_beams=2, max_new_tokens=8), expected)

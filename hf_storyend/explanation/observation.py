"""One teacher-forced pass over a story and an ending, with all that was read on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..modeling import EndingGenerationOutput, IncrementalEncoderForEndingGeneration
from .story_tensors import StoryTensors


@dataclass(frozen=True)
class Observation:
    """
    What a model did with a story of K sentences and L words a sentence, and with an ending of T words.

    `encoder_*` have zeros where the system encodes without attention. Of the ending's attention, sentences that its
    words can't read have zeros.
    """

    log_probabilities: torch.Tensor  # [T]
    ending_state: torch.Tensor  # [T, K, L]
    encoder_state: torch.Tensor  # [K, L, L]: word of a sentence, word of the one before it
    ending_knowledge: torch.Tensor | None = None  # [T, K, L]
    encoder_knowledge: torch.Tensor | None = None  # [K, L, L]
    triple_weights: torch.Tensor | None = None  # [K, L, N]
    copied: torch.Tensor | None = None  # [T, K, L]: share of a word's probability that a place has


# For each model, how many threads are evaluating it, and whether it was training before the first of them came.
_EVALUATED: WeakKeyDictionary[torch.nn.Module, tuple[int, bool]] = WeakKeyDictionary()
_LOCK = Lock()


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """The model without dropout, and without gradients; of several threads, the last one puts it back."""
    with _LOCK:
        num_others, was_training = _EVALUATED.get(model, (0, model.training))
        _EVALUATED[model] = num_others + 1, was_training
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        with _LOCK:
            num_left = _EVALUATED.pop(model)[0] - 1
            if num_left:
                _EVALUATED[model] = num_left, was_training
            else:
                model.train(was_training)


def write_ending(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, generate_arguments: dict[str, Any]
) -> list[int]:
    """Ids of the ending that `generate()` gives, up to the end symbol and with it, if there is one."""
    with evaluating(model):
        written = model.generate(**story.tensors, **generate_arguments)
    sequences = getattr(written, "sequences", written)
    if sequences.shape[0] != 1:
        raise ValueError(f"One ending can be explained at a time; `num_return_sequences` gave {sequences.shape[0]}.")
    ids = sequences[0, 1:].tolist()
    end = model.config.eos_token_id
    return ids[: ids.index(end) + 1] if end in ids else ids


def observe(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, ending_ids: Sequence[int]
) -> Observation:
    """Let a model read a story and an ending, and keep what its attentions say."""
    with evaluating(model):
        labels = torch.tensor([list(ending_ids)], device=model.device)
        inputs = model.prepare_decoder_input_ids_from_labels(labels)
        encoded = model.encoder(**story.tensors, output_attentions=True)
        output = model(encoder_outputs=encoded, decoder_input_ids=inputs, output_attentions=True, use_cache=False)
        log_probabilities = output.logits[0].float().log_softmax(dim=-1).gather(1, labels.T).squeeze(1)
        copied = _copied_shares(model, encoded, inputs, labels, output.logits) if model.config.copy else None
    shape = story.tensors["input_ids"].shape[1:]
    return Observation(
        log_probabilities=log_probabilities.cpu(),
        copied=None if copied is None else copied.unflatten(1, shape).cpu(),
        **_attentions(model, output, shape),
    )


def log_probabilities_of(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, ending_ids: Sequence[int]
) -> list[float]:
    """What a model gives to each word of an ending of that story."""
    return observe(model, story, ending_ids).log_probabilities.tolist()


def _attentions(
    model: IncrementalEncoderForEndingGeneration, output: EndingGenerationOutput, shape: torch.Size
) -> dict[str, torch.Tensor]:
    has_knowledge = model.config.knowledge is not None
    found = {
        "ending_state": _by_sentence(output.state_attentions[0], shape),
        # Step 0 reads the start symbol, step j word j.
        "encoder_state": output.encoder_state_attentions[0, :, 1:],
    }
    if has_knowledge:
        found["ending_knowledge"] = _by_sentence(output.knowledge_attentions[0], shape)
        found["encoder_knowledge"] = output.encoder_knowledge_attentions[0, :, 1:]
        found["triple_weights"] = output.triple_attentions[0]
    return {name: tensor.float().cpu() for name, tensor in found.items()}


def _by_sentence(weights: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """[T, K, L] from weights over all words of the story [T, K * L], or over those of its last sentence [T, L]."""
    num_sentences, num_words = shape
    if weights.shape[1] == num_sentences * num_words:
        return weights.unflatten(1, shape)
    spread = weights.new_zeros(weights.shape[0], *shape)
    spread[:, -1] = weights
    return spread


def _copied_shares(
    model: IncrementalEncoderForEndingGeneration,
    encoded: Any,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    logits: torch.Tensor,
) -> torch.Tensor:
    """[T, K * L]: the share of each word's probability that came from copying it from that place."""
    memory = encoded.copy_memory
    states = model.encoder.read(inputs, encoded.state, encoded.memory, None, memory).outputs
    scores = model.encoder.copying.score_places(states, memory)[0]  # [T, K * L]
    shares = (scores - logits[0].float().gather(1, labels.T)).exp()
    return shares.masked_fill(memory.ids != labels.T, 0.0)

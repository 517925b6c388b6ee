"""
Inference: generate endings, and measure them in a teacher-forced pass over story and ending.

That pass has the attentions and probabilities of generation step by step, without dropout and without gradients.
All numbers of an explanation are computed from its output. How they are shown is no concern of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..modeling import EndingGenerationOutput, IncrementalEncoderForEndingGeneration
from ..modeling.candidates import generate_endings as write_candidates
from ..modeling.decoding import default_arguments
from ..modeling.tail_pointer import WordSources
from .story import TokenizedStory


@dataclass(frozen=True)
class TeacherForcedOutput:
    """
    Output for a story of K sentences with L words each and an ending of T words.

    Args:
        log_probabilities: [T], of each word of the ending given the words before it.
        sources: Parts of the words' probabilities, for a batch of one ending.
        state_attention: [T, K, L], of the ending to the story; zero for sentences that it does not attend to.
        encoder_state_attention: [K, L, L], of each word of a sentence to the words of the sentence before it; zero
            where the system encodes sentences without attention.
        knowledge_attention, encoder_knowledge_attention: The same for graphs; None without knowledge attention.
        triple_attention: [K, L, N], weights of the triples in each word's graph; None without knowledge attention.
    """

    log_probabilities: torch.Tensor
    sources: WordSources
    state_attention: torch.Tensor
    encoder_state_attention: torch.Tensor
    knowledge_attention: torch.Tensor | None = None
    encoder_knowledge_attention: torch.Tensor | None = None
    triple_attention: torch.Tensor | None = None


def generate_endings(
    model: IncrementalEncoderForEndingGeneration, story: TokenizedStory, **generate_arguments: Any
) -> list[list[int]]:
    """Return the ids of each ending that `generate()` gives, each up to and including the end symbol, if any."""
    with eval_mode(model):
        generated, _ = write_candidates(model, story.tensors, generate_arguments)
    end = model.config.eos_token_id
    rows = [ids[1:] for ids in generated.tolist()]
    return [ids[: ids.index(end) + 1] if end in ids else ids for ids in rows]


def generate_ending(
    model: IncrementalEncoderForEndingGeneration,
    story: TokenizedStory,
    decoding: str | None = None,
    seed: int | None = None,
    **generate_arguments: Any,
) -> list[int]:
    """
    Return the ids of the one ending that `generate()` gives.

    Args:
        model: A model of any system.
        story: The story.
        decoding: Preset; default: the model's own setting if it has beams or samples, else `readers`.
        seed: Random seed of sampling; default: that of torch, as it is.
        generate_arguments: Arguments of `generate()`, which win over the preset.
    """
    if seed is not None:
        torch.manual_seed(seed)
    endings = generate_endings(model, story, **default_arguments(model, generate_arguments, decoding))
    if len(endings) != 1:
        raise ValueError(f"One ending can be explained at a time; `num_return_sequences` gave {len(endings)}.")
    return endings[0]


def teacher_forced_pass(
    model: IncrementalEncoderForEndingGeneration, story: TokenizedStory, ending_ids: Sequence[int]
) -> TeacherForcedOutput:
    """Run a model over a story and a given ending."""
    with eval_mode(model):
        labels = torch.tensor([list(ending_ids)], device=model.device)
        inputs = model.prepare_decoder_input_ids_from_labels(labels)
        encoded = model.encoder(**story.tensors, output_attentions=True)
        output = model(encoder_outputs=encoded, decoder_input_ids=inputs, output_attentions=True, use_cache=False)
        log_probabilities = (
            output.logits[0].float().log_softmax(dim=-1).gather(1, model.output_columns(labels).T).squeeze(1)
        )
        sources = model.word_sources(labels=labels, encoder_outputs=encoded, **story.tensors)
    shape = story.tensors["input_ids"].shape[1:]
    return TeacherForcedOutput(
        log_probabilities=log_probabilities.cpu(),
        sources=WordSources(*(getattr(sources, field.name).cpu() for field in fields(sources))),
        **_attentions(model, output, shape),
    )


def ending_log_probabilities(
    model: IncrementalEncoderForEndingGeneration, story: TokenizedStory, ending_ids: Sequence[int]
) -> list[float]:
    """Return the log probability of each word of an ending of a story."""
    return teacher_forced_pass(model, story, ending_ids).log_probabilities.tolist()


def _attentions(
    model: IncrementalEncoderForEndingGeneration, output: EndingGenerationOutput, shape: torch.Size
) -> dict[str, torch.Tensor]:
    found = {
        "state_attention": _by_sentence(output.state_attentions[0], shape),
        # Step 0 reads the start symbol, step j word j.
        "encoder_state_attention": output.encoder_state_attentions[0, :, 1:],
    }
    if model.config.knowledge is not None:
        found["knowledge_attention"] = _by_sentence(_knowledge_attention(output)[0], shape)
        found["encoder_knowledge_attention"] = output.encoder_knowledge_attentions[0, :, 1:]
        found["triple_attention"] = output.triple_attentions[0]
    return {name: tensor.float().cpu() for name, tensor in found.items()}


def _knowledge_attention(output: EndingGenerationOutput) -> torch.Tensor:
    """Return the ending's knowledge attention: [B, T, L] or [B, T, K * L]."""
    return output.knowledge_attentions


def _by_sentence(weights: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return [T, K, L] from weights over the whole story [T, K * L] or over its last sentence [T, L]."""
    num_sentences, num_words = shape
    if weights.shape[1] == num_sentences * num_words:
        return weights.unflatten(1, shape)
    padded = weights.new_zeros(weights.shape[0], *shape)
    padded[:, -1] = weights
    return padded


# Number of threads that use each model, and its mode before the first of them.
_IN_EVAL_MODE: WeakKeyDictionary[torch.nn.Module, tuple[int, bool]] = WeakKeyDictionary()
_LOCK = Lock()


@contextmanager
def eval_mode(model: torch.nn.Module) -> Iterator[None]:
    """Switch a model to eval mode without gradients; thread-safe: the last thread restores the former mode."""
    with _LOCK:
        num_others, was_training = _IN_EVAL_MODE.get(model, (0, model.training))
        _IN_EVAL_MODE[model] = num_others + 1, was_training
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        with _LOCK:
            num_left = _IN_EVAL_MODE.pop(model)[0] - 1
            if num_left:
                _IN_EVAL_MODE[model] = num_left, was_training
            else:
                model.train(was_training)

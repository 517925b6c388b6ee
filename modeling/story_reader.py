"""What all systems have in common: a story is encoded into one kind of output, from which the decoder reads on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional
from transformers.utils import ModelOutput

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .copying import CopyMechanism, CopyMemory
from .fused_reading import can_read_fused, read_fused
from .lstm import ContextLSTM, LSTMState, unstack_state
from .multi_source_attention import MultiSourceAttention, SentenceMemory
from .single_reading import can_read_single, read_single
from .stepwise_reading import Attention, read_step_by_step
from .story_inputs import StoryInputs, prepare_story_inputs


@dataclass
class StoryEncoderOutput(ModelOutput):
    """
    All that the decoder needs of a story; every tensor has the batch first, so that `generate()` can expand it. The
    memory is not expanded: beams of a story stand one behind the other and read the same one.

    Args:
        last_hidden_state (`torch.Tensor` of shape `[B, M, D]`):
            Hidden states at the words that the decoder attends to: the L words of the last sentence in incremental
            encoding, all K * L words of the story in the other systems.
        state_hidden, state_cell (`torch.Tensor` of shape `[B, layers, D]`):
            LSTM state after the last word: where the ending starts from.
        memory_keys, memory_values (`torch.Tensor` of shape `[B, S * M, D]`), memory_mask (`[B, S, M]`):
            Those words as the decoder attends to them; S is 2 with knowledge, else 1. In hierarchical encoding keys
            and values have K rows more, those of the sentences.
        hidden_states (`tuple` of `[B, K, L + 1, E]` and then, for each layer, `[B, K, L + 1, D]`, *optional*):
            Word vectors and states of every step; step 0 reads the start symbol, step j word j.
        attentions (`tuple`, *optional*):
            State attention and knowledge attention, both `[B, K, L + 1, L]`: what each step gave to each word of
            the sentence before it (zero in the first, and in systems that encode without attention); then the
            weights `[B, K, L, N]` of the triples inside each word's graph. Without knowledge, only the first. They
            are for looking at and may carry no gradient.
        copy_keys (`torch.Tensor` of shape `[B, K * L, D]`, *optional*), copy_vectors (`[B, K * L, E]`, *optional*),
        copy_ids (`[B, K * L]`, *optional*):
            All words of the story as they are copied: see [`CopyMemory`].
    """

    last_hidden_state: torch.Tensor | None = None
    state_hidden: torch.Tensor | None = None
    state_cell: torch.Tensor | None = None
    memory_keys: torch.Tensor | None = None
    memory_values: torch.Tensor | None = None
    memory_mask: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    copy_keys: torch.Tensor | None = None
    copy_vectors: torch.Tensor | None = None
    copy_ids: torch.Tensor | None = None

    memory_names: ClassVar[tuple[str, ...]] = ("memory_keys", "memory_values", "memory_mask")
    copy_names: ClassVar[tuple[str, ...]] = ("copy_keys", "copy_vectors", "copy_ids")

    @classmethod
    def from_tuple(cls, values: Sequence[Any], has_copies: bool) -> StoryEncoderOutput:
        """What `to_tuple` gave, which leaves out what is None."""
        copies = dict(zip(cls.copy_names, values[-3:], strict=True)) if has_copies else {}
        return cls(*values[: len(values) - len(copies)], **copies)

    @property
    def shared_by_beams(self) -> tuple[str, ...]:
        return self.memory_names if self.copy_keys is None else (*self.memory_names, *self.copy_names)

    @property
    def state(self) -> LSTMState:
        return unstack_state(self.state_hidden, self.state_cell)

    @property
    def memory(self) -> SentenceMemory:
        return SentenceMemory(self.memory_keys, self.memory_values, self.memory_mask)

    @property
    def copy_memory(self) -> CopyMemory | None:
        return None if self.copy_keys is None else CopyMemory(self.copy_keys, self.copy_vectors, self.copy_ids)


@dataclass
class Reading:
    """A sentence of J steps, read."""

    word_vectors: torch.Tensor  # [B, J, E]
    layer_states: list[torch.Tensor]  # a layer: [B, J, D]
    state: LSTMState
    # [B, J, S, L'], for looking at: it may pass no gradient. None if there was no sentence to attend to.
    attention: torch.Tensor | None

    # What the next word is predicted from [B, J, D], where it is not the state of the top layer.
    attentional: torch.Tensor | None = None

    @property
    def states(self) -> torch.Tensor:
        """States of the top layer, [B, J, D]."""
        return self.layer_states[-1]

    @property
    def outputs(self) -> torch.Tensor:
        """What the next word is predicted from, [B, J, D]."""
        return self.states if self.attentional is None else self.attentional


class StoryReader(nn.Module):
    """
    Owner of the word vectors and, in `lstm` and `attention`, of what the decoder reads with. A system is a subclass
    that makes those two and says in `encode` how a story is read.

    Args:
        config: The model's configuration.
        copy_size: Size of the encoder's states at words, by which they are copied; that of hidden states by default.
    """

    # generate() asks the encoder for it.
    main_input_name = "input_ids"
    lstm: ContextLSTM
    attention: Attention

    def __init__(self, config: IncrementalEncoderConfig, copy_size: int | None = None):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        self.copying = CopyMechanism(config, copy_size or config.hidden_size) if config.copy else None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        triple_ids: torch.Tensor | None = None,
        triple_mask: torch.Tensor | None = None,
        copy_ids: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> StoryEncoderOutput | tuple:
        inputs = prepare_story_inputs(self.config, input_ids, attention_mask, triple_ids, triple_mask, copy_ids)
        output, _ = self.encode(inputs, output_attentions, output_hidden_states)
        return output if return_dict is not False else output.to_tuple()

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, torch.Tensor | None]:
        """
        The encoder's output and, in systems whose encoder is supervised, the states of all steps [B, K, L + 1, D] that
        predict the next word of the context.
        """
        raise NotImplementedError

    def read(
        self,
        word_ids: torch.Tensor,
        state: LSTMState,
        memory: SentenceMemory | None,
        step_mask: torch.Tensor | None = None,
        copy_memory: CopyMemory | None = None,
    ) -> Reading:
        """Read word_ids [B, J] from `state` on, attending to `memory`; steps not in `step_mask` [B, J] do nothing."""
        vectors = self.embed(word_ids, copy_memory)
        return read_vectors(self.lstm, self.attention, vectors, state, memory, step_mask)

    def embed(self, word_ids: torch.Tensor, copy_memory: CopyMemory | None = None) -> torch.Tensor:
        """Word vectors [B, J, E]; with a story to copy from, words may be slots, and bring what is known of them."""
        if self.copying is None or copy_memory is None:
            return self.embed_tokens(word_ids)
        known = word_ids.masked_fill(word_ids >= self.config.vocab_size, self.config.unk_token_id)
        return self.embed_tokens(known) + self.copying.read_places(word_ids, copy_memory)

    def with_start(self, inputs: StoryInputs) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Words with the start symbol before every sentence, and which steps are real, both [B, K, L + 1]: a sentence
        without words is passed over, start symbol included.
        """
        word_ids = functional.pad(inputs.word_ids, (1, 0), value=self.config.bos_token_id)
        step_mask = torch.cat((inputs.word_mask.any(dim=2, keepdim=True), inputs.word_mask), dim=2)
        return word_ids, step_mask

    def remember_copies(self, states: torch.Tensor, inputs: StoryInputs) -> dict[str, torch.Tensor]:
        """The output's entries for copying, if words can be copied, from states [B, K, L, C] at words."""
        if self.copying is None:
            return {}
        memory = self.copying.remember(states, inputs.copy_ids, inputs.word_mask)
        return {"copy_keys": memory.keys, "copy_vectors": memory.vectors, "copy_ids": memory.ids}


def read_vectors(
    lstm: ContextLSTM,
    attention: Attention | None,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: SentenceMemory | None,
    step_mask: torch.Tensor | None,
) -> Reading:
    """Run the LSTM over vectors [B, J, E], by the fastest way that is possible."""
    read: Callable[..., Any] = read_step_by_step
    if isinstance(attention, MultiSourceAttention | None):
        if can_read_single(lstm, attention, word_vectors):
            read = read_single
        elif can_read_fused(lstm, attention, word_vectors):
            read = read_fused
    return Reading(word_vectors, *read(lstm, attention, word_vectors, state, memory, step_mask))


def stack_hidden_states(readings: Sequence[Reading]) -> tuple[torch.Tensor, ...]:
    """Word vectors and states of each layer of K sentences, [B, K, L + 1, ...]."""
    word_vectors = torch.stack([reading.word_vectors for reading in readings], dim=1)
    layers = zip(*(reading.layer_states for reading in readings), strict=True)
    return word_vectors, *(torch.stack(states, dim=1) for states in layers)


def no_attentions(inputs: StoryInputs, triple_weights: torch.Tensor | None, like: torch.Tensor) -> tuple:
    """The attentions of an encoder that attends to nothing but, with knowledge, the triples of a word."""
    batch_size, num_sentences, num_words = inputs.word_ids.shape
    nothing = like.new_zeros(batch_size, num_sentences, num_words + 1, num_words)
    return (nothing,) if triple_weights is None else (nothing, nothing, triple_weights)

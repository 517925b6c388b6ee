"""Seq2Seq: the sentences of a story as one sequence, and the attention of Luong et al. in the decoder."""

from __future__ import annotations

import torch
from torch import nn

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .copying import CopyMemory
from .lstm import ContextLSTM, LSTMState, stack_state
from .multi_source_attention import MultiSourceAttention, SentenceMemory
from .story_inputs import StoryInputs
from .story_reader import Reading, StoryEncoderOutput, StoryReader, no_attentions, read_vectors, stack_hidden_states


class SequenceStoryReader(StoryReader):
    """
    One LSTM over all words of the story, a start symbol before each sentence to tell where it begins, and another one
    for the ending, which starts from the first one's last state:

        s_t  = LSTM(s_{t-1}, e(y_{t-1}), c(s_{t-1}))
        c(s) = W_l sum_m alpha_m h_m + b_l,   alpha = softmax over all words m of  s . W_s h_m
        h~_t = tanh(c(s_t) + W_d s_t)

    The next word is predicted from h~_t, the attentional vector of Luong, Pham and Manning (EMNLP 2015), with their
    "general" score. What the LSTM is fed with of the step before is the context vector, as in the paper's decoder
    (its Eq. 4); in their input feeding it would be h~, which is that vector and a state the LSTM has anyway. The
    encoder is not supervised.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        if config.knowledge is not None:
            raise ValueError(
                f"`story_encoder='sequence'` reads no triples: `knowledge` must be None; got {config.knowledge!r}."
            )
        super().__init__(config)
        self.story_lstm = ContextLSTM(config, has_context=False)
        self.lstm = ContextLSTM(config)
        self.attention = MultiSourceAttention(config)
        self.attentional = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, None]:
        word_ids, step_mask = self.with_start(inputs)
        word_vectors = self.embed_tokens(word_ids)
        state = self.story_lstm.initial_state(word_ids.shape[0], like=self.embed_tokens.weight)
        readings: list[Reading] = []
        # One sequence, read in pieces because padding stands between them.
        for vectors, mask in zip(word_vectors.unbind(1), step_mask.unbind(1), strict=True):
            readings.append(read_vectors(self.story_lstm, None, vectors, state, None, mask))
            state = readings[-1].state
        states = torch.stack([reading.states[:, 1:] for reading in readings], dim=1)
        memory = self.attention.remember(states.flatten(1, 2), None, inputs.word_mask.flatten(1))
        state_hidden, state_cell = stack_state(state)
        output = StoryEncoderOutput(
            last_hidden_state=states.flatten(1, 2),
            state_hidden=state_hidden,
            state_cell=state_cell,
            memory_keys=memory.keys,
            memory_values=memory.values,
            memory_mask=memory.mask,
            hidden_states=stack_hidden_states(readings) if output_hidden_states else None,
            attentions=no_attentions(inputs, None, like=states) if output_attentions else None,
            **self.remember_copies(states, inputs),
        )
        return output, None

    def read(
        self,
        word_ids: torch.Tensor,
        state: LSTMState,
        memory: SentenceMemory | None,
        step_mask: torch.Tensor | None = None,
        copy_memory: CopyMemory | None = None,
    ) -> Reading:
        reading = super().read(word_ids, state, memory, step_mask, copy_memory)
        # All steps of a story are queries to one memory.
        contexts, weights = self.attention(reading.states.flatten(0, 1), memory)
        reading.attentional = (contexts.view_as(reading.states) + self.attentional(reading.states)).tanh()
        reading.attention = weights.unflatten(0, reading.states.shape[:2])
        return reading

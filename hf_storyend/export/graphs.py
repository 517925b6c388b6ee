"""The two graphs of an exported model: the story encoder, and one step of the decoder."""

from __future__ import annotations

import torch
from torch import nn
from torch._higher_order_ops import scan

from ..modeling import IncrementalEncoderConfig
from ..modeling.modeling_incremental_encoder import (
    AttentionMemory,
    IncrementalEncoder,
    IncrementalEncoderForEndingGeneration,
    RecurrenceOutput,
    StoryEncoderOutput,
    keep_state_where,
    stack_state,
    unstack_state,
)
from ..modeling.oov_ids import to_slots
from ..modeling.story_inputs import StoryInputs, complete_story_inputs
from ..modeling.tail_pointer import boost_forms
from ..modeling.tensor_utils import distinct_triples, upcast

# What the memory of a sentence holds, in the order in which the loop over sentences carries it.
_MEMORY = ("states", "state_keys", "word_mask", "graph_vectors", "knowledge_keys", "graph_mask")
# What the decoder never reads.
_UNUSED = {"tail_positions", "hidden_states", "attentions"}


def check_exportable(model: IncrementalEncoderForEndingGeneration) -> None:
    """Refuse systems whose loop over sentences has no graph."""
    if not isinstance(model.encoder, IncrementalEncoder):
        raise ValueError(
            f"`story_encoder` is {model.config.story_encoder!r}: "
            "only models with incremental encoding can be exported."
        )


class EncoderGraph(nn.Module):
    """
    The encoder as one graph with loops over sentences and words, so that their numbers stay open.

    It computes what `IncrementalEncoder.encode` computes. The first sentence attends to a memory without words, whose
    context is zero.
    """

    def __init__(self, model: IncrementalEncoderForEndingGeneration):
        super().__init__()
        check_exportable(model)
        self.encoder = model.encoder

    def forward(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        story = _story_inputs(self.encoder.config, inputs)
        word_ids, step_mask = self.encoder.prepend_start(story)
        sentences = [word_ids, step_mask, story.word_mask]
        if self.encoder.knowledge is not None:
            sentences += [story.triple_ids, story.triple_mask]
        carried, outputs = scan(
            self._read_sentence, self._initial(story.word_ids), [tensor.transpose(0, 1) for tensor in sentences]
        )
        hidden, cell, *memory = carried
        encoded = StoryEncoderOutput.from_parts(
            unstack_state(hidden, cell),
            AttentionMemory(**dict(zip(_MEMORY, memory, strict=False))),
            self.encoder.project_pointers(outputs.transpose(0, 1), story),
        )
        return {name: tensor for name, tensor in encoded.items() if name not in _UNUSED}

    def _initial(self, word_ids: torch.Tensor) -> list[torch.Tensor]:
        """State and memory before the first sentence: zeros, and no word to attend to."""
        config, (batch_size, _, num_words) = self.encoder.config, word_ids.shape
        weight = self.encoder.embed_tokens.weight

        def zeros(*sizes: int) -> torch.Tensor:
            return weight.new_zeros(batch_size, *sizes)

        def nothing() -> torch.Tensor:
            return torch.zeros(batch_size, num_words, dtype=torch.bool, device=weight.device)

        size, layers = config.hidden_size, config.num_layers
        initial = [zeros(layers, size), zeros(layers, size), zeros(num_words, size), zeros(num_words, size), nothing()]
        if self.encoder.knowledge is not None:
            initial += [zeros(num_words, config.graph_size), zeros(num_words, size), nothing()]
        return initial

    def _read_sentence(
        self, carried: list[torch.Tensor], sentence: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """State and memory after a sentence, and its outputs [B, L, D]."""
        hidden, cell, *tensors = carried
        word_ids, step_mask, word_mask, *triples = sentence
        encoder, memory = self.encoder, AttentionMemory(**dict(zip(_MEMORY, tensors, strict=False)))
        states, hidden, cell = self._recur(encoder.embed(word_ids), hidden, cell, memory, step_mask)
        outputs = states
        if encoder.attentional is not None:
            outputs = (encoder.attention(states, memory)[0] + encoder.attentional(states)).tanh()
        graph_vectors = has_triples = None
        if encoder.knowledge is not None:
            triple_ids, triple_mask = triples
            has_triples, config = triple_mask.any(dim=-1), encoder.config
            triple_ids, triple_mask = triple_ids.unsqueeze(1), triple_mask.unsqueeze(1)
            encoded = encoder.knowledge.encode_story(
                distinct_triples(triple_ids, triple_mask, config.num_relations, config.vocab_size),
                triple_mask,
                has_triples.unsqueeze(1),
                encoder.embed_tokens,
            )
            graph_vectors, _ = encoder.knowledge(encoded, 0, states[:, 1:])
        new = encoder.attention.project_memory(outputs[:, 1:], word_mask, graph_vectors, has_triples)
        has_words = word_mask.any(dim=1)
        after = [
            _replaced_where(has_words, getattr(new, name), tensor)
            for name, tensor in zip(_MEMORY, tensors, strict=False)
        ]
        return [hidden, cell, *after], outputs[:, 1:].clone()

    def _recur(
        self,
        word_vectors: torch.Tensor,
        hidden: torch.Tensor,
        cell: torch.Tensor,
        memory: AttentionMemory,
        step_mask: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Top states [B, J, D], and the state of all layers after the last step."""
        lstm, attention = self.encoder.lstm, self.encoder.attention

        def step(carried: list[torch.Tensor], word: list[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
            state = unstack_state(*carried)
            context = attention(state[-1][0].unsqueeze(1), memory)[0].squeeze(1)
            after = keep_state_where(word[1], lstm(word[0], context, state), state)
            return list(stack_state(after)), after[-1][0].clone()

        words = [lstm.project_words(word_vectors).transpose(0, 1), step_mask.transpose(0, 1)]
        (hidden, cell), states = scan(step, [hidden, cell], words)
        return states.transpose(0, 1), hidden, cell


class DecoderStepGraph(nn.Module):
    """
    One word further: from decoder_input_ids [B, 1] and what the encoder gave, the logits of the next word
    [B, V + slots] and the state after the word that was read, which takes the place of the state that was given.
    """

    def __init__(self, model: IncrementalEncoderForEndingGeneration):
        super().__init__()
        check_exportable(model)
        self.model = model

    def forward(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        encoded = dict(inputs)
        word_ids = encoded.pop("decoder_input_ids")
        story = StoryEncoderOutput(**encoded)
        if story.tail_ids is not None:
            # Where triples stood is not read, but is part of the memory.
            story.tail_positions = story.tail_ids[..., 0]
        step: RecurrenceOutput = self.model.encoder.decode(
            word_ids, story.state, story.memory, None, story.copy_memory
        )
        hidden, cell = stack_state(step.state)
        return {
            "logits": self._logits(step.outputs, story)[:, 0],
            "next_state_hidden": hidden,
            "next_state_cell": cell,
        }

    def _logits(self, outputs: torch.Tensor, story: StoryEncoderOutput) -> torch.Tensor:
        """As the model's logits, by one sum of exponentials a word: simpler operations, the same numbers."""
        logits = upcast(self.model.lm_head(outputs))
        places, forms = self.model._offers(outputs, story)
        if forms is not None:
            forms = forms[0], boost_forms(logits, *forms)
        offers = [pair for pair in (places, forms) if pair is not None]
        if not offers:
            return logits
        ids, scores = torch.cat([pair[0] for pair in offers], dim=1), torch.cat([pair[1] for pair in offers], dim=2)
        highest = torch.maximum(logits.amax(dim=2, keepdim=True), scores.amax(dim=2, keepdim=True))
        num_words = self.model.config.num_output_words
        generated = (logits - highest).exp()
        # One column more takes padding.
        unseen = generated.new_zeros(*generated.shape[:2], num_words + 1 - generated.shape[2])
        columns = torch.where(ids < 0, num_words, ids).unsqueeze(1).expand_as(scores)
        total = torch.cat((generated, unseen), dim=2).scatter_add(2, columns, (scores - highest).exp())
        return total[..., :num_words].log() + highest


def _replaced_where(rows: torch.Tensor, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """`new` in the rows [B] that are true, `old` in the others. onnxruntime can't choose between Booleans."""
    rows = rows.view(-1, *(1,) * (new.ndim - 1))
    return (rows & new) | (~rows & old) if new.dtype == torch.bool else torch.where(rows, new, old)


def input_names(config: IncrementalEncoderConfig) -> list[str]:
    """Inputs of the encoder's graph: what the system reads, and nothing else."""
    names = ["input_ids", "attention_mask"]
    names += ["copy_ids"] if config.copy else []
    names += ["triple_ids", "triple_mask"] if config.knowledge or config.tail_pointer else []
    return names + (["triple_weights", "tail_form_ids"] if config.tail_pointer else [])


def _story_inputs(config: IncrementalEncoderConfig, inputs: dict[str, torch.Tensor]) -> StoryInputs:
    """Inputs of a graph as the encoder takes them; a system that does not read triples has no such input."""
    word_mask = inputs["attention_mask"].to(torch.bool)
    word_ids = inputs["input_ids"].masked_fill(~word_mask, config.pad_token_id)
    triple_ids = inputs.get("triple_ids", word_ids[..., None, None].expand(-1, -1, -1, 1, 3))
    triple_mask = inputs.get("triple_mask", torch.zeros_like(triple_ids[..., 0])).to(torch.bool)
    forms = inputs.get("tail_form_ids", triple_ids[..., 2:])
    return complete_story_inputs(
        config,
        word_ids,
        word_mask,
        triple_ids,
        triple_mask & word_mask.unsqueeze(-1),
        to_slots(inputs["copy_ids"], config.vocab_size, config.num_copy_slots) if config.copy else word_ids,
        inputs.get("triple_weights", torch.zeros_like(triple_ids[..., 0], dtype=torch.float32)),
        forms.masked_fill(forms == config.pad_token_id, -1),
    )

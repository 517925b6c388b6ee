"""
Story endings by incremental encoding and commonsense knowledge, and by the paper's other systems, as a transformers
model.

Guan, Wang and Huang, "Story Ending Generation with Incremental Encoding and Commonsense Knowledge", AAAI 2019. The
paper's letters and the names in this code (the last column is a file of this folder, or a class):

| paper               | code                                                             | where                    |
| ------------------- | ---------------------------------------------------------------- | ------------------------ |
| K, l_i, N_x         | `num_sentences`, `num_words`, `num_triples`                      |                          |
| X_i, x_j^(i)        | `word_ids`, `word_mask`                                          | `story_inputs`           |
| e(x)                | `embed_tokens`, `word_vectors`                                   | `story_encoder`          |
| h_j^(i), s_t        | `state` (all layers), `states` (top layer, all steps)            | `lstm`, `story_encoder`  |
| c_l                 | `context`                                                        | `multi_source_attention` |
| c_h, c_x            | never apart: `values` hold W_l times what they sum               | `multi_source_attention` |
| alpha_h, alpha_x    | `weights`; in outputs `state_attentions`, `knowledge_attentions` | `multi_source_attention` |
| beta_h, beta_x      | `scores`                                                         | `multi_source_attention` |
| W_s, W_k            | `state_scorer`, `knowledge_scorer`                               | `multi_source_attention` |
| W_l, b_l            | `merge`                                                          | `multi_source_attention` |
| R = (h, r, t)       | `triple_ids`; vectors `heads`, `relations`, `tails`              | `knowledge_encoders`     |
| g(x)                | `graph_vectors`                                                  | `knowledge_encoders`     |
| alpha_R, beta_R     | `weights`, `scores`; in outputs `triple_attentions`              | `knowledge_encoders`     |
| W_h, W_r, W_t       | `head_projection`, `relation_projection`, `tail_projection`      | `GraphAttention`         |
| BiGRU               | `forward_reader`, `backward_reader`                              | `ContextualAttention`    |
| M_R, W_c            | `vectors`, `memory_scorer`                                       | `ContextualAttention`    |
| W_0, b_0            | `lm_head`                                                        | here                     |
| Phi_en, Phi_de, Phi | `encoder_loss`, `ending_loss`, `loss`                            | `losses`, here           |

Shape letters: B stories, K sentences, L words, N triples, T words of the ending, S sources of attention, E word
vector, G graph vector, D hidden state, V vocabulary.

The configuration chooses the system: `story_encoder` a reader of `story_readers` (`sequence_reader` and
`hierarchical_reader` say how theirs differ from what follows), `knowledge` one of `knowledge_encoders` and `copy` the
mechanism of `copying`.

What the paper leaves open, decided here:

- **Symbols.** `input_ids` are words only. The encoder puts a start symbol before every sentence; supervised sentences
  and endings close with an end symbol, which is predicted and never read. Only the states at words are attended to.
- **First sentence.** It has nothing to attend to: its context vector is zero, a plain LSTM.
- **From sentence to sentence.** The state of all layers after the last word starts the next sentence, and the ending.
  A sentence without words is passed over, and the next one attends to the last sentence that had any.
- **Query and keys.** The top layer, before the step (query) and at the words of the preceding sentence (keys, values).
- **Word without triples.** An empty sum: its graph vector is zero and its score 0. It stays in the softmax over
  words, so that "no knowledge" can be attended to, unless `attend_empty_graphs` is false.
- **Scale of scores.** The weights of all scorers (W_s, W_k, W_c, W_r) are kept times the square root of the size of
  what they score, and scores divided by it. The equations are the same; learning is not (`multi_source_attention`).
- **Sizes.** c_l has D numbers; the GRU has E a direction, so that G = 2E in both knowledge encoders; W_h, W_r and W_t
  are E by E.
- **Dropout.** On word vectors entering the LSTM, between layers and before `lm_head`; not on recurrent
  connections, attention weights or the concepts inside graphs. The default is none.
- **Unit of the loss.** Both sums are divided by the number of ending words of the batch, so that
  `loss = ending_loss + encoder_loss_weight * encoder_loss` weighs every word alike, as the paper's sum does, and
  `exp(ending_loss)` is the perplexity of the endings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import Seq2SeqLMOutput

from .alike_rows import num_alike_rows, repeat_reading, repeat_rows
from .complete_endings import check_prompts, mask_of_open_endings, open_stories
from .configuration_incremental_encoder import IncrementalEncoderConfig
from .copying import CopyMemory, check_slots, sum_of_copy_losses
from .cpu_products import project_words
from .drawn_words import DrawnWords
from .forbidden_words import ForbiddenWords
from .loading import check_finite, check_shards, naming
from .losses import IGNORED, drawn_targets, next_word_targets, sum_of_cross_entropies, sum_of_losses
from .lstm import GateLinear, stack_state, unstack_state
from .pipeline_incremental_encoder import CUSTOM_PIPELINES
from .recurrent_cache import RecurrentCache
from .story_inputs import StoryInputs, check_target_ids, prepare_story_inputs, steps_to_read
from .story_reader import Reading, StoryEncoderOutput, StoryReader
from .story_readers import STORY_READERS, build_story_reader
from .supported_versions import made_with


@dataclass
class EndingGenerationOutput(Seq2SeqLMOutput):
    """
    A [`~transformers.modeling_outputs.Seq2SeqLMOutput`] with the two parts of the loss and with names for attentions.

    Args:
        loss (`torch.Tensor`, *optional*): `ending_loss + encoder_loss_weight * encoder_loss`, when `labels` are given.
        logits (`torch.Tensor` of shape `[B, T, V]`, or `[B, T, V + slots]` if words can be copied, *optional*):
            Scores of the next word. None in training mode with `labels`: the loss is made without holding them.
        past_key_values (`RecurrentCache`, *optional*): LSTM state after the last word.
        decoder_hidden_states (`tuple`, *optional*): Word vectors `[B, T, E]`, then each layer's states `[B, T, D]`.
        cross_attentions (`tuple`, *optional*):
            One tensor `[B, T, L]`, the ending's state attention. In systems that attend to all sentences it is
            `[B, T, K * L]`, sentence after sentence.
        decoder_attentions (`tuple`, *optional*): One tensor of that shape, the ending's knowledge attention.
        encoder_last_hidden_state, encoder_hidden_states, encoder_attentions: See [`StoryEncoderOutput`].
        ending_loss (`torch.Tensor`, *optional*): Mean negative log likelihood of an ending's word.
        encoder_loss (`torch.Tensor`, *optional*): Negative log likelihood of sentences 2..K, per word of the endings.
    """

    ending_loss: torch.Tensor | None = None
    encoder_loss: torch.Tensor | None = None

    @property
    def state_attentions(self) -> torch.Tensor | None:
        """[B, T, L]: what each step of the ending gave to the words of the last sentence."""
        return self.cross_attentions[0] if self.cross_attentions else None

    @property
    def knowledge_attentions(self) -> torch.Tensor | None:
        """[B, T, L]: what each step of the ending gave to the graphs of the last sentence."""
        return self.decoder_attentions[0] if self.decoder_attentions else None

    @property
    def encoder_state_attentions(self) -> torch.Tensor | None:
        """[B, K, L + 1, L]: what each step of a sentence gave to the words of the sentence before it."""
        return self.encoder_attentions[0] if self.encoder_attentions else None

    @property
    def encoder_knowledge_attentions(self) -> torch.Tensor | None:
        """[B, K, L + 1, L]: what each step of a sentence gave to the graphs of the sentence before it."""
        return self.encoder_attentions[1] if self.encoder_attentions and len(self.encoder_attentions) > 1 else None

    @property
    def triple_attentions(self) -> torch.Tensor | None:
        """[B, K, L, N]: weights of the triples inside the graph of each word."""
        return self.encoder_attentions[2] if self.encoder_attentions and len(self.encoder_attentions) > 1 else None


class IncrementalEncoderPreTrainedModel(PreTrainedModel):
    """Weight initialisation and what transformers wants to know of the architecture."""

    config_class = IncrementalEncoderConfig
    config: IncrementalEncoderConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = False
    _no_split_modules = [reader.__name__ for reader in STORY_READERS.values()]
    # Assisted decoding takes words back, which a recurrent state can't: generate() then refuses by itself.
    _is_stateful = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """
        Scales under which a state carries the words that were read from the first step on: gates see every word with
        unit variance, and states reach the vocabulary doubled. With smaller ones training stays for hundreds of
        steps at the entropy of single words. Modules that need a scale of their own carry it as `init_std`.
        """
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, nn.Linear):
            init.normal_(module.weight, std=getattr(module, "init_std", module.in_features**-0.5))
            if module.bias is not None:
                init.zeros_(module.bias)
            if isinstance(module, GateLinear) and module.bias is not None:
                init.copy_(module.bias, module.initial_bias())
        elif isinstance(module, nn.GRUCell):
            for name, parameter in module.named_parameters():
                init.zeros_(parameter) if name.startswith("bias") else init.xavier_uniform_(parameter)


class IncrementalEncoderForEndingGeneration(IncrementalEncoderPreTrainedModel, GenerationMixin):
    """
    Reads a story and writes a one-sentence ending.

    ```python
    >>> from transformers import AutoModel, AutoTokenizer
    >>> tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=True)
    >>> model = AutoModel.from_pretrained(path, trust_remote_code=True)
    >>> endings = model.generate(**tokenizer("Ann put a cake in the oven. She fell asleep.", return_tensors="pt"))
    >>> tokenizer.batch_decode(endings, skip_special_tokens=True)
    ```
    """

    _tied_weights_keys = {"lm_head.weight": "encoder.embed_tokens.weight"}

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        self.encoder = build_story_reader(config)
        self.dropout = nn.Dropout(config.dropout)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.lm_head.init_std = 2 * config.hidden_size**-0.5
        self.post_init()
        # As in the authors' code. Loading a checkpoint replaces it by the checkpoint's own settings.
        self.generation_config.max_new_tokens = 30

    def get_encoder(self, *args, **kwargs) -> StoryReader:
        return self.encoder

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value

    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        triple_ids: torch.LongTensor | None = None,
        triple_mask: torch.Tensor | None = None,
        copy_ids: torch.LongTensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        encoder_outputs: StoryEncoderOutput | tuple | None = None,
        past_key_values: RecurrentCache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> EndingGenerationOutput | tuple:
        r"""
        Args:
            input_ids (`torch.LongTensor` of shape `[B, K, L]`): Words of the story, without special symbols.
            attention_mask (`torch.Tensor` of shape `[B, K, L]`, *optional*): 1 at words, 0 at padding.
            triple_ids (`torch.LongTensor` of shape `[B, K, L, N, 3]`, *optional*):
                Triples of each word as head word, relation, tail word. None means that nothing is known.
            triple_mask (`torch.Tensor` of shape `[B, K, L, N]`, *optional*): 1 at triples, 0 at padding.
            copy_ids (`torch.LongTensor` of shape `[B, K, L]`, *optional*):
                If words can be copied: the ids under which the words of the story are copied, those of the vocabulary
                or, for words that it lacks, slots from `config.vocab_size` on; `input_ids` unless given. Then
                `labels` and `decoder_input_ids` may have the slots of their story.
            decoder_input_ids (`torch.LongTensor` of shape `[B, T]`, *optional*):
                What the decoder reads, the start symbol first; made from `labels` where those are given.
            decoder_attention_mask (`torch.Tensor` of shape `[B, T]`, *optional*):
                0 behind the end of a row, where nothing is read and all scores are 0; else 1.
            labels (`torch.LongTensor` of shape `[B, T]`, *optional*):
                The ending with its end symbol; -100 is ignored. Where the decoder's inputs are made from them, steps
                behind a story's last label are not read: what is returned for those means nothing.
            encoder_outputs (`StoryEncoderOutput`, *optional*):
                A story already encoded. The loss is then that of the ending alone.
            past_key_values (`RecurrentCache`, *optional*): State after the words that came before.
            use_cache (`bool`, *optional*): Return the state; `config.use_cache` unless given.
            output_attentions, output_hidden_states, return_dict (`bool`, *optional*): As everywhere in transformers.
            num_items_in_batch (`int`, *optional*):
                What the sums of losses are divided by, if not by this batch's number of ending words.
        """
        output_attentions = _given(output_attentions, self.config.output_attentions)
        output_hidden_states = _given(output_hidden_states, self.config.output_hidden_states)
        return_dict = _given(return_dict, self.config.return_dict)

        encoder_loss = None
        if encoder_outputs is None:
            inputs = prepare_story_inputs(self.config, input_ids, attention_mask, triple_ids, triple_mask, copy_ids)
            encoder_outputs, states = self.encoder.encode(inputs, output_attentions, output_hidden_states)
            if labels is not None and states is not None and self.config.encoder_loss_weight > 0:
                encoder_loss = self._encoder_loss(states, inputs)
        elif not isinstance(encoder_outputs, StoryEncoderOutput) and isinstance(encoder_outputs, (tuple, list)):
            encoder_outputs = StoryEncoderOutput.from_tuple(encoder_outputs, has_copies=self.config.copy)

        # Steps behind the last label do nothing for the loss; nobody else sees them, unless they were asked for.
        is_shortened = labels is not None and (self.training or decoder_input_ids is None)
        decoder_input_ids = self._decoder_inputs(decoder_input_ids, labels, encoder_outputs)
        step_mask = steps_to_read(decoder_input_ids, decoder_attention_mask, labels if is_shortened else None)
        reading, cache, num_alike = self._decode(decoder_input_ids, step_mask, encoder_outputs, past_key_values)
        copies, logits = encoder_outputs.copy_memory, None
        if labels is None or not self.training:
            logits = repeat_rows(self._score_words(reading.outputs, copies, _every(num_alike, step_mask)), num_alike)
        reading = repeat_reading(reading, num_alike)
        losses = self._losses(reading.outputs, copies, logits, labels, encoder_loss, num_items_in_batch)
        attentions = reading.attention.unbind(dim=2) if output_attentions else None
        output = EndingGenerationOutput(
            **losses,
            logits=logits,
            past_key_values=cache if _given(use_cache, self.config.use_cache) else None,
            decoder_hidden_states=(reading.word_vectors, *reading.layer_states) if output_hidden_states else None,
            cross_attentions=attentions and attentions[:1],
            decoder_attentions=attentions and (attentions[1:] or None),
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )
        return output if return_dict else output.to_tuple()

    def _encoder_loss(self, states: torch.Tensor, inputs: StoryInputs) -> torch.Tensor:
        """Sum of the losses of sentences 2..K, in training from a share of them; states are [B, K, L + 1, D]."""
        targets = next_word_targets(inputs.word_ids, inputs.word_mask, self.config.eos_token_id)
        share = self.config.encoder_loss_share if self.training else 1.0
        drawn = drawn_targets(targets[:, 1:], share)
        negatives = self._draw_negatives(states.device)
        return sum_of_losses(states[:, 1:], drawn, self.lm_head, self.dropout, negatives) / share

    def _draw_negatives(self, device: torch.device) -> DrawnWords | None:
        """Words that stand for the vocabulary in the loss of a batch; None where all of it counts."""
        num_negatives, num_words = self.config.num_negatives, self.config.vocab_size
        if not self.training or num_negatives is None or num_negatives >= num_words:
            return None
        return DrawnWords.draw(num_words, num_negatives, device)

    def _score_words(
        self, states: torch.Tensor, copies: CopyMemory | None, step_mask: torch.Tensor | None
    ) -> torch.Tensor:
        """
        States [B, T, D] -> scores of the next word [B, T, V] or, if words can be copied, [B, T, V + slots]; where
        nothing was read, all are 0.
        """
        states = self.dropout(states)
        logits = project_words(self.lm_head, states, step_mask)
        if copies is None:
            return logits
        mixed = self.encoder.copying.mix(logits, states, copies, self.config.num_copy_slots)
        return mixed if step_mask is None else mixed.masked_fill(~step_mask.unsqueeze(2), 0.0)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.LongTensor) -> torch.LongTensor:
        """What the decoder reads to predict `labels`: the start symbol, then all but the last."""
        start = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
        shifted = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.config.pad_token_id)
        return torch.cat((start, shifted), dim=1)

    def _decoder_inputs(
        self,
        decoder_input_ids: torch.LongTensor | None,
        labels: torch.LongTensor | None,
        encoder_outputs: StoryEncoderOutput,
    ) -> torch.LongTensor:
        batch_size = encoder_outputs.state_hidden.shape[0]
        if labels is not None:
            check_target_ids(self.config, "labels", labels, batch_size)
            if encoder_outputs.copy_memory is not None:
                check_slots(labels, encoder_outputs.copy_memory, self.config.vocab_size)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("Give `labels` or `decoder_input_ids`, or let `generate()` write the ending.")
            return self.prepare_decoder_input_ids_from_labels(labels)
        check_target_ids(self.config, "decoder_input_ids", decoder_input_ids, batch_size)
        if labels is not None and labels.shape != decoder_input_ids.shape:
            raise ValueError(
                f"`labels` {tuple(labels.shape)} and `decoder_input_ids` {tuple(decoder_input_ids.shape)} "
                "must have one shape."
            )
        return decoder_input_ids

    def _decode(
        self,
        word_ids: torch.LongTensor,
        step_mask: torch.Tensor | None,
        encoder_outputs: StoryEncoderOutput,
        cache: RecurrentCache | None,
    ) -> tuple[Reading, RecurrentCache, int]:
        """
        Read the words of the ending so far, from the cache's state or, at the start, from the encoder's. There, the
        reading is of one row of so many that are alike; the cache is always of all.
        """
        cache = RecurrentCache() if cache is None else cache
        if not hasattr(cache, "hidden"):
            raise ValueError(f"`past_key_values` must be a `RecurrentCache`; got {type(cache).__name__}.")
        is_start = cache.hidden is None
        num_alike = num_alike_rows(word_ids, step_mask, encoder_outputs) if is_start else 1
        state = encoder_outputs.state if is_start else unstack_state(cache.hidden, cache.cell)
        state = [(_every(num_alike, hidden), _every(num_alike, cell)) for hidden, cell in state]
        words, step_mask = _every(num_alike, word_ids), _every(num_alike, step_mask)
        reading = self.encoder.read(words, state, encoder_outputs.memory, step_mask, encoder_outputs.copy_memory)
        cache.update_state(*stack_state(reading.state), num_new_words=word_ids.shape[1])
        if num_alike > 1:
            cache.batch_repeat_interleave(num_alike)
        return reading, cache, num_alike

    def _losses(
        self,
        states: torch.Tensor,
        copies: CopyMemory | None,
        logits: torch.Tensor | None,
        labels: torch.LongTensor | None,
        encoder_loss: torch.Tensor | None,
        num_items_in_batch: torch.Tensor | int | None,
    ) -> dict[str, torch.Tensor]:
        if labels is None:
            return {}
        num_words = num_items_in_batch
        if num_words is None:
            # An ending without any label has loss 0, not 0 / 0.
            num_words = (labels != IGNORED).sum().clamp(min=1)
        negatives = self._draw_negatives(states.device)
        if logits is not None:
            ending_loss = sum_of_cross_entropies(logits, labels) / num_words
        elif copies is None:
            ending_loss = sum_of_losses(states, labels, self.lm_head, self.dropout, negatives) / num_words
        else:
            ending_loss = sum_of_copy_losses(self.dropout(states), labels, self.lm_head, copies, negatives) / num_words
        if encoder_loss is None:
            return {"loss": ending_loss, "ending_loss": ending_loss}
        encoder_loss = encoder_loss / num_words
        loss = ending_loss + self.config.encoder_loss_weight * encoder_loss
        return {"loss": loss, "ending_loss": ending_loss, "encoder_loss": encoder_loss}

    def generate(
        self,
        inputs: torch.Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        logits_processor: LogitsProcessorList | None = None,
        **kwargs: Any,
    ):
        """
        [`~transformers.GenerationMixin.generate`], which see for all arguments. The unknown word, padding and the
        start symbol are never produced, whatever the decoding strategy.
        """
        # generate() refuses masks of more than two dimensions; the encoder takes sentences and words run together.
        mask = kwargs.get("attention_mask")
        if mask is not None and mask.ndim == 3:
            kwargs["attention_mask"] = mask.flatten(1)
        words = (self.config.unk_token_id, self.config.pad_token_id, self.config.bos_token_id)
        settings = (generation_config, self.generation_config)
        keeps_logits = kwargs.get("output_logits") or any(getattr(given, "output_logits", None) for given in settings)
        processors = LogitsProcessorList([ForbiddenWords(words, in_place=not keeps_logits), *(logits_processor or [])])
        before = open_stories.set(None)
        try:
            return super().generate(inputs, generation_config, processors, **kwargs)
        finally:
            open_stories.reset(before)

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.LongTensor,
        next_sequence_length: int | None = None,
        is_first_iteration: bool | None = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The words that the state has not read, and all else but labels as it is: no positions."""
        kwargs.pop("labels", None)
        if next_sequence_length is not None:
            input_ids = input_ids[:, -next_sequence_length:]
        # Weights that wait elsewhere stand on no device.
        if (device := self.device).type != "meta":
            input_ids = input_ids.to(device)
        if is_first_iteration:
            check_prompts(kwargs.get("decoder_attention_mask"))
        else:
            # One that was given is for the words before.
            kwargs["decoder_attention_mask"] = mask_of_open_endings(input_ids, self.config.pad_token_id)
        return {**kwargs, "decoder_input_ids": input_ids.contiguous()}

    def _check_early_stop_heuristic(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Which stories beams may still improve. A version of transformers that does not ask costs time, no more."""
        is_open = super()._check_early_stop_heuristic(*args, **kwargs)
        open_stories.set(is_open)
        return is_open

    def _expand_inputs_for_generation(self, *args: Any, **kwargs: Any) -> tuple[torch.LongTensor, dict[str, Any]]:
        """Repeat rows for beams and samples, except what those of a story only read and can share."""
        outputs = kwargs.get("encoder_outputs")
        if not isinstance(outputs, StoryEncoderOutput):
            return super()._expand_inputs_for_generation(*args, **kwargs)
        shared = {name: outputs[name] for name in outputs.shared_by_beams}
        # A new one, because it is filled in place and the caller may go on using the old one.
        kwargs["encoder_outputs"] = type(outputs)(**{name: outputs[name] for name in outputs if name not in shared})
        input_ids, kwargs = super()._expand_inputs_for_generation(*args, **kwargs)
        for name, tensor in shared.items():
            kwargs["encoder_outputs"][name] = tensor
        return input_ids, kwargs

    def compute_transition_scores(
        self,
        sequences: torch.Tensor,
        scores: tuple[torch.Tensor, ...],
        beam_indices: torch.Tensor | None = None,
        normalize_logits: bool = False,
    ) -> torch.Tensor:
        """
        [`~transformers.GenerationMixin.compute_transition_scores`], which takes the number of scores from
        `config.vocab_size`: where words can be copied there are more.
        """
        if not self.config.copy:
            return super().compute_transition_scores(sequences, scores, beam_indices, normalize_logits)
        steps = torch.stack(scores)  # [T, rows, V + slots]
        steps = steps.log_softmax(dim=-1) if normalize_logits else steps
        if beam_indices is None:
            beam_indices = torch.arange(steps.shape[1], device=steps.device)[:, None].expand(-1, len(scores))
        is_finished = beam_indices < 0
        length = int((~is_finished).sum(dim=1).max())
        rows, is_finished = beam_indices[:, :length].clamp(min=0), is_finished[:, :length]
        chosen = steps[torch.arange(length, device=steps.device), rows, sequences[:, -length:]]
        return chosen.masked_fill(is_finished, 0.0)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # generate() would else hand over a cache of attention layers.
        return False

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        """
        [`~transformers.PreTrainedModel.from_pretrained`], for weights in safetensors only: pickled ones, which can run
        code, are never read. Weights that are not finite are refused.
        """
        if kwargs.get("use_safetensors") is False or kwargs.get("weights_only") is False:
            raise ValueError("`use_safetensors` and `weights_only` must be true: pickled weights are never read.")
        with naming(pretrained_model_name_or_path):
            check_shards(pretrained_model_name_or_path)
            loaded = super().from_pretrained(
                pretrained_model_name_or_path, *args, **{**kwargs, "use_safetensors": True}
            )
            check_finite(loaded[0] if isinstance(loaded, tuple) else loaded)
        return loaded

    def save_pretrained(self, save_directory, *args, **kwargs):
        # A class carries the name of one Auto class only; the second is added here, anew at every save.
        auto_map = dict(getattr(self.config, "auto_map", None) or {})
        auto_map["AutoModelForSeq2SeqLM"] = f"{type(self).__module__.rsplit('.', 1)[-1]}.{type(self).__name__}"
        self.config.auto_map = auto_map
        # Anew, because transformers puts classes in place of their names when it makes a pipeline.
        self.config.custom_pipelines = {task: dict(entry) for task, entry in CUSTOM_PIPELINES.items()}
        self.config.made_with = made_with()
        return super().save_pretrained(save_directory, *args, **kwargs)


def _every(number: int, rows: torch.Tensor | None) -> torch.Tensor | None:
    """The first row and every so many behind it."""
    return rows if rows is None or number == 1 else rows[::number]


def _given(value: bool | None, default: bool) -> bool:
    return default if value is None else value


IncrementalEncoderForEndingGeneration.register_for_auto_class("AutoModel")

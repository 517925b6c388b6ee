# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Configuration: every number of the model, declared once and checked when it is set."""

from __future__ import annotations

import transformers

from .loading import check_transformers, check_weight_files, error_context

# Before anything is asked of transformers that an old one does not have.
check_transformers()

# Far above any that could be trained: a corrupted number must not build modules for hours.
_MAX_LAYERS = 1000
# Words of a story that are not in the vocabulary; each is a column of all logits.
_MAX_COPY_SLOTS = 65_536

STORY_ENCODERS = ("incremental", "hierarchical", "sequence")
KNOWLEDGE_ENCODERS = ("graph_attention", "contextual_attention", None)
PREDICTION_VECTORS = ("attentional", "state")
RECURRENCE_IMPLEMENTATIONS = ("fused", "eager")


class IncrementalEncoderConfig(transformers.PreTrainedConfig):
    r"""
    Configuration of an [`IncrementalEncoderForEndingGeneration`]. The defaults are the sizes of the paper
    (Guan, Wang and Huang, AAAI 2019), with incremental encoding and contextual attention as the knowledge encoder.
    `story_encoder`, `knowledge` and `copy` together choose one of the paper's systems.

    Args:
        vocab_size (`int`, *optional*, defaults to 10000):
            Number of words, special symbols included.
        num_relations (`int`, *optional*, defaults to 45):
            Number of relation names that a triple may carry.
        embedding_size (`int`, *optional*, defaults to 200):
            Size of word vectors, which are also the vectors of concepts, and of relation vectors.
        hidden_size (`int`, *optional*, defaults to 512):
            Size of the LSTM states.
        num_layers (`int`, *optional*, defaults to 2):
            Layers of every LSTM.
        story_encoder (`str`, *optional*, defaults to `"incremental"`):
            How a story is read: `"incremental"` (the paper's IE, one LSTM for encoder and decoder), `"hierarchical"`
            (its HLSTM) or `"sequence"` (its Seq2Seq, which has no knowledge).
        knowledge (`str`, *optional*, defaults to `"contextual_attention"`):
            How a word's triples become its graph vector: `"graph_attention"`, `"contextual_attention"`, or `None` for
            the model that attends to hidden states only.
        prediction_vector (`str`, *optional*, defaults to `"attentional"`):
            What the next word is predicted from: `"state"`, the LSTM's state as in the paper's equations, or
            `"attentional"`, a vector made of the state and of what it attends to after the step, as in the authors'
            released code; the next sentence then attends to these vectors.
        attend_empty_graphs (`bool`, *optional*, defaults to `True`):
            Whether knowledge attention also goes to words without triples, whose graph vector is zero: a way to read
            no knowledge. If not, it is shared among the words that have triples.
        copy (`bool`, *optional*, defaults to `False`):
            Whether words of the story can be copied into the ending, those out of the vocabulary included.
        num_copy_slots (`int`, *optional*, defaults to 32):
            Out-of-vocabulary (OOV) words that one story can have ids for, if `copy`: they are numbered from
            `vocab_size` on, and logits of the next word have as many columns more.
        tail_pointer (`bool`, *optional*, defaults to `False`):
            Whether words can also come from the tails of the story's triples: see [`TailPointer`].
        ranker_size (`int`, *optional*):
            Size of the ending ranker's vectors, a multiple of `num_ranker_heads`; `None` for a model without ranker:
            see [`EndingRanker`].
        ranker_embedding_size (`int`, *optional*, defaults to 128):
            Size of the ending ranker's word vectors, which are projected to `ranker_size`.
        num_ranker_layers (`int`, *optional*, defaults to 4):
            Layers of the ending ranker.
        num_ranker_heads (`int`, *optional*, defaults to 12):
            Attention heads of its layers.
        ranker_dropout (`float`, *optional*, defaults to 0.1):
            Dropout in the ending ranker while it is trained.
        encoder_loss_weight (`float`, *optional*, defaults to 1.0):
            Weight of the supervision on the context sentences, which only incremental encoding has; 0 switches it off.
        encoder_loss_sampling_ratio (`float`, *optional*, defaults to 1.0):
            Share of the context's words, sampled anew for each batch, that this loss is computed on in training. It is
            scaled up, so that its expectation stays the same: a smaller ratio saves time, not weight.
        num_sampled_classes (`int`, *optional*):
            Classes of the sampled softmax in training, beside the targets; 512 in the authors' code. `None`, or at
            least `vocab_size`, for the full softmax. Ids should be sorted by falling frequency, as `storyend prepare`
            makes them: see [`SampledSoftmax`].
        dropout (`float`, *optional*, defaults to 0.0):
            Dropout on word vectors entering the LSTM, between its layers and before the vocabulary projection.
        tie_word_embeddings (`bool`, *optional*, defaults to `False`):
            Use the word vectors as weights of the vocabulary projection; needs `embedding_size == hidden_size`.
        initializer_range (`float`, *optional*, defaults to 1.0):
            Standard deviation of word and relation vectors before training. With tied word vectors, a smaller one such
            as `2 / sqrt(hidden_size)` suits the vocabulary projection; the gates are scaled to whatever it is.
        recurrence_implementation (`str`, *optional*, defaults to `"fused"`):
            How a sentence is computed: `"fused"` as one operation wherever that is possible, `"eager"` step by step,
            as the equations say. The results are the same.
        max_sentences (`int`, *optional*):
            Most sentences a story may have; no limit by default.
        max_sentence_length (`int`, *optional*):
            Most words a sentence may have; no limit by default.
        max_triples (`int`, *optional*, defaults to 10):
            Most triples a word may have; `None` for no limit.
        max_ending_length (`int`, *optional*, defaults to 128):
            Most symbols `labels` may have, the end symbol included; `None` for no limit.
        unk_token_id, pad_token_id, bos_token_id, eos_token_id (`int`, *optional*, default to 0, 1, 2, 3):
            The special symbols. `bos_token_id` is the start symbol of every sentence.
        decoder_start_token_id (`int`, *optional*):
            What the ending is started with; `bos_token_id` unless given.
        library_versions (`dict[str, str]`, *optional*):
            Versions of the libraries that the model was saved with, and of transformers that its code supports.
    """

    model_type = "incremental_encoder"
    attribute_map = {
        "num_hidden_layers": "num_layers",
        # Names in checkpoints of version 0.1.
        "encoder_loss_share": "encoder_loss_sampling_ratio",
        "num_negatives": "num_sampled_classes",
        "made_with": "library_versions",
    }
    # Evaluation loops stack whatever is not listed here; only the logits are worth it.
    keys_to_ignore_at_inference = [
        "ending_loss",
        "encoder_loss",
        "past_key_values",
        "decoder_hidden_states",
        "cross_attentions",
        "knowledge_attentions",
        "encoder_last_hidden_state",
        "encoder_hidden_states",
        "encoder_attentions",
    ]

    vocab_size: int = 10000
    num_relations: int = 45
    embedding_size: int = 200
    hidden_size: int = 512
    num_layers: int = 2
    story_encoder: str = "incremental"
    knowledge: str | None = "contextual_attention"
    prediction_vector: str = "attentional"
    attend_empty_graphs: bool = True
    copy: bool = False
    num_copy_slots: int = 32
    tail_pointer: bool = False
    ranker_size: int | None = None
    ranker_embedding_size: int = 128
    num_ranker_layers: int = 4
    num_ranker_heads: int = 12
    ranker_dropout: float = 0.1
    encoder_loss_weight: float = 1.0
    encoder_loss_sampling_ratio: float = 1.0
    num_sampled_classes: int | None = None
    dropout: float = 0.0
    tie_word_embeddings: bool = False
    initializer_range: float = 1.0
    recurrence_implementation: str = "fused"
    max_sentences: int | None = None
    max_sentence_length: int | None = None
    max_triples: int | None = 10
    max_ending_length: int | None = 128
    is_encoder_decoder: bool = True
    use_cache: bool = True
    unk_token_id: int = 0
    pad_token_id: int = 1
    bos_token_id: int = 2
    eos_token_id: int = 3
    decoder_start_token_id: int | None = None
    library_versions: dict[str, str] | None = None

    def __post_init__(self, **kwargs):
        if self.decoder_start_token_id is None:
            self.decoder_start_token_id = self.bos_token_id
        check_weight_files(kwargs.get("transformers_weights"))
        super().__post_init__(**kwargs)
        # Last, because names of version 0.1 are set from the keyword arguments.
        self._check_choices()
        self._check_sizes()
        self._check_ranges()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, **kwargs):
        """[`~transformers.PreTrainedConfig.from_pretrained`], whose errors name the model."""
        with error_context(pretrained_model_name_or_path):
            return super().from_pretrained(pretrained_model_name_or_path, **kwargs)

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """[`~transformers.PreTrainedConfig.from_dict`]; a configuration of version 0.1 keeps its meaning."""
        if "prediction_vector" not in config_dict:
            # Seq2Seq alone had an attentional vector there.
            is_sequence = config_dict.get("story_encoder") == "sequence"
            config_dict = {**config_dict, "prediction_vector": "attentional" if is_sequence else "state"}
        return super().from_dict(config_dict, **kwargs)

    @classmethod
    def for_tokenizer(cls, tokenizer, **kwargs) -> IncrementalEncoderConfig:
        """A configuration whose vocabulary, symbols, relations and triples are those of a tokenizer."""
        return cls(
            **{
                "vocab_size": len(tokenizer),
                "num_relations": max(1, len(tokenizer.knowledge.relations)),
                "max_triples": tokenizer.knowledge.max_triples,
                "unk_token_id": tokenizer.unk_token_id,
                "pad_token_id": tokenizer.pad_token_id,
                "bos_token_id": tokenizer.bos_token_id,
                "eos_token_id": tokenizer.eos_token_id,
                **_copy_settings(tokenizer),
                **kwargs,
            }
        )

    @property
    def graph_size(self) -> int:
        """Size of a graph vector: two word vectors in both knowledge encoders, 0 without knowledge."""
        return 0 if self.knowledge is None else 2 * self.embedding_size

    @property
    def num_output_words(self) -> int:
        """Columns of the logits of the next word: the vocabulary and, if words can be copied, the OOV ids."""
        return self.vocab_size + (self.num_copy_slots if self.copy else 0)

    def _check_sizes(self) -> None:
        optional = (
            "max_sentences",
            "max_sentence_length",
            "max_triples",
            "max_ending_length",
            "num_sampled_classes",
            "ranker_size",
        )
        sizes = ("vocab_size", "num_relations", "embedding_size", "hidden_size", "num_copy_slots")
        of_ranker = ("ranker_embedding_size", "num_ranker_heads")
        layers = ("num_layers", "num_ranker_layers")
        for name in (*sizes, *of_ranker, *layers, *optional):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
        for name in layers:
            if getattr(self, name) > _MAX_LAYERS:
                raise ValueError(f"`{name}` must be at most {_MAX_LAYERS}; got {getattr(self, name)}.")
        if self.ranker_size is not None and self.ranker_size % self.num_ranker_heads:
            raise ValueError(
                f"`ranker_size` must be a multiple of `num_ranker_heads` ({self.num_ranker_heads}); "
                f"got {self.ranker_size}."
            )
        if self.num_copy_slots > _MAX_COPY_SLOTS:
            raise ValueError(f"`num_copy_slots` must be at most {_MAX_COPY_SLOTS}; got {self.num_copy_slots}.")
        for name in ("unk_token_id", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < self.vocab_size:
                raise ValueError(f"`{name}` must be a word id below `vocab_size` ({self.vocab_size}); got {value!r}.")

    def _check_choices(self) -> None:
        for name, choices in (
            ("story_encoder", STORY_ENCODERS),
            ("knowledge", KNOWLEDGE_ENCODERS),
            ("prediction_vector", PREDICTION_VECTORS),
            ("recurrence_implementation", RECURRENCE_IMPLEMENTATIONS),
            ("attend_empty_graphs", (True, False)),
            ("copy", (True, False)),
            ("tail_pointer", (True, False)),
        ):
            if getattr(self, name) not in choices:
                allowed = ", ".join(map(repr, choices))
                raise ValueError(f"`{name}` must be one of {allowed}; got {getattr(self, name)!r}.")

    def _check_ranges(self) -> None:
        for name in ("dropout", "ranker_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"`{name}` must be at least 0 and below 1; got {getattr(self, name)!r}.")
        if not 0.0 <= self.encoder_loss_weight < float("inf"):
            raise ValueError(f"`encoder_loss_weight` must be 0 or more; got {self.encoder_loss_weight!r}.")
        ratio = self.encoder_loss_sampling_ratio
        if not 0.0 < ratio <= 1.0:
            raise ValueError(f"`encoder_loss_sampling_ratio` must be above 0 and at most 1; got {ratio!r}.")
        if not 0.0 < self.initializer_range < float("inf"):
            raise ValueError(f"`initializer_range` must be above 0; got {self.initializer_range!r}.")
        if self.tie_word_embeddings and self.embedding_size != self.hidden_size:
            raise ValueError(
                "`tie_word_embeddings` needs `embedding_size` equal to `hidden_size`; "
                f"got {self.embedding_size} and {self.hidden_size}."
            )


def _copy_settings(tokenizer) -> dict[str, int | bool]:
    # A tokenizer saved before words could be copied does not have the number.
    num_copy_slots = getattr(tokenizer, "num_copy_slots", 0)
    settings: dict[str, int | bool] = {"copy": True, "num_copy_slots": num_copy_slots} if num_copy_slots else {}
    return {**settings, "tail_pointer": True} if getattr(tokenizer, "tail_pointer", False) else settings


IncrementalEncoderConfig.register_for_auto_class()

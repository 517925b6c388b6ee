"""The configuration: checks, defaults, and names of version 0.1."""

import json

import pytest
from story_cases import NUM_WORDS, tiny_config

from hf_storyend import IncrementalEncoderConfig


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("knowledge", "graph", "`knowledge` must be one of 'graph_attention', 'contextual_attention', None"),
        ("story_encoder", "tree", "`story_encoder` must be one of 'incremental', 'hierarchical', 'sequence'"),
        ("prediction_vector", "luong", "`prediction_vector` must be one of 'attentional', 'state'"),
        ("recurrence_implementation", "flash", "`recurrence_implementation` must be one of 'fused', 'eager'"),
        ("copy", "yes", "`copy` must be one of True, False"),
        ("num_copy_slots", 0, "`num_copy_slots`"),
        ("initializer_range", 0.0, "`initializer_range`"),
        ("dropout", 1.0, "`dropout`"),
        ("encoder_loss_weight", -1.0, "`encoder_loss_weight`"),
        ("encoder_loss_weight", float("nan"), "`encoder_loss_weight`"),
        ("encoder_loss_sampling_ratio", 0.0, "`encoder_loss_sampling_ratio`"),
        ("encoder_loss_sampling_ratio", 1.5, "`encoder_loss_sampling_ratio`"),
        ("num_sampled_classes", 0, "`num_sampled_classes`"),
        ("num_layers", 0, "`num_layers`"),
        ("hidden_size", 2.5, "`hidden_size`"),
        ("max_triples", 0, "`max_triples`"),
        ("eos_token_id", NUM_WORDS, "`eos_token_id` must be a word id below `vocab_size`"),
        ("tie_word_embeddings", True, "`tie_word_embeddings` needs `embedding_size` equal"),
    ],
)
def test_impossible_values_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        tiny_config(**{field: value})


def test_the_number_of_layers_is_limited():
    with pytest.raises(ValueError, match="`num_layers` must be at most 1000"):
        tiny_config(num_layers=10**9)


@pytest.mark.parametrize(
    "old, new, value",
    [
        ("encoder_loss_share", "encoder_loss_sampling_ratio", 0.5),
        ("num_negatives", "num_sampled_classes", 9),
        ("made_with", "library_versions", {"torch": "2.13.0"}),
        ("num_hidden_layers", "num_layers", 3),
    ],
)
def test_names_of_version_0_1(old, new, value, tmp_path):
    """They load, from files and as arguments, can be read under both names, and are saved under the new one."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "incremental_encoder", old: value}))
    for config in (
        IncrementalEncoderConfig.from_pretrained(tmp_path),
        IncrementalEncoderConfig.from_dict({old: value}),
        IncrementalEncoderConfig(**{old: value}),
    ):
        assert getattr(config, new) == getattr(config, old) == value
        saved = config.to_dict()
        assert saved[new] == value and old not in saved
        assert old not in json.loads(config.to_json_string())


@pytest.mark.parametrize(
    "old, value, message",
    [
        ("encoder_loss_share", 2.0, "`encoder_loss_sampling_ratio` must be above 0"),
        ("num_negatives", 0, "`num_sampled_classes` must be a whole number"),
        ("num_hidden_layers", 10**9, "`num_layers` must be at most 1000"),
    ],
)
def test_old_names_are_checked_too(old, value, message):
    with pytest.raises(ValueError, match=message):
        IncrementalEncoderConfig(**{old: value})


@pytest.mark.parametrize("story_encoder", ["incremental", "hierarchical", "sequence"])
def test_the_prediction_vector_of_version_0_1(story_encoder):
    """There, Seq2Seq alone had an attentional vector, and configurations did not say so."""
    old = {"model_type": "incremental_encoder", "story_encoder": story_encoder, "knowledge": None}
    expected = "attentional" if story_encoder == "sequence" else "state"
    assert IncrementalEncoderConfig.from_dict(old).prediction_vector == expected


def test_derived_sizes():
    assert tiny_config(knowledge=None).graph_size == 0 and tiny_config().graph_size == 10
    assert tiny_config(copy=True, num_copy_slots=4).num_output_words == NUM_WORDS + 4
    assert tiny_config(num_copy_slots=4).num_output_words == NUM_WORDS
    assert tiny_config().decoder_start_token_id == tiny_config().bos_token_id


def test_for_a_tokenizer(tokenizer):
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, hidden_size=9)
    assert (config.vocab_size, config.num_relations, config.max_triples) == (len(tokenizer), 5, 3)
    assert config.hidden_size == 9 and not config.copy


def test_a_tokenizer_of_an_earlier_version_can_not_copy_or_point(tokenizer):
    """It lacks what later versions save."""
    tokenizer.num_copy_slots, tokenizer.tail_pointer = 4, True
    assert IncrementalEncoderConfig.for_tokenizer(tokenizer).tail_pointer
    del tokenizer.tail_pointer
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer)
    assert config.copy and config.num_copy_slots == 4 and not config.tail_pointer
    del tokenizer.num_copy_slots
    assert not IncrementalEncoderConfig.for_tokenizer(tokenizer).copy

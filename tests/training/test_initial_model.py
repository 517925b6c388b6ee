"""Models that runs start from: new, or with the weights of a trained one."""

from collections import Counter

import pytest
import torch

from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.training import TrainingOptions, build_model, load_training_data


def build(prepared, **options):
    options = TrainingOptions(data_dir=str(prepared), **options)
    data = load_training_data(options)
    return build_model(options, data), data.tokenizer


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory):
    model, tokenizer = build(prepared, system="ie-msa-ca", hidden_size=12, seed=3)
    directory = tmp_path_factory.mktemp("trained")
    model.half().save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def weights(directory):
    return IncrementalEncoderForEndingGeneration.from_pretrained(directory, dtype=torch.float32).state_dict()


def test_all_weights_and_sizes_are_taken_in_single_precision(prepared, trained):
    model, _ = build(prepared, system="ie-msa-ca", model_name_or_path=str(trained))
    assert model.config.hidden_size == 12
    for name, weight in weights(trained).items():
        torch.testing.assert_close(model.state_dict()[name], weight, rtol=0, atol=0)
        assert model.state_dict()[name].dtype == torch.float32


def test_another_system_takes_shared_weights_and_logs_missing_ones(prepared, trained, caplog):
    fresh, _ = build(prepared, system="ie-msa-ca-copy", hidden_size=12)
    model, tokenizer = build(prepared, system="ie-msa-ca-copy", model_name_or_path=str(trained))
    assert tokenizer.num_copy_slots == model.config.num_copy_slots > 0
    new = {"encoder.copying.scorer.weight", "encoder.copying.reader.weight"}
    assert set(model.state_dict()) - set(weights(trained)) == new
    for name in new:
        torch.testing.assert_close(model.state_dict()[name], fresh.state_dict()[name], rtol=0, atol=0)
        assert name in caplog.text


def test_tokens_of_another_vocabulary_keep_their_own_rows(trained, tmp_path):
    sizes = {"vocab_size": 500, "hidden_size": 10, "num_layers": 2, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=tmp_path / "larger", **sizes))
    fresh, _ = build(tmp_path / "larger", hidden_size=12)
    model, tokenizer = build(tmp_path / "larger", model_name_or_path=str(trained))
    theirs = IncrementalEncoderTokenizer.from_pretrained(trained).get_vocab()
    assert len(theirs) == 300 and len(tokenizer) == 500
    learnt, start, now = weights(trained), fresh.state_dict(), model.state_dict()
    for name in ("encoder.embed_tokens.weight", "lm_head.weight", "lm_head.bias"):
        for word, row in tokenizer.get_vocab().items():
            expected = learnt[name][theirs[word]] if word in theirs else start[name][row]
            assert torch.equal(now[name][row], expected), (name, word)


def test_another_size_is_refused_by_name(prepared, trained):
    with pytest.raises(ValueError, match=r"`encoder\.lstm\.word_gates\.weight` of shape .* take its system and sizes"):
        build(prepared, model_name_or_path=str(trained), hidden_size=14)


def test_unused_weights_are_logged(prepared, tmp_path, caplog):
    model, tokenizer = build(prepared, system="ie-msa-ca-copy")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    build(prepared, system="ie-msa-ca", model_name_or_path=str(tmp_path))
    assert "encoder.copying.scorer.weight" in caplog.text
    assert "which `--system ie-msa-ca` does not use" in caplog.text


def test_what_words_are_predicted_from_is_that_of_the_model_started_from(prepared, tmp_path):
    assert build(prepared, system="seq2seq")[0].config.prediction_vector == "attentional"
    model, tokenizer = build(prepared, prediction_vector="state")
    assert model.encoder.attentional is None
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert build(prepared, model_name_or_path=str(tmp_path))[0].config.prediction_vector == "state"
    changed, _ = build(prepared, model_name_or_path=str(tmp_path), prediction_vector="attentional")
    assert changed.encoder.attentional is not None


@pytest.mark.parametrize("asked", [None, True])
def test_how_the_model_attends_is_kept_unless_asked_otherwise(prepared, tmp_path, asked):
    model, tokenizer = build(prepared, attend_empty_graphs=False)
    assert not model.config.attend_empty_graphs
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, _ = build(prepared, model_name_or_path=str(tmp_path), attend_empty_graphs=asked)
    assert model.config.attend_empty_graphs is bool(asked)
    assert build(prepared)[0].config.attend_empty_graphs


def test_the_output_projection_starts_from_frequencies_and_embeddings(prepared):
    (model, _), data = build(prepared), load_training_data(TrainingOptions(data_dir=str(prepared)))
    counts: Counter = Counter()
    for story in data.tokenised["train"]:
        words = [word for sentence in story["input_ids"] for word in sentence]
        counts.update([*words, *story["labels"], *[model.config.eos_token_id] * (len(story["input_ids"]) - 1)])
    expected = torch.tensor([max(counts[index], 0.5) for index in range(model.config.vocab_size)]).log()
    torch.testing.assert_close(model.lm_head.bias, expected - expected.mean(), rtol=1e-4, atol=1e-4)
    # A projection of the embeddings, so of their rank.
    rank = torch.linalg.matrix_rank(model.lm_head.weight.double(), rtol=1e-4)
    assert rank <= model.config.embedding_size < min(model.lm_head.weight.shape)
    plain, _ = build(prepared, output_init="random")
    assert not plain.lm_head.bias.any()
    assert plain.lm_head.weight.std().item() == pytest.approx(model.lm_head.weight.std().item(), rel=0.1)


@pytest.mark.parametrize(
    ("system", "name"),
    [("ie-msa-ca", "encoder.knowledge.embed_relations"), ("ie-copy-tails", "encoder.tail_pointer.embed_relations")],
)
def test_relations_are_matched_by_name(prepared, tmp_path, system, name):
    """Data with other triples have other relations, in another order."""
    (tmp_path / "triples.tsv").write_text("UsedFor\tcake\tparty\nHasA\tcar\tdoor\n")
    first, tokenizer = build(prepared, system=system, hidden_size=12, seed=3)
    first.save_pretrained(tmp_path / "first")
    tokenizer.save_pretrained(tmp_path / "first")
    sizes = {"vocab_size": 300, "hidden_size": 10, "num_layers": 2, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=tmp_path / "other", conceptnet=(str(tmp_path / "triples.tsv"),), **sizes))
    model, own = build(tmp_path / "other", system=system, model_name_or_path=str(tmp_path / "first"))
    rows = model.state_dict()[f"{name}.weight"]
    learnt, theirs = first.state_dict()[f"{name}.weight"], tokenizer.knowledge.relations
    assert own.knowledge.relations and own.knowledge.relations != theirs
    for row, relation in enumerate(own.knowledge.relations):
        if relation in theirs:
            torch.testing.assert_close(rows[row], learnt[theirs.index(relation)], rtol=0, atol=0)

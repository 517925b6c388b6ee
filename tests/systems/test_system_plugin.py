"""Every system is an ordinary plugin model: saved, loaded without the package, trained, counted and listed."""

import json

import pytest
import torch
from story_cases import tiny_config
from system_cases import NEW_SYSTEMS, batch_for, tiny_system
from test_remote_code import STORY, WITHOUT_PACKAGE, run
from transformers import AutoModel
from typer.testing import CliRunner

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS, count_parameters, find_system

every = pytest.mark.parametrize("name", NEW_SYSTEMS)
V, R, E, D, G = 10_000, 45, 200, 512, 400
COPY_SLOTS = 4


def lstm(inputs, contexts=0):
    """Two layers whose first one reads `inputs` numbers and a context vector of `contexts`."""
    return 4 * D * (inputs + contexts + D + 1) + 4 * D * (2 * D + 1)


WORDS = V * E + V * (D + 1)
ATTENTION = D * D + D * D + D
KNOWLEDGE = R * E + 2 * D * G
GRAPH, CONTEXTUAL = 3 * E * E, 2 * 3 * E * (2 * E + 2) + D * G
HIERARCHY = WORDS + lstm(E) + lstm(D) + lstm(E, D) + ATTENTION + 2 * D * D
INCREMENTAL = WORDS + lstm(E, D) + ATTENTION
SIZES = {
    "seq2seq": WORDS + lstm(E) + lstm(E, D) + ATTENTION + D * D,
    "hlstm": HIERARCHY,
    "hlstm-copy": HIERARCHY + 2 * D * (D + E),
    "hlstm-msa-ga": HIERARCHY + KNOWLEDGE + GRAPH,
    "hlstm-msa-ca": HIERARCHY + KNOWLEDGE + CONTEXTUAL,
    "ie": INCREMENTAL,
    "ie-msa-ga": INCREMENTAL + KNOWLEDGE + GRAPH,
    "ie-msa-ca": INCREMENTAL + KNOWLEDGE + CONTEXTUAL,
    "ie-msa-ga-copy": INCREMENTAL + KNOWLEDGE + GRAPH + D * (D + E),
    "ie-msa-ca-copy": INCREMENTAL + KNOWLEDGE + CONTEXTUAL + D * (D + E),
}


def test_sizes_of_the_paper():
    assert {name: count_parameters(system) for name, system in SYSTEMS.items()} == SIZES
    assert count_parameters(find_system("ie"), hidden_size=8) < 200 * V + 9 * V + 10_000


def test_the_list_on_the_command_line(wide_terminal):
    from hf_storyend.cli.main import app

    result = CliRunner().invoke(app, ["systems", "--json"])
    rows = json.loads(result.output)
    assert [row["name"] for row in rows] == list(SYSTEMS)
    assert {row["name"]: row["parameters"] for row in rows} == SIZES
    assert sum(row["paper_name"] is not None for row in rows) == 8
    printed = CliRunner().invoke(app, ["systems"]).output
    assert all(name in printed and f"{SIZES[name]:,}" in printed for name in SYSTEMS)


def test_unknown_choices():
    with pytest.raises(ValueError, match="no system `ei`; choose one of seq2seq, hlstm"):
        find_system("ei")
    with pytest.raises(ValueError, match="`story_encoder` must be one of 'incremental', 'hierarchical', 'sequence'"):
        IncrementalEncoderForEndingGeneration(tiny_config(story_encoder="tree"))
    with pytest.raises(ValueError, match="`story_encoder='sequence'` reads no triples"):
        IncrementalEncoderForEndingGeneration(tiny_config(story_encoder="sequence"))
    with pytest.raises(ValueError, match="`copy` must be one of True, False"):
        tiny_config(copy="yes")
    with pytest.raises(ValueError, match="`num_copy_slots`"):
        tiny_config(num_copy_slots=0)


@every
def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    model, batch = tiny_system(name, torch.float32), batch_for(name, 0)
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.config.to_diff_dict() == model.config.to_diff_dict()
    assert all(torch.equal(weight, model.state_dict()[key]) for key, weight in loaded.state_dict().items())
    torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-6)


LOAD_ALL = """
from pathlib import Path
folders, story = sys.argv[1:-1], sys.argv[-1]
endings = {}
for folder in map(Path, folders):
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    ids = model.generate(**tokenizer(story, return_tensors="pt"), max_new_tokens=8, num_beams=2)
    endings[folder.name] = ids.tolist()
    model.save_pretrained(folder / "again")
print(json.dumps(endings))
"""


def test_round_trip_of_every_system_without_the_package(tokenizer, tmp_path):
    models, expected = {}, {}
    for name, system in SYSTEMS.items():
        tokenizer.num_copy_slots = COPY_SLOTS if system.copy else 0
        torch.manual_seed(0)
        config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12, **system.settings)
        models[name] = IncrementalEncoderForEndingGeneration(config).eval()
        models[name].save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        ids = models[name].generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=8, num_beams=2)
        expected[name] = ids.tolist()
    folders = [str(tmp_path / name) for name in SYSTEMS]
    result = run(WITHOUT_PACKAGE + LOAD_ALL, *folders, STORY, home=tmp_path / "home")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == expected
    for name, model in models.items():
        loaded = AutoModel.from_pretrained(tmp_path / name / "again")
        assert loaded.config.to_diff_dict() == model.config.to_diff_dict()


@every
def test_initial_states_are_neither_dead_nor_wild(name):
    """Words reach the state and the vocabulary before anything is learnt."""
    model = tiny_system(name, torch.float32, hidden_size=64, embedding_size=32)
    batch = batch_for(name, 1, num_stories=8)
    output = model(**batch, output_hidden_states=True)
    assert 0.02 < output.decoder_hidden_states[-1].std() < 0.8
    words = output.logits[..., : model.config.vocab_size]
    assert 0.05 < words.std() < 3.0


@every
def test_four_stories_are_learnt_by_heart(name):
    torch.manual_seed(0)
    model = tiny_system(name, torch.float32, hidden_size=32, embedding_size=24).train()
    batch = batch_for(name, 2, num_stories=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(80):
        loss = model(**batch).ending_loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss < 0.1
    context = {key: tensor for key, tensor in batch.items() if key != "labels"}
    endings = model.eval().generate(**context, max_new_tokens=batch["labels"].shape[1])
    for row, labels in zip(endings[:, 1:], batch["labels"], strict=True):
        real = labels[labels != -100]
        assert row[: len(real)].tolist() == real.tolist()


@pytest.mark.parametrize("name", ["seq2seq", "hlstm-copy"])
def test_tied_word_vectors_and_another_vocabulary(name):
    model = tiny_system(name, torch.float32, embedding_size=7, tie_word_embeddings=True)
    assert model.lm_head.weight is model.encoder.embed_tokens.weight
    model.resize_token_embeddings(30)
    batch = batch_for(name, 3)
    moved = {key: torch.where(batch[key] >= 23, batch[key] + 7, batch[key]) for key in ("copy_ids", "labels")}
    assert model(**{**batch, **moved}).logits.shape[2] == model.config.num_output_words

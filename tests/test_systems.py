"""The registry of systems: names, settings, sizes, and the list on the command line."""

import json

import pytest
from typer.testing import CliRunner

from hf_storyend import IncrementalEncoderConfig
from hf_storyend.systems import SYSTEMS, count_parameters, find_system, match_tokenizer

V, R, E, D, G = 10_000, 45, 200, 512, 400


def lstm(inputs, contexts=0):
    """Two layers whose first one reads `inputs` numbers and a context vector of `contexts`."""
    return 4 * D * (inputs + contexts + D + 1) + 4 * D * (2 * D + 1)


WORDS = V * E + V * (D + 1)
# Scorer, merge, and the projection of the attentional vector.
ATTENTION = D * D + D * D + D + D * D
KNOWLEDGE = R * E + 2 * D * G
GRAPH, CONTEXTUAL = 3 * E * E, 2 * 3 * E * (2 * E + 2) + D * G
HIERARCHY = WORDS + lstm(E) + lstm(D) + lstm(E, D) + ATTENTION + 2 * D * D
INCREMENTAL = WORDS + lstm(E, D) + ATTENTION
COPYING = D * (D + E)
TAILS = R * E + D * (3 * E + 1) + D * D + 2 * (D + 1)
SIZES = {
    "seq2seq": WORDS + lstm(E) + lstm(E, D) + ATTENTION,
    "hlstm": HIERARCHY,
    "hlstm-copy": HIERARCHY + 2 * D * (D + E),
    "hlstm-msa-ga": HIERARCHY + KNOWLEDGE + GRAPH,
    "hlstm-msa-ca": HIERARCHY + KNOWLEDGE + CONTEXTUAL,
    "ie": INCREMENTAL,
    "ie-msa-ga": INCREMENTAL + KNOWLEDGE + GRAPH,
    "ie-msa-ca": INCREMENTAL + KNOWLEDGE + CONTEXTUAL,
    "ie-copy": INCREMENTAL + COPYING,
    "ie-msa-ga-copy": INCREMENTAL + KNOWLEDGE + GRAPH + COPYING,
    "ie-msa-ca-copy": INCREMENTAL + KNOWLEDGE + CONTEXTUAL + COPYING,
    "ie-copy-tails": INCREMENTAL + COPYING + TAILS,
    "ie-msa-ga-copy-tails": INCREMENTAL + KNOWLEDGE + GRAPH + COPYING + TAILS,
    "ie-msa-ca-copy-tails": INCREMENTAL + KNOWLEDGE + CONTEXTUAL + COPYING + TAILS,
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


def test_an_unknown_system():
    with pytest.raises(ValueError, match="no system `ei`; choose one of seq2seq, hlstm"):
        find_system("ei")


def test_a_tokenizer_is_matched_to_its_model(tokenizer):
    match_tokenizer(tokenizer, IncrementalEncoderConfig(copy=True, num_copy_slots=7))
    assert tokenizer.num_copy_slots == 7
    match_tokenizer(tokenizer, IncrementalEncoderConfig())
    assert tokenizer.num_copy_slots == 0

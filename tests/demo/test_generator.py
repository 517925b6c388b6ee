"""The generator: explanations as by `explain`, deterministic, thread-safe, with a bounded cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from hf_storyend import default_model, explain
from hf_storyend.demo import EndingGenerator, EndingRequest, UserTriple
from hf_storyend.demo import generator as generator_module
from hf_storyend.demo.generator import ModelCache
from hf_storyend.demo.rendering import ending_html

STORY = ("Anna put a cake in the oven.", "The kitchen was full of smoke.", "The cake in the oven was burnt.")
TRIPLE = UserTriple(2, "oven", "Causes", "smoke")


@pytest.fixture(scope="module")
def generator(model_directory, copying_directory):
    return EndingGenerator([model_directory, copying_directory])


def ask(generator, **settings):
    return EndingRequest(**{"system": generator.systems[0], "sentences": STORY, **settings})


def endings(generator, **settings):
    return [explanation.ending for explanation in generator.generate(ask(generator, **settings)).endings]


def test_systems_are_named_by_directory_and_kind(generator):
    assert generator.systems == ["knowing (ie-msa-ga)", "copying (hlstm-copy)"]


def test_the_packages_model_is_the_default():
    (name,) = ModelCache().names
    assert name.startswith("default (")
    assert ModelCache([default_model()]).names == [name]


def test_directories_of_the_same_name_are_named_by_their_paths(model_directory, tmp_path):
    (tmp_path / "knowing").symlink_to(model_directory)
    other = tmp_path / "other" / "knowing"
    other.parent.mkdir()
    other.symlink_to(model_directory)
    names = ModelCache([str(tmp_path / "knowing"), str(other)]).names
    assert len(set(names)) == 2 and str(other) in names[1]


def test_a_directory_that_is_no_model_is_refused_at_once(tmp_path):
    with pytest.raises((OSError, ValueError), match="nothing_here"):
        EndingGenerator([str(tmp_path / "nothing_here")])


def test_models_are_loaded_once_on_first_use(model_directory, monkeypatch):
    loads = []
    load = generator_module.load
    monkeypatch.setattr(generator_module, "load", lambda name: loads.append(name) or load(name))
    cache = ModelCache([model_directory])
    assert loads == []
    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(cache.get, cache.names * 8)))) == 1
    assert loads == [model_directory]


def test_an_unknown_system_is_named(generator):
    with pytest.raises(ValueError, match=r"no system `gone`; choose one of knowing \(ie-msa-ga\), copying"):
        generator.generate(ask(generator, system="gone"))


@pytest.mark.parametrize("number", [0, 1])
def test_an_ending_is_explained_as_by_explain(generator, model_directory, copying_directory, number):
    folder = [model_directory, copying_directory][number]
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    (written,) = generator.generate(ask(generator, system=generator.systems[number])).endings
    assert written == explain(model, tokenizer, list(STORY))


def test_beam_search_and_sampling_give_the_number_of_endings_asked_for(generator):
    for decoding in ("beam_search", "sampling"):
        assert len(endings(generator, decoding=decoding, num_endings=6)) == 6
    likelihoods = [
        e.log_probability for e in generator.generate(ask(generator, decoding="beam_search", num_endings=6)).endings
    ]
    assert len(set(likelihoods)) == 6


def test_samples_depend_on_the_seed_and_on_nothing_else(model_directory):
    settings = {"decoding": "sampling", "num_endings": 4, "temperature": 1.5}
    first = endings(EndingGenerator([model_directory]), **settings)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    again = EndingGenerator([model_directory])
    assert endings(again, **settings) == first
    assert endings(again, **settings, seed=2) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_concurrent_requests_get_the_same_endings_as_alone(model_directory):
    requests = [
        {"decoding": decoding, "num_endings": 1 if decoding == "greedy" else 2, "seed": seed}
        for decoding in ("greedy", "beam_search", "sampling")
        for seed in range(8)
    ]
    alone = EndingGenerator([model_directory])
    expected = [endings(alone, **settings) for settings in requests]
    crowded = EndingGenerator([model_directory])
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda settings: endings(crowded, **settings), requests)) == expected


def test_endings_with_user_triples_are_compared_to_the_ending_without(generator, model_directory):
    written = generator.generate(ask(generator, triples=(TRIPLE,)))
    model, tokenizer = AutoModel.from_pretrained(model_directory), AutoTokenizer.from_pretrained(model_directory)
    expected = explain(model, tokenizer, list(STORY), triples=[TRIPLE.parts])
    assert written.endings == (expected,)
    attended = {(triple.head, triple.relation, triple.tail) for triple in written.endings[0].words[0].triple_attention}
    assert TRIPLE.parts in attended
    assert written.without_triples.ending == endings(generator)[0]
    # Only for that story: the next visitor does not have it.
    others = generator.generate(ask(generator)).endings[0].words[0].triple_attention
    assert TRIPLE.parts not in {(triple.head, triple.relation, triple.tail) for triple in others}


@pytest.mark.parametrize(
    ("triple", "problem"),
    [
        (
            UserTriple(3, "oven", "Hates", "cake"),
            "Triple 3 can't be used: .*relation 'Hates' is not one of AtLocation",
        ),
        (UserTriple(3, "oven", "Causes", "war"), "Triple 3 can't be used: .*'war' not in the vocabulary"),
        (UserTriple(3, "film", "Causes", "smoke"), "`Triple 3`: no word of the story has the triple"),
    ],
)
def test_a_triple_that_can_not_be_used_is_named_by_its_row(generator, triple, problem):
    with pytest.raises(ValueError, match=problem):
        generator.generate(ask(generator, triples=(TRIPLE, triple)))


def test_a_tail_pointer_alone_takes_the_visitors_triples(pointing_directory):
    generator = EndingGenerator([pointing_directory])
    assert generator.systems == ["pointing (ie-copy-tails)"]
    (ending,) = generator.generate(ask(generator, triples=(UserTriple(1, "oven", "Causes", "timer"),))).endings
    assert ending.evidence[0].triple == ("oven", "Causes", "timer")


def test_triples_for_a_system_without_knowledge_are_an_error(generator):
    with pytest.raises(ValueError, match=r"copying \(hlstm-copy\) reads no knowledge"):
        generator.generate(ask(generator, system=generator.systems[1], triples=(TRIPLE,)))


def test_the_cache_of_requests_is_bounded(model_directory):
    generator = EndingGenerator([model_directory])
    for seed in range(40):
        generator.generate(ask(generator, decoding="sampling", seed=seed))
    information = generator.generate.cache_info()
    assert information.currsize == information.maxsize < 40


def test_relations_are_those_of_the_model(generator, model_directory):
    tokenizer = AutoTokenizer.from_pretrained(model_directory)
    assert generator.relations(generator.systems[0]) == sorted(tokenizer.knowledge.relations)
    assert generator.relations(generator.systems[1]) == []
    assert generator.paths[0] == model_directory


def test_top_k_and_top_p_leave_the_likeliest_words(generator):
    greedy = endings(generator, decoding="greedy")
    sampling = {"decoding": "sampling", "temperature": 2.0, "num_endings": 3}
    for settings in ({"top_k": 1}, {"top_p": 0.05}):
        assert set(endings(generator, **sampling, **settings)) == set(greedy)
    assert set(endings(generator, **sampling)) != set(greedy)


def test_notes_on_the_story_stand_below_the_ending_with_and_without_triples(generator):
    for triples in ((), (TRIPLE,)):
        written = generator.generate(ask(generator, triples=triples, sentences=("Anna saw <b>zyx</b> in the oven.",)))
        assert any("zyx" in note for note in written.notes)
        html = ending_html(written, 0)
        assert html.count('class="note"') == len(written.notes) and "<b>" not in html

"""The writer behind the page: what `explain` says, the same for the same request; only the last ones are kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from hf_storyend import default_model, explain
from hf_storyend.demo import EndingRequest, EndingWriter, OwnTriple
from hf_storyend.demo.requests import SystemShelf

STORY = ("Anna put a cake in the oven.", "The kitchen was full of smoke.", "The cake in the oven was burnt.")
TRIPLE = OwnTriple(2, "oven", "Causes", "smoke")


@pytest.fixture(scope="module")
def writer(model_folder, plain_folder):
    return EndingWriter([model_folder, plain_folder])


def ask(writer, **settings):
    return EndingRequest(**{"system": writer.systems[0], "sentences": STORY, **settings})


def endings(writer, **settings):
    return [explanation.ending for explanation in writer.write(ask(writer, **settings)).endings]


def test_systems_are_named_by_directory_and_kind(writer):
    assert writer.systems == ["knowing (ie-msa-ga)", "plain (hlstm-copy)"]


def test_the_model_of_the_package_is_the_default():
    (name,) = SystemShelf().names
    assert name.startswith("default (")
    assert SystemShelf([default_model()]).names == [name]


def test_directories_of_the_same_name_are_told_apart_by_their_paths(model_folder, tmp_path):
    (tmp_path / "knowing").symlink_to(model_folder)
    other = tmp_path / "other" / "knowing"
    other.parent.mkdir()
    other.symlink_to(model_folder)
    names = SystemShelf([str(tmp_path / "knowing"), str(other)]).names
    assert len(set(names)) == 2 and str(other) in names[1]


def test_a_directory_that_is_no_model_is_refused_before_the_page_opens(tmp_path):
    with pytest.raises((OSError, ValueError), match="nothing_here"):
        EndingWriter([str(tmp_path / "nothing_here")])


def test_models_are_read_when_asked_for_and_once(model_folder, monkeypatch):
    loads = []
    load = AutoModel.from_pretrained
    monkeypatch.setattr(AutoModel, "from_pretrained", lambda name: loads.append(name) or load(name))
    shelf = SystemShelf([model_folder])
    assert loads == []
    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(shelf.get, shelf.names * 8)))) == 1
    assert loads == [model_folder]


def test_an_unknown_system_is_named(writer):
    with pytest.raises(ValueError, match=r"no system `gone`; choose one of knowing \(ie-msa-ga\), plain"):
        writer.write(ask(writer, system="gone"))


@pytest.mark.parametrize("number", [0, 1])
def test_an_ending_is_explained_as_by_explain(writer, model_folder, plain_folder, number):
    folder = [model_folder, plain_folder][number]
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    (written,) = writer.write(ask(writer, system=writer.systems[number])).endings
    assert written == explain(model, tokenizer, list(STORY), num_beams=1, do_sample=False)


def test_beams_and_samples_give_as_many_as_asked_for(writer):
    for mode in ("beams", "samples"):
        assert len(endings(writer, mode=mode, num_endings=6)) == 6
    likelihoods = [e.log_probability for e in writer.write(ask(writer, mode="beams", num_endings=6)).endings]
    assert len(set(likelihoods)) == 6


def test_samples_depend_on_the_seed_and_on_nothing_else(model_folder):
    settings = {"mode": "samples", "num_endings": 4, "temperature": 1.5}
    first = endings(EndingWriter([model_folder]), **settings)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    again = EndingWriter([model_folder])
    assert endings(again, **settings) == first
    assert endings(again, **settings, seed=2) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_visitors_at_the_same_time_get_what_each_would_get_alone(model_folder):
    requests = [
        {"mode": mode, "num_endings": 1 if mode == "greedy" else 2, "seed": seed}
        for mode in ("greedy", "beams", "samples")
        for seed in range(8)
    ]
    alone = EndingWriter([model_folder])
    expected = [endings(alone, **settings) for settings in requests]
    crowded = EndingWriter([model_folder])
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda settings: endings(crowded, **settings), requests)) == expected


def test_own_triples_are_read_and_compared(writer, model_folder):
    written = writer.write(ask(writer, triples=(TRIPLE,)))
    model, tokenizer = AutoModel.from_pretrained(model_folder), AutoTokenizer.from_pretrained(model_folder)
    expected = explain(model, tokenizer, list(STORY), triples=[TRIPLE.parts], num_beams=1, do_sample=False)
    assert written.endings == (expected,)
    read = {(triple.head, triple.relation, triple.tail) for triple in written.endings[0].words[0].triples}
    assert TRIPLE.parts in read
    assert written.without_triples == endings(writer)[0]
    # Only for that story: the next visitor does not have it.
    others = writer.write(ask(writer)).endings[0].words[0].triples
    assert TRIPLE.parts not in {(triple.head, triple.relation, triple.tail) for triple in others}


@pytest.mark.parametrize(
    ("triple", "problem"),
    [
        (OwnTriple(3, "oven", "Hates", "cake"), "Triple 3 can't be used: .*relation 'Hates' is not one of AtLocation"),
        (OwnTriple(3, "oven", "Causes", "war"), "Triple 3 can't be used: .*'war' not in the vocabulary"),
        (OwnTriple(3, "film", "Causes", "smoke"), "`Triple 3`: no word of the story reads"),
    ],
)
def test_a_triple_that_can_not_be_used_is_named_by_its_row(writer, triple, problem):
    with pytest.raises(ValueError, match=problem):
        writer.write(ask(writer, triples=(TRIPLE, triple)))


def test_triples_for_a_system_without_knowledge_are_an_error(writer):
    with pytest.raises(ValueError, match=r"plain \(hlstm-copy\) reads no knowledge"):
        writer.write(ask(writer, system=writer.systems[1], triples=(TRIPLE,)))


def test_only_the_last_requests_are_remembered(model_folder):
    writer = EndingWriter([model_folder])
    for seed in range(40):
        writer.write(ask(writer, mode="samples", seed=seed))
    information = writer.write.cache_info()
    assert information.currsize == information.maxsize < 40

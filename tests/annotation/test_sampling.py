"""Samples are random but reproducible, and reveal nothing about systems; keys read back."""

import json
import re

import pytest
from annotation.synthetic import synthetic_systems
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.annotation import draw_sample, read_key, read_systems, reference_system, write_sample


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 9), st.sampled_from([1, 3, 5]), st.integers(0, 99), st.data())
def test_every_ending_of_every_drawn_story_is_on_every_sheet_once(systems, there, annotators, seed, data):
    wanted = data.draw(st.integers(1, there))
    sample = draw_sample(synthetic_systems(systems, there), wanted, annotators, seed)
    assert len({story.line for story in sample.stories}) == wanted
    for item in sample.items:
        line = sample.stories[item.story].line
        assert sample.context(item) == (f"Story {line - 1}.",)
        assert f"Ending {line - 1} of {item.system.removeprefix('secret')}." == item.ending
    assert len({(item.story, item.system) for item in sample.items}) == len(sample.items) == systems * wanted
    for annotator in range(1, annotators + 1):
        assert sorted(sample.order(annotator)) == list(range(len(sample.items)))


def test_the_same_seed_draws_the_same_sample_and_another_seed_another():
    systems = synthetic_systems(2, 50)
    assert draw_sample(systems, 20, seed=3) == draw_sample(systems, 20, seed=3)
    drawn = {frozenset(story.line for story in draw_sample(systems, 20, seed=seed).stories) for seed in range(5)}
    assert len(drawn) == 5


def test_every_annotator_has_an_order_of_their_own_in_which_systems_are_mixed():
    sample = draw_sample(synthetic_systems(4, 50), 50)
    orders = [tuple(sample.order(annotator)) for annotator in (1, 2, 3)]
    assert len(set(orders)) == 3
    for order in orders:
        systems = [sample.items[place].system for place in order]
        first_half = [systems[:100].count(name) for name in sample.systems]
        assert all(10 < count < 40 for count in first_half), first_half


def test_the_number_of_an_item_does_not_tell_its_system():
    items = draw_sample(synthetic_systems(4, 50), 50).items
    assert [item.id for item in items] == [f"item-{number:03}" for number in range(1, 201)]
    for part in (*(items[remainder::4] for remainder in range(4)), *(items[start : start + 50] for start in (0, 150))):
        assert all(3 < sum(item.system == f"secret{system}" for item in part) < 25 for system in range(4))


def test_the_key_reads_back(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    assert read_key(tmp_path / "out" / "key.json") == sample


def test_references_can_be_scored_like_a_system(endings):
    systems = read_systems(endings)
    sample = draw_sample([*systems, reference_system(systems[0])], 4)
    assert sample.systems == ("plain", "graph", "reference")
    assert {item.ending for item in sample.items if item.system == "reference"} >= {"The end of Ada lost her key."}


def test_names_are_those_of_the_files_unless_given(endings):
    assert [system.name for system in read_systems(endings)] == ["plain", "graph"]
    assert [system.name for system in read_systems(endings, ["a", " b "])] == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "`names` has 1 names, `endings` 2 files"),
        (["a", "a"], "`names` must differ and not be blank; got 'a', 'a'"),
        (["a", " "], "`names` must differ and not be blank; got 'a', ''"),
    ],
)
def test_bad_names(endings, names, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_systems(endings, names)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "line 2: a blank line among the stories; every line must be one whole object"),
        ("[1]", "line 2: a JSON list; every line must be one whole object"),
        ('{"context": ["A."]}', "line 2: key `ending` is missing; there is 'context'."),
        ('{"context": "A.", "ending": "B."}', "line 2: `context` must be a list of at least one sentence; got 'A.'."),
        ('{"context": [], "ending": "B."}', "line 2: `context` must be a list of at least one sentence; got []."),
        ('{"context": ["A.", 3], "ending": "B."}', "line 2: `context[1]` must be a string; got 3."),
        ('{"context": ["A."], "ending": null}', "line 2: `ending` must be a string; got None."),
        ('{"context": ["A."], "ending": "B.", "reference": 1}', "line 2: `reference` must be a string; got 1."),
        ('{"context": ["A."], "ending": "\\ud800"}', "line 2: `ending` has half a character"),
    ],
)
def test_bad_lines_are_told_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "endings.jsonl"
    good = '{"context": ["A."], "ending": "B."}'
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {message}")):
        read_systems([path])


def test_files_must_have_the_same_stories(endings):
    one, two = endings
    lines = two.read_text().splitlines(keepends=True)
    two.write_text("".join([lines[0], lines[2], lines[1], lines[3]]))
    with pytest.raises(ValueError, match=re.escape(f"{two}, line 2: not the story on line 2 of {one}")):
        read_systems(endings)
    two.write_text("".join(lines[:3]))
    with pytest.raises(ValueError, match=re.escape(f"{two} ends after line 3, {one} goes on to line 4")):
        read_systems(endings)


def test_missing_references_are_told(tmp_path):
    path = tmp_path / "endings.jsonl"
    path.write_text('{"context": ["A."], "ending": "B."}\n')
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 1: key `reference` is missing")):
        reference_system(read_systems([path])[0])


def test_numbers_out_of_range(endings):
    systems = read_systems(endings)
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"`num_stories` must be from 1 to 4, .* got {number}"):
            draw_sample(systems, number)
    with pytest.raises(ValueError, match="`num_annotators` must be odd, .* got 2"):
        draw_sample(systems, 4, 2)
    with pytest.raises(ValueError, match="`endings` is empty"):
        read_systems([])


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"id": "sample-1"}'])
def test_other_files_are_no_key(tmp_path, content):
    path = tmp_path / "key.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="This is not the `key.json`"):
        read_key(path)


def test_a_key_without_an_item_is_refused(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    path = tmp_path / "out" / "key.json"
    content = json.loads(path.read_text())
    del content["items"][3]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="there is not one item for every story and system"):
        read_key(path)

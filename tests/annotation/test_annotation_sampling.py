"""Stories are drawn by chance but reproducibly; what annotators get tells nothing about systems."""

import json
import re

import pytest
from annotation.sheet_rows import rows_of
from hypothesis import given, settings
from hypothesis import strategies as some

from hf_storyend.annotation import draw_sample, read_key, read_systems, reference_system, write_sample
from hf_storyend.annotation.sampling import SystemEndings, WrittenEnding
from hf_storyend.annotation.sheets import render_page


def made_up(num_systems: int, num_stories: int) -> list[SystemEndings]:
    def written(system: int, story: int) -> WrittenEnding:
        return WrittenEnding((f"Story {story}.",), f"Ending {story} of {system}.", None)

    return [
        SystemEndings(f"secret{system}", None, tuple(written(system, story) for story in range(num_stories)))
        for system in range(num_systems)
    ]


@settings(deadline=None, max_examples=30)
@given(some.integers(1, 4), some.integers(1, 9), some.sampled_from([1, 3, 5]), some.integers(0, 99), some.data())
def test_every_ending_of_every_drawn_story_is_on_every_sheet_once(systems, there, annotators, seed, data):
    wanted = data.draw(some.integers(1, there))
    sample = draw_sample(made_up(systems, there), wanted, annotators, seed)
    assert len({story.line for story in sample.stories}) == wanted
    for item in sample.items:
        line = sample.stories[item.story].line
        assert sample.context(item) == (f"Story {line - 1}.",)
        assert f"Ending {line - 1} of {item.system.removeprefix('secret')}." == item.ending
    assert len({(item.story, item.system) for item in sample.items}) == len(sample.items) == systems * wanted
    for annotator in range(1, annotators + 1):
        assert sorted(sample.order(annotator)) == list(range(len(sample.items)))


def test_the_same_seed_draws_the_same_sample_and_another_seed_another():
    systems = made_up(2, 50)
    assert draw_sample(systems, 20, seed=3) == draw_sample(systems, 20, seed=3)
    drawn = {frozenset(story.line for story in draw_sample(systems, 20, seed=seed).stories) for seed in range(5)}
    assert len(drawn) == 5


def test_every_annotator_has_an_order_of_their_own_in_which_systems_are_mixed():
    sample = draw_sample(made_up(4, 50), 50)
    orders = [tuple(sample.order(annotator)) for annotator in (1, 2, 3)]
    assert len(set(orders)) == 3
    for order in orders:
        systems = [sample.items[place].system for place in order]
        first_half = [systems[:100].count(name) for name in sample.systems]
        assert all(10 < count < 40 for count in first_half), first_half


def test_the_number_of_an_item_does_not_tell_its_system():
    items = draw_sample(made_up(4, 50), 50).items
    assert [item.id for item in items] == [f"item-{number:03}" for number in range(1, 201)]
    for part in (*(items[remainder::4] for remainder in range(4)), *(items[start : start + 50] for start in (0, 150))):
        assert all(3 < sum(item.system == f"secret{system}" for item in part) < 25 for system in range(4))


def test_neither_sheets_nor_page_name_a_system(tmp_path):
    write_sample(draw_sample(made_up(3, 5), 5), tmp_path / "out")
    files = list((tmp_path / "out" / "sheets").iterdir())
    assert {path.name for path in files} == {
        "annotate.html", "guidelines.md", "sheet_1.csv", "sheet_2.csv", "sheet_3.csv"
    }  # fmt: skip
    for path in files:
        assert "secret" not in path.read_text()
    assert "secret" in (tmp_path / "out" / "key.json").read_text()


def test_sheets_show_story_and_ending_and_leave_scores_blank(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    rows = rows_of(tmp_path / "out" / "sheets" / "sheet_2.csv")
    assert list(rows[0]) == [
        "sample", "annotator", "item", "context", "ending", "grammar", "logicality", "error_type"
    ]  # fmt: skip
    assert [row["item"] for row in rows] == [sample.items[place].id for place in sample.order(2)]
    assert {(row["annotator"], row["grammar"], row["logicality"], row["error_type"]) for row in rows} == {
        ("2", "", "", "")
    }
    assert "[no ending]" in {row["ending"] for row in rows}


def test_the_key_reads_back(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    assert read_key(tmp_path / "out" / "key.json") == sample


def test_a_directory_with_scores_is_never_overwritten(sample, tmp_path):
    write_sample(sample, tmp_path / "out")
    with pytest.raises(ValueError, match="maybe with scores in it. Name another"):
        write_sample(sample, tmp_path / "out")
    (tmp_path / "empty").mkdir()
    write_sample(sample, tmp_path / "empty")
    assert (tmp_path / "empty" / "key.json").is_file()


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


def test_numbers_that_can_not_be(endings):
    systems = read_systems(endings)
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"`num_stories` must be from 1 to 4, .* got {number}"):
            draw_sample(systems, number)
    with pytest.raises(ValueError, match="`num_annotators` must be odd, .* got 2"):
        draw_sample(systems, 4, 2)
    with pytest.raises(ValueError, match="`endings` is empty"):
        read_systems([])


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"id": "sample-1"}'])
def test_what_is_no_key_is_refused(tmp_path, content):
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


def test_the_page_holds_stories_only_as_data_that_can_not_end_its_element(sample):
    page = render_page(sample)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
    assert not set("<>&") & set(data)
    assert [tuple(story) for story in json.loads(data)["stories"]] == [story.context for story in sample.stories]
    assert page.count("</script>") == 2


def test_the_page_needs_nothing_from_outside(sample):
    page = re.sub(r'(id="data">).*?<', r"\1<", render_page(sample), flags=re.S)
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:https?:)?//\w+\.\w+|<link|@import|url\(|\ssrc=""", page)


def test_csv_quotes_every_cell(sample, tmp_path):
    """A separator of another locale inside a text must not start a cell."""
    write_sample(sample, tmp_path / "out")
    lines = (tmp_path / "out" / "sheets" / "sheet_1.csv").read_bytes().decode().split("\r\n")
    assert len(lines) == 1 + len(sample.items) + 1
    assert all(re.fullmatch(r'("([^"]|"")*",){7}"([^"]|"")*"', line) for line in lines[:-1])

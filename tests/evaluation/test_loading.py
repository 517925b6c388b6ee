"""Files of endings and splits of stories."""

import gzip
import json

import pytest
from datasets import Dataset

from hf_storyend.data import load_stories
from hf_storyend.evaluation.loading import load_split, read_endings

STORIES = Dataset.from_list(
    [
        {"context": ["Anna put a cake in the oven."], "ending": "The cake was burnt."},
        {"context": ["Tom saw a film.", "It was long."], "ending": "Tom fell asleep | at once."},
    ]
)


def test_text_has_an_ending_a_line(tmp_path):
    path = tmp_path / "endings.txt"
    path.write_bytes("The cake was burnt .\r\nTom slept \u2028 well .\r\n".encode())
    assert read_endings(path, STORIES) == [{"ending": "The cake was burnt ."}, {"ending": "Tom slept \u2028 well ."}]
    path.write_text("The cake was burnt .\n\n")
    assert read_endings(path, STORIES)[1] == {"ending": ""}


def test_endings_as_json_lines_may_be_gzipped_and_name_their_story(tmp_path):
    path = tmp_path / "endings.jsonl.gz"
    rows = [{"ending": "A"}, {"ending": "B", "context": ["Tom saw a film .", "it was long ."]}]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert read_endings(path, STORIES) == rows


def test_the_first_stories_of_a_longer_file(tmp_path):
    path = tmp_path / "endings.txt"
    path.write_text("one\ntwo\n")
    assert read_endings(path, STORIES.select([0]), max_stories=1) == [{"ending": "one"}]
    with pytest.raises(ValueError, match="2 endings for 1 stories"):
        read_endings(path, STORIES.select([0]))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.txt", "one\n", "x.txt has 1 endings for 2 stories"),
        ("x.txt", "", "x.txt has 0 endings for 2 stories"),
        ("x.jsonl", '{"ending": "a"}\n{"ending": "b"\n', r"x.jsonl, line 2: column 15: not JSON"),
        ("x.jsonl", '{"ending": "a"}\n{"ending": 3}\n', "x.jsonl, line 2: must be an object with `ending`"),
        ("x.jsonl", '{"ending": "a"}\n["b"]\n', "x.jsonl, line 2: must be an object"),
        ("x.jsonl", '{"ending": "a"}\n\n', "x.jsonl, line 2: column 1: not JSON"),
        (
            "x.jsonl",
            '{"ending": "a", "context": ["We saw mice."]}\n{"ending": "b"}\n',
            "line 1: `context` is not that",
        ),
        ("x.jsonl", '{"ending": "a", "context": [3]}\n{"ending": "b"}\n', "line 1: `context` is not that"),
    ],
)
def test_bad_endings(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_endings(path, STORIES)


def write_splits(folder, **splits):
    folder.mkdir()
    for name, endings in splits.items():
        rows = [json.dumps({"context": ["It rained."], "ending": ending}) + "\n" for ending in endings]
        (folder / f"{name}.jsonl").write_text("".join(rows))


def test_a_directory_with_training_stories_gives_their_endings(tmp_path):
    write_splits(tmp_path / "data", train=["We got wet.", "We got wet.", "No."], val=["Sun."], test=["Snow.", "Rain."])
    stories, training_endings = load_split(str(tmp_path / "data"), "test")
    assert list(stories["ending"]) == ["Snow.", "Rain."]
    assert training_endings == ["We got wet.", "We got wet.", "No."]
    assert list(load_split(str(tmp_path / "data"), "val")[0]["ending"]) == ["Sun."]
    assert load_split(str(tmp_path / "data" / "test.jsonl"))[1] is None
    with pytest.raises(ValueError, match="no split `exam`; there is train, validation, test"):
        load_split(str(tmp_path / "data"), "exam")


def test_a_prepared_directory_holds_stories(tmp_path):
    write_splits(tmp_path / "data", train=["We got wet."], test=["Snow."])
    load_stories(tmp_path / "data").save_to_disk(tmp_path / "prepared" / "stories")
    stories, training_endings = load_split(str(tmp_path / "prepared"))
    assert list(stories["ending"]) == ["Snow."] and training_endings == ["We got wet."]

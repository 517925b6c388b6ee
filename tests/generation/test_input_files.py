"""Files of stories to end: JSON Lines, CSV and text, read as a stream; errors name the line."""

import gzip
import hashlib
import json
from functools import partial

import pytest

from hf_storyend.generation.input_files import file_format, scan_stories, stream_stories
from hf_storyend.story_text import check_story_size

STORIES = ["Anna put a cake in the oven. She fell asleep.", 'Tom said "hi, you". It rained.']
CHECK = partial(check_story_size, max_sentences=5, max_sentence_length=9)


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def stories_of(path, **settings):
    return [(story.line, story.story) for story in stream_stories(path, **settings)]


def test_a_line_of_text_is_a_story(tmp_path):
    path = write(tmp_path / "a.txt", "\n".join(STORIES) + "\n\n")
    assert stories_of(path) == list(enumerate(STORIES, start=1))
    assert next(stream_stories(path)).record == {"story": STORIES[0]}


@pytest.mark.parametrize("key", ["story", "context", "text"])
def test_objects_keep_what_they_have_and_an_ending_becomes_the_reference(tmp_path, key):
    records = [{"id": 7, key: STORIES[0], "ending": "Smoke."}, {key: ["It rained.", "Tom slept."]}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    first, second = stream_stories(path)
    assert first.story == STORIES[0] and first.record == {"id": 7, key: STORIES[0], "reference": "Smoke."}
    assert second.story == ["It rained.", "Tom slept."] and second.record == records[1]


def test_triples_of_a_story(tmp_path):
    record = {"story": STORIES[0], "triples": [["oven", "UsedFor", "bake"]]}
    (story,) = stream_stories(write(tmp_path / "a.jsonl", json.dumps(record)))
    assert story.triples == (("oven", "UsedFor", "bake"),)


def test_columns_of_csv(tmp_path):
    content = 'id,story\n1,"Tom said ""hi"", and\nleft. It rained."\n2,It rained.\n'
    path = write(tmp_path / "a.csv", content)
    assert stories_of(path) == [(2, 'Tom said "hi", and\nleft. It rained.'), (4, "It rained.")]
    assert next(stream_stories(path)).record["id"] == "1"


@pytest.mark.parametrize("name", ["sentence{}", "InputSentence{}", "sentence_{}"])
def test_sentences_in_columns_of_csv(tmp_path, name):
    header = ",".join(name.format(number) for number in range(1, 5))
    (story,) = stream_stories(write(tmp_path / "a.csv", f"storyid,{header}\nx,A b.,C d.,E f.,G h.\n"))
    assert story.story == ["A b.", "C d.", "E f.", "G h."]
    assert story.record == {"storyid": "x", "context": story.story}


def test_the_fifth_sentence_of_rocstories_is_the_reference(tmp_path):
    header = ",".join(f"sentence{number}" for number in range(1, 6))
    (story,) = stream_stories(write(tmp_path / "a.csv", f"{header}\nA b.,C d.,E f.,G h.,I j.\n"))
    assert story.story[-1] == "G h." and story.record["reference"] == "I j."


def test_gzip_and_the_digest_of_the_content(tmp_path):
    content = "\n".join(STORIES).encode()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content))
    scanned = {scan_stories(tmp_path / name, None, CHECK) for name in ("a.txt", "a.txt.gz")}
    assert scanned == {(2, hashlib.sha256(content).hexdigest())}


@pytest.mark.parametrize("name", ["a.jsonl", "A.JSON", "a.ndjson.gz"])
def test_the_name_tells_the_format(tmp_path, name):
    assert file_format(tmp_path / name) == "jsonl"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", "Story.", "its name doesn't say what is in it"),
        ("a.txt", "", "is empty: there is no story in it"),
        ("a.txt", "One.\n\nTwo.", "line 2: a blank line among the stories"),
        ("a.txt", "One.\n\u200b\n", "line 2: `story` is blank"),
        ("a.txt", "One. Two. Three. Four. Five. Six.", "line 1: The story has 6 sentences, more than 5"),
        ("a.txt", "It rained.\n" + "and " * 12, "line 2: Sentence 1 of the story has 12 words, more than 9"),
        ("a.jsonl", '{"story": "A."}\n{"story": 3}', "line 2: `story` must be a string; got 3"),
        ("a.jsonl", '{"context": ["A.", ""]}', "line 1: `context, sentence 2` is blank"),
        ("a.jsonl", '{"tale": "A."}', "line 1: no key `story`, `context` or `text`; there is 'tale'"),
        ("a.jsonl", "[1]", "line 1: a JSON list where there should be an object"),
        ("a.jsonl", '{"story": "A."}\n{"story"', "line 2: column 9"),
        ("a.jsonl", '{"story": "A.", "triples": [["a", "b"]]}', "line 1: `triples` must be lists of head"),
        ("a.csv", "id,tale\n1,A.\n", "line 1: the columns are 'id', 'tale', but there must be `story`"),
        ("a.csv", "id,story\n1,A.\n2,B, C.\n", "line 3: 3 columns, the header has 2"),
        ("a.csv", 'id,story\n1,"A.\n', "line 2: the row that starts here is not valid CSV"),
        ("a.csv", "sentence1,sentence3\nA.,B.\n", "there must be `story`, or `sentence1`, `sentence2`"),
    ],
)
def test_errors_name_the_line(tmp_path, name, content, message):
    with pytest.raises(ValueError) as error:
        scan_stories(write(tmp_path / name, content), None, CHECK)
    assert message in str(error.value)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes("Café.\n".encode("latin-1"))
    with pytest.raises(ValueError, match="line 1: not UTF-8 text"):
        list(stream_stories(tmp_path / "a.txt"))
    with pytest.raises(ValueError, match="can't be opened"):
        list(stream_stories(tmp_path / "none.txt"))


def test_a_file_is_read_as_far_as_it_is_asked_for(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"story": "One."}\n' * 3 + "no JSON\n")
    stories = stream_stories(path)
    assert [next(stories).line for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="line 4"):
        next(stories)

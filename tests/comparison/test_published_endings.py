"""Published endings: no sentence of the corpus is among them, and whoever has the corpus gets the same text back."""

import gzip
import json

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.comparison.endings import Corpus, find_corpus_sentences, letters, write_published_endings

CONTEXT = ["Mei baked a cake.", "It was 5 o'clock."]
STORIES = {"context": [CONTEXT], "ending": ["She ate it all !"]}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(DatasetDict({"train": Dataset.from_dict(STORIES)}))


def test_endings_of_their_own_stand_as_text(corpus):
    assert corpus.record(3, "She ate half of it.") == {"story": 3, "ending": "She ate half of it."}


@pytest.mark.parametrize("ending", ["she ate it all.", "She ate it all!", "MEI BAKED A CAKE", "It was 5 o'clock ."])
def test_sentences_of_the_corpus_stand_as_digests_and_come_back(corpus, ending):
    record = corpus.record(0, ending)
    (part,) = record["parts"]
    assert set(part) == {"sha256", "shape"} and letters(ending) not in letters(json.dumps(record))
    assert corpus.restore(record) == ending


def test_a_sentence_within_an_ending_is_found(corpus):
    ending = "Nobody came.  She ate it all. Then she slept."
    record = corpus.record(0, ending)
    assert [sorted(part) for part in record["parts"]] == [["text"], ["sha256", "shape"], ["text"]]
    assert corpus.restore(record) == ending


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=30))
def test_any_text_comes_back(text):
    stories = DatasetDict({"test": Dataset.from_dict({"context": [[text.upper()]], "ending": ["The end."]})})
    corpus = Corpus(stories)
    assert corpus.restore(corpus.record(0, text)) == text


def test_marks_alone_are_no_sentence(corpus):
    assert corpus.record(0, "!") == {"story": 0, "ending": "!"}


def test_other_stories_are_told(corpus):
    other = Corpus(DatasetDict({"train": Dataset.from_dict({"context": [["A."]], "ending": ["B."]})}))
    with pytest.raises(ValueError, match="ending of story 7.*give the stories"):
        other.restore(corpus.record(7, "She ate it all."))


def test_the_file_is_compressed_and_checked(corpus, tmp_path):
    path = tmp_path / "endings.jsonl.gz"
    records = [{"ending": ending, "loss": 1.5, "num_words": 3} for ending in ("She ran.", "She ate it all.")]
    assert write_published_endings(records, corpus, path) == 1 and find_corpus_sentences(path, corpus) == []
    first = path.read_bytes()
    write_published_endings(records, corpus, path)
    assert path.read_bytes() == first, "The same endings are the same file."
    written = [json.loads(line) for line in gzip.decompress(first).decode().splitlines()]
    assert written[0] == {"story": 0, "ending": "She ran.", "loss": 1.5, "num_words": 3}
    for bad in ({"ending": "Ah. she ate it all"}, {"parts": [{"text": "She ran. "}, {"text": "Mei baked a cake"}]}):
        path.write_bytes(gzip.compress(json.dumps({"story": 4, **bad}).encode()))
        assert find_corpus_sentences(path, corpus) == [4]

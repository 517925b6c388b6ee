"""The vocabulary holds the most frequent words and their truecasing."""

import pytest

from hf_storyend.data.vocabulary import build_vocabulary


def test_order_ties_and_size():
    vocabulary = build_vocabulary(["b a b c.", "Tom saw Tom."], size=7)
    assert list(vocabulary.ids) == ["<unk>", "<pad>", "<s>", "</s>", ".", "b", "tom"]
    assert vocabulary.counts == {".": 2, "b": 2, "tom": 2}
    assert vocabulary.word_forms == {"tom": "Tom"}
    assert vocabulary.coverage == 6 / 9
    cased = build_vocabulary(["Tom's tom."], lower_case=False, split_contractions=False)
    assert set(cased.ids) >= {"Tom's", "tom"} and cased.word_forms == {}


@pytest.mark.parametrize(
    ("sentences", "size", "message"), [(["A."], 4, "`size` must be above 4"), ([], 10, "There is no word")]
)
def test_bad_arguments(sentences, size, message):
    with pytest.raises(ValueError, match=message):
        build_vocabulary(sentences, size)

"""Which stories end with a word that few training stories have."""

import pytest
from datasets import Dataset

from hf_storyend.data.rare_words import have_rare_words

TRAINING = Dataset.from_list(
    [
        {"context": ["Tom saw a lake.", "A lake is wet."], "ending": "Tom swam."},
        {"context": ["Tom saw a dog."], "ending": "The dog swam in the lake."},
    ]
)


def flags(tokenizer, context: list[str], **settings) -> bool:
    return have_rare_words(Dataset.from_list([{"context": context}]), TRAINING, tokenizer, **settings)[0]


@pytest.mark.parametrize(
    ("sentence", "min_stories", "is_rare"),
    [
        ("Tom swam in the LAKE!", 2, False),
        ("The lake is wet.", 2, True),
        ("The lake is wet.", 1, False),
        ("A zebra.", 1, True),
        # Function words, marks and numbers are no content words.
        ("Although, 77 of them were.", 20, False),
    ],
)
def test_words_are_counted_once_a_story(tokenizer, sentence, min_stories, is_rare):
    assert flags(tokenizer, [sentence], min_stories=min_stories) == is_rare


def test_only_the_last_two_sentences_count(tokenizer):
    rare, known = "A zebra.", "Tom swam in the lake."
    assert not flags(tokenizer, [rare, known, known], min_stories=2)
    assert flags(tokenizer, [known, rare, known], min_stories=2)
    assert flags(tokenizer, [rare, known, known], min_stories=2, num_sentences=3)

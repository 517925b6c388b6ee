"""Sentence splitting, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.data.embedded import embedded_stories
from hf_storyend.modeling.text_processing import split_sentences


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Anna baked. Tom ate.", ["Anna baked.", "Tom ate."]),
        ("Really?! Yes! No...", ["Really?!", "Yes!", "No..."]),
        ("He waited... and waited. Then he left.", ["He waited... and waited.", "Then he left."]),
        ("They ran home. no stop at the end", ["They ran home.", "no stop at the end"]),
        ("Mr. Lee met Dr. J. K. Olsen. They talked.", ["Mr. Lee met Dr. J. K. Olsen.", "They talked."]),
        ("It began at 5 p.m. She was late.", ["It began at 5 p.m.", "She was late."]),
        ("It began at 5 p.m. on Friday.", ["It began at 5 p.m. on Friday."]),
        ("He moved to the U.S. He liked it.", ["He moved to the U.S.", "He liked it."]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("I said no. She cried.", ["I said no.", "She cried."]),
        ("See no. 5 below. It is short.", ["See no. 5 below.", "It is short."]),
        ("It cost 3.50 euros. He paid 1,000.5 in all.", ["It cost 3.50 euros.", "He paid 1,000.5 in all."]),
        ('"Wait! Why?" she asked. Tom ran.', ['"Wait! Why?" she asked.', "Tom ran."]),
        ('"Stop!" Tom said. He stopped.', ['"Stop!" Tom said.', "He stopped."]),
        ('He said, "Go home." She left.', ['He said, "Go home."', "She left."]),
        ('The sign read "Open. It was not.', ['The sign read "Open.', "It was not."]),
        ("all in lower case. even this.", ["all in lower case.", "even this."]),
        ("No space.Then more.", ["No space.", "Then more."]),
        ("A file named notes.txt was lost. Pity!", ["A file named notes.txt was lost.", "Pity!"]),
        ("One line\nAnother line.\nA third", ["One line", "Another line.", "A third"]),
        ("A line broken\nby the editor. Next.", ["A line broken by the editor.", "Next."]),
        ("He saw a duck . It swam .", ["He saw a duck .", "It swam ."]),
        ("(He knew.) She did not.", ["(He knew.)", "She did not."]),
        ("One word", ["One word"]),
        ("It ended. ...", ["It ended. ..."]),
        ("  ", []),
    ],
)
def test_cases(text, expected):
    assert split_sentences(text) == expected


def test_our_own_corpus():
    """Stories joined to one string come apart again; quoted speech across sentences is the rare exception."""
    stories = [[*story["context"], story["ending"]] for story in embedded_stories()]
    wrong = [story for story in stories if split_sentences(" ".join(story)) != story]
    assert len(wrong) <= 0.02 * len(stories), wrong[:3]


@given(st.text())
def test_no_text_is_lost(text):
    sentences = split_sentences(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())

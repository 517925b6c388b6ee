"""Text processing, case by case: sentences, words, printing, truecasing and out-of-vocabulary words."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.data.embedded import embedded_stories
from hf_storyend.modeling.text_processing import (
    OOVWords,
    inner_words,
    join_words,
    normalize_text,
    printed_words,
    split_sentences,
    split_words,
    truecase_forms,
)


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
def test_split_sentences(text, expected):
    assert split_sentences(text) == expected


def test_stories_of_the_corpus_are_split_as_they_were():
    """Stories joined to one string come apart again; quoted speech across sentences is the rare exception."""
    stories = [[*story["context"], story["ending"]] for story in embedded_stories()]
    wrong = [story for story in stories if split_sentences(" ".join(story)) != story]
    assert len(wrong) <= 0.02 * len(stories), wrong[:3]


@given(st.text())
def test_no_text_is_lost_in_sentences(text):
    sentences = split_sentences(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text, words",
    [
        ("Tom's dog didn't bark.", ["Tom", "'s", "dog", "did", "n't", "bark", "."]),
        ("We can't, won't and shouldn't!", ["We", "ca", "n't", ",", "wo", "n't", "and", "should", "n't", "!"]),
        ("They'd said I'm late, you've won.", "They 'd said I 'm late , you 've won .".split()),
        ("It cost $3,000 at 10:30 a.m.", ["It", "cost", "$", "3,000", "at", "10:30", "a.m."]),
        ("A well-known 5th o'clock ma'am", ["A", "well-known", "5th", "o'clock", "ma'am"]),
        ("Wait... what?!", ["Wait", "...", "what", "?", "!"]),
        ("did n't , Tom 's", ["did", "n't", ",", "Tom", "'s"]),
        ("café naïve 日本", ["café", "naïve", "日本"]),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


def test_contractions_can_stay_whole():
    text = "Tom's dog didn't bark, they've won."
    assert split_words(text, split_contractions=False) == [
        "Tom's",
        "dog",
        "didn't",
        "bark",
        ",",
        "they've",
        "won",
        ".",
    ]


PRINTED = [
    "Tom's dog didn't bark, and we can't sleep.",
    '"I\'m not sad," she laughed.',
    'He said: "Go home!" and left.',
    '"Why?" asked Tom.',
    "It cost $3,000 (twice) for the boys' dog.",
    "50% of it's gone/lost; isn't it?!",
    "Wait... what happened at 10:30 a.m. today?",
    "They yelled, 'Go on!' for hours.",
    "The well-known end -- or not.",
    "He paid. She did not.",
]


@pytest.mark.parametrize("text", PRINTED)
@pytest.mark.parametrize("split_contractions", [True, False])
def test_join_prints_as_a_person_would(text, split_contractions):
    words = split_words(text.lower(), split_contractions)
    assert join_words(words, {"tom": "Tom", "i": "I", "i'm": "I'm"}) == text


def test_endings_of_the_corpus_are_joined_as_they_were():
    """Split, lowered and joined, endings are what was written (the corpus has no style but the plain one)."""
    stories = embedded_stories()
    endings = [story["ending"] for story in stories]
    sentences = [split_words(s) for story in stories for s in (*story["context"], story["ending"])]
    wrong, usual = [], truecase_forms(sentences)
    for ending in endings:
        own = truecase_forms([split_words(ending)])
        joined = join_words([word.lower() for word in split_words(ending)], {**usual, **own})
        wrong += [(ending, joined)] if joined != ending else []
    assert len(wrong) <= 0.02 * len(endings), wrong[:5]


def test_normalisation():
    assert normalize_text("“It’s\u200b late…”\u00a0she\x00 said — twice") == '"It\'s late..." she said -- twice'
    assert normalize_text("cafe\u0301") == "café"


def test_marks_on_a_letter_are_sorted_a_few_at_a_time():
    """To sort very many takes time that grows with their square."""
    text = "a" + "\u0301\u0316" * 200
    composed = normalize_text(text)
    assert sorted(unicodedata.normalize("NFD", composed)) == sorted(text)
    # Sorted all at once, every mark below the letter would come before those above.
    assert composed.index("\u0301") < 40 and composed.count("\u0316\u0301") > 3


def test_truecase_forms():
    words = [["We", "met", "Tom", "in", "May"], ["Tom", "may", "come", ".", "Now", "!"], ['"', "Why", "?"]]
    assert truecase_forms(words) == {"tom": "Tom"}


@given(st.text())
def test_every_visible_character_is_in_a_word(text):
    text = normalize_text(text)
    assert "".join(split_words(text)) == "".join(text.split())


@given(st.lists(st.text(st.characters(exclude_categories=["Zs", "Cc"]), min_size=1)))
def test_join_never_fails_and_keeps_all(words):
    words = [word for word in words if not any(character.isspace() for character in word)]
    joined = join_words(words)
    assert len("".join(joined.split())) >= len("".join(words))


def test_inner_words_are_those_whose_capital_means_something():
    words = ["He", "met", "Tom", ".", '"', "Go", "Home", "!", '"', "Ann", "said"]
    assert list(inner_words(words)) == ["met", "Tom", "Home", "said"]


def test_oov_words_are_numbered_in_the_order_of_the_story():
    vocabulary = {"<unk>": 0, "the": 1, "cat": 2}
    story = [["the", "zorbl", "cat"], ["zorbl", "kraken", "quux"]]
    words = OOVWords(story, vocabulary, unknown_id=0, num_slots=2)
    assert words.words == ["zorbl", "kraken"]
    assert words.ids(["kraken", "the", "zorbl", "quux", "other"]) == [4, 1, 3, 0, 0]
    assert OOVWords(story, vocabulary, unknown_id=0).words == ["zorbl", "kraken", "quux"]


def test_printed_words_are_written_as_inside_a_sentence():
    sentences = [["Marzipan", "ate", "."], ["Tom", "saw", "Marzipan", "."], ["Zorbl", "sat"]]
    assert printed_words(sentences, ["marzipan", "zorbl", "absent"]) == ["Marzipan", "Zorbl", "absent"]

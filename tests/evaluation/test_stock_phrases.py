"""Stock phrases and contradictions: what counts, what does not, and shares over stories."""

import pytest

from hf_storyend.evaluation.stock_phrases import (
    buys_what_is_owned,
    contradicts_feeling,
    does_it_again,
    stock_phrases,
    template,
)
from hf_storyend.evaluation.text_metrics import tokenize


@pytest.mark.parametrize(
    ("context", "ending", "expected"),
    [
        (["Mei met Tom.", "Then Tom left."], "Tom was happy.", "NAME was happy ."),
        (["Mei baked.", "It was for Mei's aunt."], "Mei's cake burned!", "NAME cake burned !"),
        (["She met Tom."], "She was happy.", "she was happy ."),
        (["I met Tom."], "I liked tom cats.", "i liked tom cats ."),
    ],
)
def test_names_are_replaced(context, ending, expected):
    assert template(context, ending) == expected


def flags(check, context, ending):
    return check([tokenize(sentence) for sentence in context], tokenize(ending))


@pytest.mark.parametrize(
    ("context", "ending", "expected"),
    [
        (["Tom bought a red bike.", "It was fast."], "Then he bought a bike.", True),
        (["Tom sold a red bike."], "Then he bought a bike.", False),
        (["Tom bought a red bike."], "Then he rode his bike.", False),
    ],
)
def test_buying_what_is_owned(context, ending, expected):
    assert flags(buys_what_is_owned, context, ending) is expected


@pytest.mark.parametrize(
    ("context", "ending", "expected"),
    [
        (["They packed their tent."], "Then they packed the tent.", True),
        (["They packed their tent."], "They slept in the tent.", False),
    ],
)
def test_doing_it_again(context, ending, expected):
    assert flags(does_it_again, context, ending) is expected


@pytest.mark.parametrize(
    ("context", "ending", "expected"),
    [
        (["Tom lost the race."], "Tom was happy.", True),
        (["Tom lost the race."], "Tom was not happy.", False),
        (["Tom lost the race."], "Luckily, Tom was happy.", False),
        (["Tom lost the race.", "Then he laughed."], "Tom was happy.", False),
        (["Tom won."], "He was so upset.", True),
        ([], "He was so upset.", False),
    ],
)
def test_contradicting_the_last_feeling(context, ending, expected):
    assert flags(contradicts_feeling, context, ending) is expected


def test_shares_are_of_all_stories():
    contexts = [["Tom fell."], ["Mei fell."], ["Ann fell."], ["Ann sang."]]
    endings = ["Tom went to the hospital.", "Mei went to the hospital.", "Ann was happy.", "Ann slept."]
    report = stock_phrases(contexts, endings)
    assert report["most common ending"] == "NAME went to the hospital ."
    assert report["its share"] == report['"hospital"'] == 50.0
    assert report['"happy"'] == 25.0 and report['"able to"'] == 0.0
    # 5 and 3 and 2 pairs of words; four of the first story stand in the second one, too.
    assert report["distinct-2"] == pytest.approx(100 * (5 + 1 + 3 + 2) / (5 + 5 + 3 + 2))

"""
Stock phrases and plain contradictions in endings: what a script can count, beside the same of people's endings.

Each check is a word list or a pattern, which finds some of what readers object to and some of what they do not: only
the difference to people's endings says something.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from .text_metrics import distinct, tokenize

Words = Sequence[str]

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_NO_NAMES = frozenset("I I'm I've I'd I'll".split())
STOCK_WORDS = ("hospital", "happy", "new", "able to", "great time")

_GOOD = frozenset(
    """
    happy glad excited proud relieved thrilled delighted loved love enjoyed great amazing wonderful delicious
    perfect best " "fun beautiful won passed success successful laughed smiled celebrated lucky luckily
    fortunately thankful
    """.split()
)
_BAD = frozenset(
    """
    sad upset angry disappointed embarrassed ashamed scared terrified devastated hated hate terrible horrible
    awful worst " "ruined broke broken lost failed fail died dead crashed burned hurt cried injured fired stolen
    sick unfortunately
    """.split()
)
# What turns a story round is no contradiction.
_TURNS = frozenset(
    """
    but luckily fortunately unfortunately finally eventually however although though still instead later until
    when " "after not n't never no than anyway despite
    """.split()
)
_BUYING = frozenset("bought buy buys purchased purchase adopted ordered".split())
_OWNING = frozenset("bought purchased adopted ordered got owned has had have".split())
_NO_CONTENT = frozenset(
    """
    a an the his her their my our your its it him them he she they we i you me us to of in on at for with and or
    so that " "this was were is are be been had has have did do does not n't up out off down back again very new
    just own some all " "got get went go day time one from by as into over about then when after before could
    would s t
    """.split()
)


def stock_phrases(contexts: Sequence[Sequence[str]], endings: Sequence[str]) -> dict[str, float | str]:
    """
    Count stock phrases and contradictions; shares are percentages of the stories.

    Args:
        contexts: Sentences of each story.
        endings: Its ending.
    """
    templates = Counter(template(context, ending) for context, ending in zip(contexts, endings, strict=True))
    [(most_common, count)] = templates.most_common(1)
    tokens = [tokenize(ending) for ending in endings]
    stories = [[tokenize(sentence) for sentence in context] for context in contexts]
    report: dict[str, float | str] = {
        "most common ending": most_common,
        "its share": 100 * count / len(endings),
        "distinct-2": 100 * distinct(tokens, 2),
    }
    for words in STOCK_WORDS:
        report[f'"{words}"'] = _share([f" {words} " in f" {' '.join(own)} " for own in tokens])
    for name, check in CHECKS.items():
        report[name] = _share([check(story, own) for story, own in zip(stories, tokens, strict=True)])
    return report


def template(context: Sequence[str], ending: str) -> str:
    """The ending in lower case, with the story's names replaced."""
    text = " ".join(context)
    # A name is written with a capital where no sentence begins, or wherever the story has it.
    inner = {word for sentence in context for word in _WORD.findall(sentence)[1:] if word[0].isupper()}
    lower = set(re.findall(r"\b[a-z][a-z'-]*", text))
    names = {
        word for word in _WORD.findall(text) if word[0].isupper() and (word in inner or word.lower() not in lower)
    }
    names = {name.removesuffix("'s") for name in names} - _NO_NAMES
    pronouns = {"He", "She", "They", "It", "We", "His", "Her", "Their", "My", "Our", "The", "A"}
    words = [
        "NAME" if word.removesuffix("'s") in names - pronouns else word.lower()
        for word in re.findall(r"[\w'-]+|[^\w\s]", ending)
    ]
    return " ".join(words)


def buys_what_is_owned(story: Sequence[Words], ending: Words) -> bool:
    """True if something is bought that the story has bought or had before."""
    bought = _objects(ending, _BUYING)
    owned = {noun for sentence in story for noun in _objects(sentence, _OWNING)}
    return bool(bought & owned)


def does_it_again(story: Sequence[Words], ending: Words) -> bool:
    """True if two content words follow each other closely in the ending as in a sentence of the story."""
    return bool(_pairs(ending) & {pair for sentence in story for pair in _pairs(sentence)})


def contradicts_feeling(story: Sequence[Words], ending: Words) -> bool:
    """True if the ending's feeling is the opposite of the last sentence's, and nothing turns the story round."""
    if _TURNS & set(ending) or not story:
        return False
    before, now = _polarity(story[-1]), _polarity(ending)
    return before * now < 0


CHECKS: dict[str, Callable[[Sequence[Words], Words], bool]] = {
    "buys what is owned": buys_what_is_owned,
    "does it again": does_it_again,
    "contradicts the last feeling": contradicts_feeling,
}


def _objects(tokens: Words, verbs: frozenset[str]) -> set[str]:
    """Content words among the three behind one of the verbs."""
    return {
        word
        for place, verb in enumerate(tokens)
        if verb in verbs
        for word in tokens[place + 1 : place + 4]
        if word.isalpha() and word not in _NO_CONTENT
    }


def _pairs(tokens: Words) -> set[tuple[str, str]]:
    content = [(place, word) for place, word in enumerate(tokens) if word.isalpha() and word not in _NO_CONTENT]
    return {
        (first, second)
        for (place, first), (other, second) in zip(content, content[1:], strict=False)
        if other - place <= 3 and first != second
    }


def _polarity(tokens: Words) -> int:
    value = sum((word in _GOOD) - (word in _BAD) for word in tokens)
    is_negated = bool({"not", "n't", "never"} & set(tokens)) or any(word.endswith("n't") for word in tokens)
    return -value if is_negated else value


def _share(flags: Sequence[bool]) -> float:
    return 100 * sum(flags) / len(flags)

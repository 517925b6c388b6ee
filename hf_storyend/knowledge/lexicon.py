"""Lexicon of English: lemmas and parts of speech of words, by lemminflect."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

# Auxiliary verbs included. Dictionaries list many of them as nouns, too (`her`, `this`, `in`), which they hardly ever
# are in stories.
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every either neither some any no all both few many much more most less least
    several such another other others else enough own same
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves one ones oneself who whom whose which what whoever
    whatever something someone somebody anything anyone anybody everything everyone everybody nothing none nobody
    about above across after against along among around as at before behind below beneath beside besides between
    beyond by despite down during except for from in inside into near of off on onto out outside over per since than
    through throughout till to toward towards under underneath until unto up upon via with within without
    and but or nor so yet if because although though unless whereas whether while when whenever where wherever why how
    not n't no yes ca wo cannot then there here now too very just also only even ever never again away soon
    am are be been being is was were have has had having do does did doing done 's 're 'm 've 'll 'd
    can could may might must ought shall should will would
    zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    mr mrs ms dr oh hey hi wow ok okay alas
    """.split()
)

PARTICLES = frozenset("away back down in off on out over up".split())

_REGULAR_ENDINGS = ("s", "ed", "ing")
_VERB_ENDINGS = ("ed", "ing")


@lru_cache(maxsize=1 << 17)
def lemmas(word: str) -> tuple[str, ...]:
    """
    Return the nouns and verbs that a lower-case word can be a form of, itself included, the most likely first.

    Function words and words that are neither noun nor verb have none. Words of the dictionary have the lemmas given
    there. Rules apply to other words that end like an inflected form (`burgers`, `texted`); their lemmas need not
    exist (`christmas`: christma). A form that is a word of its own follows its verb if the verb is irregular (`felt`:
    feel, felt) and precedes it if the verb is regular (`running`: running, run).
    """
    if not is_content_word(word):
        return ()
    readings = _dictionary()(word)
    if not readings:
        return _distinct([word, *_lemmas_by_rule(word)])
    nouns = [lemma for part in ("NOUN", "PROPN") for lemma in readings.get(part, ())]
    verbs = list(readings.get("VERB", ()))
    is_irregular = any(verb != word for verb in verbs) and not word.endswith(_REGULAR_ENDINGS)
    itself = [lemma for lemma in (*nouns, *verbs) if lemma == word]
    if is_irregular:
        return _distinct([*(verb for verb in verbs if verb != word), *nouns, *itself])
    return _distinct([*itself, *nouns, *verbs])


@lru_cache(maxsize=1 << 17)
def content_lemma(word: str) -> str | None:
    """
    Return the one lemma of a lower-case content word, or None for function words, punctuation and numbers.

    It is the likeliest noun or verb, the verb for forms in -ing and -ed (`running`: run, `excited`: excite), the
    singular for forms in -s (`games`: game), and else the adjective or adverb (`happier`: happy).
    """
    if not is_content_word(word):
        return None
    readings = _dictionary()(word)
    if not readings:
        return next(filter(is_in_dictionary, _lemmas_by_rule(word)), word)
    if word.endswith(_VERB_ENDINGS):
        verbs = [verb for verb in readings.get("VERB", ()) if verb not in FUNCTION_WORDS]
        if verbs:
            return verbs[0]
    found = list(lemmas(word)) or [lemma for part in ("ADJ", "ADV") for lemma in readings.get(part, ())]
    if word.endswith("s") and word in found:
        singular = [noun for noun in readings.get("NOUN", ()) if noun != word and noun not in FUNCTION_WORDS]
        found = [*singular, *found]
    return found[0] if found else word


def inflections(lemma: str, with_verb_forms: bool = True) -> tuple[str, ...]:
    """Return the inflected forms of a noun or verb that the dictionary has, the lemma first."""
    tags = "NV" if with_verb_forms else "N"
    forms = _lemminflect().getAllInflections(lemma)
    inflected = [form for tag, found in forms.items() if tag[0] in tags for form in found]
    return tuple(dict.fromkeys([lemma, *inflected]))


def is_content_word(word: str) -> bool:
    """Return whether a text is a word, and not a function word."""
    is_word = word[:1].isalpha() and all(part.isalnum() for part in word.replace("'", "-").split("-"))
    return is_word and word not in FUNCTION_WORDS


def is_noun_or_verb(word: str) -> bool:
    """
    Return whether a lower-case word can be a form of a noun or verb.

    Words that the dictionary lacks count as nouns: new words and names nearly always are.
    """
    return bool(lemmas(word))


def is_own_lemma(word: str) -> bool:
    """Return whether the dictionary has a word as a noun, adjective or adverb in its base form."""
    readings = _dictionary()(word)
    return any(word in readings.get(part, ()) for part in ("NOUN", "PROPN", "ADJ", "ADV"))


def is_in_dictionary(word: str) -> bool:
    """Return whether the dictionary has the word, as any part of speech."""
    return bool(_dictionary()(word))


def _lemmas_by_rule(word: str) -> list[str]:
    # Otherwise the rules find Latin plurals in names: `barbara` would be a form of `bar`.
    if not word.endswith(_REGULAR_ENDINGS):
        return []
    return [lemma for part in ("NOUN", "VERB") for lemma in _rules()(word, part)[part]]


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lemma for lemma in found if lemma not in FUNCTION_WORDS))


def _dictionary() -> Any:
    return _lemminflect().getAllLemmas


def _rules() -> Any:
    return _lemminflect().getAllLemmasOOV


@cache
def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError as error:
        raise ImportError(
            'Lemmas need lemminflect. Install it with `pip install "hf_storyend[knowledge]"`.'
        ) from error
    return lemminflect

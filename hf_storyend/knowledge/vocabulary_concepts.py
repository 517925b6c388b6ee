"""Which concepts the words of a vocabulary stand for, and which of them can be the head or the tail of a triple."""

from __future__ import annotations

from collections.abc import Mapping

from .lexicon import PARTICLES, is_content_word, is_in_dictionary, is_noun_or_verb, lemmas

_NOUN_OR_VERB = ("n", "v")


class VocabularyConcepts:
    """
    A vocabulary as ConceptNet sees it, all in lower case.

    - `words` maps a concept to the word of the vocabulary that is written like it: itself, or else its most frequent
      form with capitals.
    - `ranks` maps a concept to the place of that word by falling frequency.
    - `concepts` maps a word to its concepts, the likeliest first: its lemmas, and itself. Function words, marks and
      numbers have none.
    """

    def __init__(self, vocabulary: Mapping[str, int]):
        ranked = [word for word in sorted(vocabulary, key=vocabulary.__getitem__) if not _is_special(word)]
        self.num_words = len(ranked)
        self.words: dict[str, str] = {}
        for word in ranked:
            self.words.setdefault(word.lower(), word)
        self.words.update({word: word for word in ranked if word == word.lower()})
        self.ranks = {concept: vocabulary[word] for concept, word in self.words.items()}
        found = {word: self._concepts_of(word.lower()) for word in ranked}
        self.concepts = {word: concepts for word, concepts in found.items() if concepts}
        self.max_concepts = max(map(len, self.concepts.values()), default=0)
        self._heads = {concept for concepts in self.concepts.values() for concept in concepts}

    def query_words(self) -> list[str]:
        """The words that can be nouns or verbs."""
        return [word for word in self.concepts if is_noun_or_verb(word.lower())]

    def other_concepts(self) -> dict[str, list[str]]:
        """Concepts of words other than themselves, for the words that have any."""
        others = {word: [concept for concept in found if concept != word] for word, found in self.concepts.items()}
        return {word: found for word, found in others.items() if found}

    def is_head(self, concept: str, part_of_speech: str | None) -> bool:
        """Whether it is a noun or verb that some word stands for."""
        return concept in self._heads and _is_noun_or_verb(concept, part_of_speech)

    def is_tail(self, concept: str, part_of_speech: str | None) -> bool:
        """Whether it is a noun or verb of the vocabulary."""
        return concept in self.words and _is_noun_or_verb(concept, part_of_speech)

    def phrase_of(self, concept: str, part_of_speech: str | None) -> str | None:
        """The words of a concept of several, with blanks between them, if the vocabulary has them all."""
        parts = concept.split("_")
        if len(parts) == 1 or any(part not in self.words for part in parts):
            return None
        is_wanted = part_of_speech in _NOUN_OR_VERB if part_of_speech else _is_about_something(parts)
        return " ".join(self.words[part] for part in parts) if is_wanted else None

    def _concepts_of(self, word: str) -> list[str]:
        if not is_content_word(word):
            return []
        existing = (lemma for lemma in lemmas(word) if lemma in self.words or is_in_dictionary(lemma))
        return list(dict.fromkeys([*existing, word]))


def _is_noun_or_verb(concept: str, part_of_speech: str | None) -> bool:
    if part_of_speech is None:
        return is_noun_or_verb(concept)
    return part_of_speech in _NOUN_OR_VERB and is_content_word(concept)


def _is_about_something(parts: list[str]) -> bool:
    """Keeps `birthday cake` and `dress up`; not `all fruit` and `thank someone`, of which ConceptNet has plenty."""
    first, last = parts[0], parts[-1]
    return (is_content_word(first) and is_noun_or_verb(last)) or (is_noun_or_verb(first) and last in PARTICLES)


def _is_special(word: str) -> bool:
    return word.startswith("<") and word.endswith(">") and len(word) > 2

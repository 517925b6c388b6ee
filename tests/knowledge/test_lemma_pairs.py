"""Edges between phrases become pairs of content lemmas."""

from hf_storyend.knowledge.edges import Edge
from hf_storyend.knowledge.lemma_pairs import lemma_pairs
from hf_storyend.knowledge.vocabulary_lemmas import VocabularyLemmas


def vocabulary_of(words: str) -> dict[str, int]:
    return {word: index for index, word in enumerate(["<unk>", *words.split()])}


VOCABULARY = vocabulary_of(
    "the of exam walked pass passing grade happy fail tom roses rose rise rent ground grind wedding"
)


def pairs_of(*edges: tuple[str, str, str], **options) -> set[tuple[str, str, str]]:
    lemmas = VocabularyLemmas(VOCABULARY, names=["tom"])
    pairs = lemma_pairs((Edge(*edge) for edge in edges), lemmas, **options)
    columns = zip(pairs.heads.tolist(), pairs.relations.tolist(), pairs.tails.tolist(), strict=True)
    return {(lemmas.names[head], pairs.names[relation], lemmas.names[tail]) for head, relation, tail in columns}


def test_both_directions_with_a_name_each() -> None:
    assert pairs_of(("exam", "Causes", "fail")) == {("exam", "Causes", "fail"), ("fail", "CausedBy", "exam")}
    assert pairs_of(("exam", "RelatedTo", "fail")) == {("exam", "RelatedTo", "fail"), ("fail", "RelatedTo", "exam")}


def test_a_phrase_is_its_content_lemmas() -> None:
    found = pairs_of(("passing_the_exam", "Causes", "being_happy"))
    assert {pair for pair in found if pair[1] == "Causes"} == {
        ("pass", "Causes", "happy"),
        ("exam", "Causes", "happy"),
    }


def test_phrases_of_many_content_words_are_dropped() -> None:
    assert pairs_of(("exam", "Causes", "pass_grade_fail"))
    assert not pairs_of(("exam", "Causes", "pass_grade_fail_happy"))


def test_heads_may_be_out_of_the_vocabulary_but_not_tails() -> None:
    assert pairs_of(("diploma", "HasPrerequisite", "exam")) == {("diploma", "HasPrerequisite", "exam")}


def test_heads_that_neither_vocabulary_nor_dictionary_has_are_dropped() -> None:
    assert not pairs_of(("qzxv", "IsA", "exam"))


def test_a_lemma_is_not_paired_with_itself() -> None:
    assert not pairs_of(("passing", "RelatedTo", "pass"))


def test_names_have_no_pairs() -> None:
    assert not pairs_of(("tom", "CapableOf", "fail"))


def test_the_most_telling_relation_is_kept_in_any_order() -> None:
    edges = [("exam", "RelatedTo", "fail"), ("exam", "Causes", "fail"), ("exam", "IsA", "fail")]
    expected = {("exam", "Causes", "fail"), ("fail", "CausedBy", "exam")}
    assert pairs_of(*edges) == pairs_of(*reversed(edges)) == expected


def test_relations_are_chosen_by_their_own_name() -> None:
    edges = [("exam", "RelatedTo", "fail"), ("exam", "Causes", "fail")]
    assert pairs_of(*edges, relations=["RelatedTo"]) == {
        ("exam", "RelatedTo", "fail"),
        ("fail", "RelatedTo", "exam"),
    }


def test_external_relations_are_dropped() -> None:
    assert not pairs_of(("exam", "dbpedia/genre", "fail"))


class TestVocabularyLemmas:
    lemmas = VocabularyLemmas(VOCABULARY, names=["tom"])

    def test_words_of_a_lemma(self) -> None:
        assert self.lemmas.words[self.lemmas.ids["rise"]] == ["rose", "rise"]
        assert self.lemmas.words[self.lemmas.ids["walk"]] == ["walked"]

    def test_the_word_of_a_lemma_is_itself_or_its_most_frequent_form(self) -> None:
        assert self.lemmas.word_of(self.lemmas.ids["rise"]) == "rise"
        assert self.lemmas.word_of(self.lemmas.ids["walk"]) == "walked"
        # The vocabulary has `rose`, but as a form of `rise`.
        assert self.lemmas.word_of(self.lemmas.ids["rose"]) == "roses"

    def test_a_verb_that_the_stories_do_not_use_is_no_lemma(self) -> None:
        assert self.lemmas.lemma("wedding") == "wedding"
        assert self.lemmas.lemma("rent") == "rent"
        assert self.lemmas.lemma("ground") == "grind"

    def test_a_form_much_more_frequent_than_its_verb_is_a_word_of_its_own(self) -> None:
        words = {"<unk>": 0, "ground": 5, "grind": 51}
        assert VocabularyLemmas(words).lemma("ground") == "ground"
        assert VocabularyLemmas({**words, "grind": 50}).lemma("ground") == "grind"

    def test_function_words_special_tokens_and_names_have_none(self) -> None:
        for word in ("<unk>", "the", "of", "tom"):
            assert self.lemmas.of_word[VOCABULARY[word]] == -1

    def test_cased_words_are_forms_as_well(self) -> None:
        lemmas = VocabularyLemmas({"burn": 0, "Burned": 1})
        assert lemmas.words == [["burn", "Burned"]]

"""Reach: new words of endings that are tails of their story."""

from hf_storyend.knowledge.reach import measure_reach
from hf_storyend.modeling import IncrementalEncoderTokenizer, KnowledgeTable

WORDS = "<unk> <pad> <s> </s> the exam dog passed pass happy barked she . birthday party".split()


def tokenizer_with(triples: dict[str, list[tuple[str, str, str]]], **options) -> IncrementalEncoderTokenizer:
    tokenizer = IncrementalEncoderTokenizer(vocab={word: index for index, word in enumerate(WORDS)})
    tokenizer.knowledge = KnowledgeTable(["Causes"], triples=triples, **options)
    return tokenizer


EXAM = {"exam": [("exam", "Causes", "pass"), ("exam", "Causes", "happy")]}


def test_new_content_words_are_compared_by_lemma() -> None:
    found = measure_reach(tokenizer_with(EXAM), [["The exam.", "She."]], ["She passed the exam and barked."])
    # `passed` and `barked` are new, `pass` and `happy` are tails.
    assert found == {"num_stories": 1, "num_new_words": 2, "reach": 0.5, "tails_per_story": 2.0}


def test_words_of_the_context_are_not_new() -> None:
    found = measure_reach(tokenizer_with(EXAM), [["The exam, passed."]], ["She will pass."])
    assert (found["num_new_words"], found["reach"]) == (0, 0.0)


def test_tails_are_counted_once_a_story() -> None:
    found = measure_reach(tokenizer_with(EXAM), [["The exam.", "The exam."], ["The dog."]], ["Happy.", "Happy."])
    assert found["tails_per_story"] == 1.0
    assert found["reach"] == 0.5


def test_adjectives_and_unknown_words_count() -> None:
    found = measure_reach(tokenizer_with(EXAM), [["The exam."]], ["Happy mother, luckily."])
    assert (found["num_new_words"], found["reach"]) == (3, 1 / 3)


def test_heads_out_of_the_vocabulary_and_phrases_reach_as_well() -> None:
    quiz = {"quiz": [("quiz", "Causes", "pass")]}
    phrases = {"birthday party": [("party", "Causes", "happy")]}
    tokenizer = tokenizer_with(quiz, phrases=phrases)
    found = measure_reach(tokenizer, [["The quiz."], ["The birthday party."]], ["She passed.", "Happy."])
    assert found["reach"] == 1.0


def test_stories_may_be_many(monkeypatch) -> None:
    monkeypatch.setattr("hf_storyend.knowledge.reach._BATCH_SIZE", 2)
    found = measure_reach(tokenizer_with(EXAM), [["The exam."], ["The dog."]] * 3, ["Happy."] * 6)
    assert (found["num_stories"], found["reach"]) == (6, 0.5)

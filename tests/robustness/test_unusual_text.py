"""Text of any kind and length: tensors or a clear error, in bounded time and memory, harmless where it is shown."""

import resource
import time
import unicodedata

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from robustness.targets import tiny_model, tiny_tokenizer

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.annotation.report import describe_report
from hf_storyend.annotation.sheets import escape_formula, unescape_formula
from hf_storyend.evaluation.results import Evaluation, compare_in_table
from hf_storyend.explanation import explain
from hf_storyend.modeling.text_processing import normalize_text, split_sentences, split_words

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
TEXTS = {
    "emoji": "Anna 👩‍👩‍👧‍👦 put a 🎂 in the oven 🔥🔥. 🏳️‍🌈!",
    "right to left": "آنا وضعت كعكة في الفرن. \u202eneve eht ni\u202c ‏הבית‏.",
    "zero width": "An\u200bna\u200d put\ufeff a\u2060 cake.",
    "control characters": "Anna\x00 put\x07 a\x1b[31m cake\x7f in\x85 the\u2028 oven.",
    "combining marks": "Z̸̡̢a̵l̶g̷o̸ put a c̈́͌̓a̋k̊ẻ.",
    "marks without a letter": "\u0301\u0302\u0303 \u0308",
    "half characters": "Anna \ud83d put \udc00 it.",
    "markup": MARKUP,
    "formulas": "=cmd|' /C calc'!A0. +1-2@SUM(A1).",
    "paths": "../../etc/passwd. C:\\Windows\\system32. file:///etc/passwd",
    "special symbols": "<unk> <pad> <s> </s> <s> anna.",
    "other scripts": "她把蛋糕放进了烤箱。ケーキは焦げた。เค้กไหม้.",
    "letters that grow": "ŉ ß İ ﬃ ǅ ΐ.",
    "white space only of unusual kinds": "Anna\u3000put\u2003a\u00a0cake\u1680now.",
}


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture(scope="module")
def model():
    return tiny_model().eval()


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_read_and_an_ending_printed(name, tokenizer, model):
    inputs = tokenizer(TEXTS[name], return_tensors="pt")
    assert int(inputs["input_ids"].max()) < len(tokenizer)
    output = model(**inputs, labels=torch.tensor([[4, 3]]))
    assert output.loss.isfinite() and output.logits.isfinite().all()
    written = model.generate(**inputs, max_new_tokens=3)
    assert isinstance(tokenizer.batch_decode(written, context=[TEXTS[name]])[0], str)


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\x00\x01", "\ufeff\n\u200e"])
def test_text_without_a_word_is_refused(text, tokenizer):
    with pytest.raises(ValueError, match="Story 1|Sentence 1 of story 1"):
        tokenizer(text, return_tensors="pt")


@settings(max_examples=150)
@given(st.text(st.characters(), max_size=60))
def test_text_of_all_characters(text):
    tokenizer = tiny_tokenizer()
    try:
        inputs = tokenizer(text)
    except ValueError as error:
        assert "story 1" in str(error).lower()
        return
    assert all(0 <= word < len(tokenizer) for sentence in inputs["input_ids"] for word in sentence)


NUM = 200_000
LONG = {
    "marks in a row": "a" + "!" * NUM + "b",
    "a word in a row": "a" * NUM + " b. C d.",
    "speech that does not end": '"' + "A b. " * NUM + '"',
    "titles": "Mr. " * NUM,
    "blanks": "a" + " " * NUM + "b",
    "lines": "a b\n" * NUM,
    "pieces without a letter": "Hello. " + "! " * NUM,
    "apostrophes": "'" * NUM + ". " + "'" * NUM,
    "digits": "1" * NUM + "." * NUM,
    "numbers": "1," * NUM + "x",
    "contractions": "n't" * NUM,
    "hyphens": "a-" * NUM,
    "marks on a letter": "a" + "\u0300\u0316" * (NUM // 2),
    "acronyms": "a." * NUM,
}


@pytest.mark.parametrize("name", LONG)
def test_long_text_takes_linear_time(name):
    """Linear time takes about a second of the processor for these, quadratic time minutes."""
    start = time.process_time()
    sentences = split_sentences(normalize_text(LONG[name]))
    words = [split_words(sentence) for sentence in sentences]
    assert any(words) and time.process_time() - start < 60


def test_marks_beyond_all_measure_are_kept():
    text = "a" + "\u0316\u0300" * 100
    assert sorted(unicodedata.normalize("NFD", normalize_text(text))) == sorted(text)
    assert normalize_text("e\u0316\u0301 x") == "\u00e9\u0316 x", "Fewer are composed and put in order as ever."


def _limited(work) -> int:
    """Megabytes that the peak of memory rose by."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


@pytest.mark.parametrize(
    ("story", "shape"),
    [
        (["the cake " * 1_000, "Anna put it."], (2, 2_000)),
        (["Anna put a cake."] * 200, (200, 5)),
        pytest.param(["the cake " * 50_000], (1, 100_000), marks=pytest.mark.slow),
        pytest.param(["Anna put a cake."] * 10_000, (10_000, 5), marks=pytest.mark.slow),
    ],
    ids=["2,000 words", "200 sentences", "100,000 words", "10,000 sentences"],
)
def test_very_long_stories(story, shape, tokenizer, model):
    def work() -> None:
        inputs = tokenizer([story], return_tensors="pt")
        assert tuple(inputs["input_ids"].shape[1:]) == shape
        with torch.no_grad():
            assert model.generate(**inputs, max_new_tokens=2).shape[0] == 1

    assert _limited(work) < 1500


def test_sentences_whose_attention_would_take_all_memory_are_refused_at_once(tokenizer, model):
    inputs = tokenizer([["the cake " * 50_000, "Anna put it."]], return_tensors="pt")
    assert inputs["input_ids"].shape == (1, 2, 100_000)
    with pytest.raises(ValueError, match="room for 100000 words a sentence"):
        model.generate(**inputs)
    cut = tokenizer([["the cake " * 50_000, "Anna put it."]], truncation=True, max_length=50, return_tensors="pt")
    assert model.generate(**cut, max_new_tokens=2).shape[0] == 1


def test_limits_of_a_configuration_refuse_long_stories_at_once(tokenizer):
    config = IncrementalEncoderConfig.for_tokenizer(
        tokenizer, embedding_size=2, hidden_size=3, num_layers=1, max_sentences=20, max_sentence_length=100
    )
    limited = IncrementalEncoderForEndingGeneration(config)
    for story, name in ((["the cake " * 60], "max_sentence_length"), (["Anna put a cake."] * 21, "max_sentences")):
        with pytest.raises(ValueError, match=name):
            limited.generate(**tokenizer([story], return_tensors="pt"))


def test_markup_in_a_story_is_data_on_the_page_of_an_explanation(tokenizer, model):
    explanation = explain(model, tokenizer, [f"Anna put {MARKUP} a cake.", "She was in the kitchen."])
    page = explanation.to_html()
    assert "<img" not in page and page.count("<script") == page.count("</script>") == 2
    assert "<img" not in explanation.to_markdown().replace(r"\<", "")


def test_markup_in_names_and_endings_is_text_in_tables():
    evaluation = Evaluation({"bleu_1": 1.0}, constant_ending=f"a {MARKUP} | b\nc", num_stories=1)
    table = compare_in_table({f"x {MARKUP} | y\n| z": evaluation})
    assert "<" not in table.replace(r"\<", "")
    assert len({line.count("|") - line.count(r"\|") for line in table.split("\n") if line.startswith("|")}) == 1


def test_markup_in_the_names_of_judged_systems_is_text():
    scores = {"mean": 1.0, "low": 1.0, "high": 1.0}
    kinds = {"num_bad": 0, "num_by_type": {"grammar": 0, "logicality": 0, "other": 0}, "num_undecided": 0}
    joint = {f"{one}-{two}": 0.0 for one in range(3) for two in range(3)}
    system = {"grammar": scores, "logicality": scores, "joint": joint, "errors": kinds}
    agreement = {"shares": {"1/1": 1.0}, "fleiss_kappa": None}
    report = {
        "num_endings": 1,
        "num_stories": 1,
        "num_annotators": 1,
        "sample": "sample-1",
        "systems": {MARKUP: system},
        "agreement": {"grammar": agreement, "logicality": agreement},
        "sign_tests": {"grammar": [], "logicality": []},
    }
    assert "<" not in describe_report(report).replace(r"\<", "")


@settings(max_examples=300)
@given(st.text(st.sampled_from("='+-@\t\r\n \"＝＋－＠;,|ab1"), max_size=8))
def test_no_cell_starts_like_a_formula_and_all_read_back(text):
    cell = escape_formula(text)
    assert cell[:1] not in tuple("=+-@\t\r\n＝＋－＠")
    assert unescape_formula(cell) == text

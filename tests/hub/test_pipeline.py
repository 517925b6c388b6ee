"""A story in, endings out, with scores, the sources of their words, evidence and effects."""

import json

import pytest
import torch
from remote_code import WITHOUT_PACKAGE, run
from small_model import small_model
from transformers import AutoTokenizer, pipeline

from hf_storyend import StoryEndingPipeline
from hf_storyend.systems import SYSTEMS

STORY = "Tom opened the window. Anna put a cake in the oven."
OTHER = "They didn't hear the timer! The kitchen was full of smoke. Tom burnt cakes."


@pytest.fixture
def write(model, tokenizer) -> StoryEndingPipeline:
    return pipeline("story-ending", model=model, tokenizer=tokenizer, max_new_tokens=6, decoding="paper")


def test_importing_the_package_registers_it(write):
    assert type(write) is StoryEndingPipeline


def triple_of(item) -> tuple[str, str, str]:
    return item["head"], item["relation"], item["tail"]


def test_an_ending_is_what_generate_writes_with_its_score_and_attention(write, model, tokenizer):
    inputs = tokenizer(STORY, return_tensors="pt")
    ids = model.generate(**inputs, max_new_tokens=6)
    (result,) = write(STORY)
    assert result["ending"] == tokenizer.decode(ids[0], skip_special_tokens=True, context=STORY)
    labels = ids[:, 1:]
    loss = model(**inputs, labels=labels).ending_loss.item()
    assert result["score"] == pytest.approx(-loss, abs=1e-5)
    assert {(*triple_of(one), one["word"]) for one in result["attention"]} == {
        ("cake", "ReceivesAction", "burn", "cake"),
        ("oven", "UsedFor", "cake", "oven"),
        ("oven", "AtLocation", "kitchen", "oven"),
    }
    assert result["evidence"] == []


def test_weights_of_the_attention_are_those_of_the_model(write, model, tokenizer):
    (result,) = write(STORY, max_new_tokens=1)
    ids = model.generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=1)
    output = model(**tokenizer(STORY, return_tensors="pt"), decoder_input_ids=ids[:, :-1], output_attentions=True)
    words = tokenizer.tokenize("Anna put a cake in the oven.")
    oven = words.index("oven")
    expected = output.knowledge_attentions[0, 0, oven] * output.triple_attentions[0, 1, oven, 0]
    (used_for,) = [one for one in result["attention"] if one["relation"] == "UsedFor"]
    assert used_for["weight"] == pytest.approx(expected.item(), rel=1e-5)
    weights = [one["weight"] for one in result["attention"]]
    assert weights == sorted(weights, reverse=True) and 0 < sum(weights) <= 1


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_stories_in_a_batch_are_written_as_alone(write, batch_size):
    stories = [STORY, OTHER, "The kitchen was full of smoke.", STORY]
    together = write(stories, batch_size=batch_size, num_beams=2)
    alone = [write(story, num_beams=2) for story in stories]
    assert [[one["ending"] for one in endings] for endings in together] == [
        [one["ending"] for one in e] for e in alone
    ]
    for left, right in zip(together, alone, strict=True):
        assert left[0]["ending"] == right[0]["ending"]
        assert left[0]["score"] == pytest.approx(right[0]["score"], abs=1e-5)
        assert [one["tail"] for one in left[0]["attention"]] == [one["tail"] for one in right[0]["attention"]]


def test_sentences_in_every_form(write):
    sentences = ["Tom opened the window.", "Anna put a cake in the oven."]
    expected = write(STORY)
    assert write(tuple(sentences)) == write({"story": sentences}) == write({"story": STORY}) == expected
    assert write([sentences]) == write([tuple(sentences)]) == [expected]
    assert write([sentences, STORY], batch_size=2)[1][0]["ending"] == expected[0]["ending"]


def test_arguments_of_generate(write):
    torch.manual_seed(0)
    endings = write(STORY, do_sample=True, num_return_sequences=3, max_new_tokens=4, return_dict_in_generate=False)
    assert len(endings) == 3 and len({one["ending"] for one in endings}) > 1
    both = write([STORY, OTHER], num_beams=4, num_return_sequences=2, batch_size=2)
    assert [len(endings) for endings in both] == [2, 2]
    with pytest.raises(ValueError, match="no_such_argument"):
        write(STORY, no_such_argument=1)


def test_own_triples(write):
    triple = ("window", "RelatedTo", "smoke")
    for endings in (
        write("Tom opened the window.", triples=[triple]),
        write({"story": "Tom opened the window.", "triples": [triple]}),
        write([{"story": "Tom opened the window.", "triples": [triple]}, STORY], batch_size=2)[0],
    ):
        assert [one["tail"] for one in endings[0]["attention"]] == ["smoke"]
    assert write("Tom opened the window.")[0]["attention"] == []


def test_top_k(write):
    assert len(write(STORY, evidence_top_k=1)[0]["attention"]) == 1
    assert write(STORY, evidence_top_k=0)[0]["attention"] == []


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (3, "string or a list of sentences; got int"),
        ([], "empty list"),
        ({"text": "a"}, "`story`"),
        ("", "empty"),
        ([STORY, ""], "empty"),
    ],
)
def test_bad_stories(write, bad, match):
    with pytest.raises(ValueError, match=match):
        write(bad)


@pytest.fixture
def write_with(tokenizer):
    """`write_with(name)`: a pipeline with an untrained model of that system."""

    def make(name: str) -> StoryEndingPipeline:
        model = small_model(name, tokenizer)
        return pipeline("story-ending", model=model, tokenizer=tokenizer, max_new_tokens=5, decoding="paper")

    return make


def shares_of(word) -> list[float]:
    return [word["vocabulary"], word["other"], *(item["share"] for item in (*word["story"], *word["triples"]))]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system(write_with, name):
    system = SYSTEMS[name]
    results = write_with(name)([STORY, "Zorblax put a cake in the oven."], batch_size=2, num_beams=2, effects=True)
    for (one,) in results:
        assert one["ending"] and one["score"] < 0
        assert ("attention" in one) == (system.knowledge is not None)
        for word in one["words"]:
            assert sum(shares_of(word)) == pytest.approx(1, abs=1e-9)
            assert system.copy or not word["story"]
            assert system.tail_pointer or not word["triples"]
            assert all(item["share"] >= 0.01 for item in (*word["story"], *word["triples"]))
        assert system.tail_pointer or one["evidence"] == []
        assert (one["knowledge_effect"] is not None) == (system.knowledge is not None or system.tail_pointer)
    assert [len(one["sentence_effects"]) for (one,) in results] == [2, 0]
    json.dumps(results, allow_nan=False)


@pytest.mark.parametrize("name", ["seq2seq", "hlstm-copy", "ie-msa-ga", "ie-copy-tails", "ie-msa-ca-copy-tails"])
def test_shares_are_the_parts_of_the_models_own_probability(write_with, tokenizer, name):
    write = write_with(name)
    inputs = tokenizer(STORY, return_tensors="pt")
    ids = write.model.generate(**inputs, max_new_tokens=5)
    with torch.no_grad():
        expected = write.model(**inputs, decoder_input_ids=ids[:, :-1]).logits[0].softmax(dim=-1)
    sources = write.model.word_sources(labels=ids[:, 1:], **inputs)
    for step, word in enumerate(write(STORY)[0]["words"]):
        probability = float(expected[step, ids[0, step + 1]])
        assert word["probability"] == pytest.approx(probability, rel=1e-5)
        parts = [share * word["probability"] for share in shares_of(word)]
        assert sum(parts) == pytest.approx(probability, rel=1e-5)
        assert parts[0] == pytest.approx(float(sources.vocabulary[0, step]), rel=1e-4)
        for item in word["story"]:
            part = float(sources.places[0, step, item["sentence"] - 1, item["position"] - 1])
            assert item["share"] * word["probability"] == pytest.approx(part, rel=1e-4)


def test_words_come_from_the_triples_that_offer_them(write_with, tokenizer):
    """A triple of high weight is all that a word comes from; both occurrences of its head count as one triple."""
    write, triple = write_with("ie-copy-tails"), ("oven", "Causes", "smoke")
    tokenizer.knowledge.forms = {"smoke": ["smoke", "burnt"]}
    tokenizer.add_triples([])
    story = "Anna put a cake in the oven. The oven was long."
    (result,) = write(story, triples=[triple], triple_weight=30.0, effects=True, max_new_tokens=3)
    assert {word["word"] for word in result["words"]} <= {"smoke", "burnt"}
    for word in result["words"]:
        (given,) = word["triples"]
        assert triple_of(given) == triple and given["share"] > 0.99 and given["word"] == "oven"
        assert given["sentence"] in (1, 2)
    given = [item["ending_word"] for item in result["evidence"]]
    assert sorted(given) == sorted({word["word"] for word in result["words"]})
    without = write.tokenizer(story, return_tensors="pt")
    known = tokenizer(story, triples=[triple], triple_weight=30.0, return_tensors="pt")
    ids = write.model.generate(**known, max_new_tokens=3)
    with torch.no_grad():
        before = -3 * write.model(**known, labels=ids[:, 1:]).loss
        after = -3 * write.model(**without, labels=ids[:, 1:]).loss
    assert result["evidence"][0]["effect"] == pytest.approx(float(before - after), rel=1e-4)
    assert result["evidence"][0]["factor"] > 1000


def test_a_head_out_of_the_vocabulary_is_named_as_it_is(write_with, tokenizer):
    write, triple = write_with("ie-copy-tails"), ("zorblax", "Causes", "smoke")
    (result,) = write("Zorblax saw Anna.", triples=[triple], triple_weight=30.0, max_new_tokens=1)
    assert triple_of(result["evidence"][0]) == triple
    assert result["evidence"][0]["word"] == "Zorblax" and result["evidence"][0]["ending_word"] == "smoke"


def test_endings_longer_than_those_to_learn_from(tokenizer):
    model = small_model("ie-copy", tokenizer, max_ending_length=2)
    write = pipeline("story-ending", model=model, tokenizer=tokenizer, max_new_tokens=4, min_new_tokens=4)
    assert len(write(STORY)[0]["words"]) >= 3


def test_a_saved_model_after_a_pipeline_of_it(folder, write, tmp_path):
    """Transformers puts classes into the configuration, which no JSON file could hold."""
    loaded = pipeline(model=str(folder), trust_remote_code=True)
    loaded.save_pretrained(tmp_path / "again")
    again = pipeline(model=str(tmp_path / "again"), trust_remote_code=True)
    (ending,), (expected,) = again(STORY, max_new_tokens=6, decoding="paper"), write(STORY)
    assert ending["ending"] == expected["ending"] and len(ending["attention"]) == len(expected["attention"])
    assert ending["score"] == pytest.approx(expected["score"], abs=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path / "again").knowledge.relations


@pytest.mark.parametrize("task", [{}, {"task": "text-generation"}])
def test_a_saved_model_needs_no_task_and_no_package(folder, write, task, tmp_path):
    """Without a task, and with the task that the Hub lists it under."""
    code = "from transformers import pipeline; model, task, story = sys.argv[1:]; settings = json.loads(task)\n"
    code += "write = pipeline(model=model, trust_remote_code=True, max_new_tokens=6, **settings)\n"
    code += "print(type(write).__name__, write(story, decoding='paper')[0]['ending'])"
    done = run(WITHOUT_PACKAGE + code, str(folder), json.dumps(task), STORY, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"StoryEndingPipeline {write(STORY)[0]['ending']}"


def test_without_trust_a_saved_model_says_what_it_needs(folder):
    with pytest.raises(ValueError, match="set the option `trust_remote_code=True`"):
        pipeline(model=str(folder))

"""A story in, endings out, with scores and evidence."""

import pytest
import torch
from transformers import AutoTokenizer, pipeline

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, StoryEndingPipeline
from hf_storyend.systems import SYSTEMS, match_tokenizer

STORY = "Tom opened the window. Anna put a cake in the oven."
OTHER = "They didn't hear the timer! The kitchen was full of smoke. Tom burnt cakes."


@pytest.fixture
def write(model, tokenizer) -> StoryEndingPipeline:
    return pipeline("story-ending", model=model, tokenizer=tokenizer, max_new_tokens=6)


def test_importing_the_package_registers_it(write):
    assert type(write) is StoryEndingPipeline


def test_an_ending_is_what_generate_writes_with_its_score_and_evidence(write, model, tokenizer):
    inputs = tokenizer(STORY, return_tensors="pt")
    ids = model.generate(**inputs, max_new_tokens=6)
    (result,) = write(STORY)
    assert result["ending"] == tokenizer.decode(ids[0], skip_special_tokens=True, context=STORY)
    labels = ids[:, 1:]
    loss = model(**inputs, labels=labels).ending_loss.item()
    assert result["score"] == pytest.approx(-loss, abs=1e-5)
    assert {tuple(one[part] for part in ("head", "relation", "tail", "word")) for one in result["evidence"]} == {
        ("cake", "ReceivesAction", "burn", "cake"),
        ("oven", "UsedFor", "cake", "oven"),
        ("oven", "AtLocation", "kitchen", "oven"),
    }


def test_weights_of_the_evidence_are_those_of_the_attentions(write, model, tokenizer):
    (result,) = write(STORY, max_new_tokens=1)
    ids = model.generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=1)
    output = model(**tokenizer(STORY, return_tensors="pt"), decoder_input_ids=ids[:, :-1], output_attentions=True)
    words = tokenizer.tokenize("Anna put a cake in the oven.")
    oven = words.index("oven")
    expected = output.knowledge_attentions[0, 0, oven] * output.triple_attentions[0, 1, oven, 0]
    (used_for,) = [one for one in result["evidence"] if one["relation"] == "UsedFor"]
    assert used_for["weight"] == pytest.approx(expected.item(), rel=1e-5)
    weights = [one["weight"] for one in result["evidence"]]
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
        assert [one["tail"] for one in left[0]["evidence"]] == [one["tail"] for one in right[0]["evidence"]]


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
        assert [one["tail"] for one in endings[0]["evidence"]] == ["smoke"]
    assert write("Tom opened the window.")[0]["evidence"] == []


def test_least_evidence(write):
    assert len(write(STORY, evidence_top_k=1)[0]["evidence"]) == 1
    assert write(STORY, evidence_top_k=0)[0]["evidence"] == []


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


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system(tokenizer, name):
    torch.manual_seed(0)
    system = SYSTEMS[name]
    sizes = {"embedding_size": 8, "hidden_size": 12, "num_copy_slots": 4}
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, **sizes, **system.settings)
    match_tokenizer(tokenizer, config)
    model = IncrementalEncoderForEndingGeneration(config).eval()
    write = pipeline("story-ending", model=model, tokenizer=tokenizer, max_new_tokens=5)
    results = write([STORY, "Zorblax put a cake in the oven."], batch_size=2, num_beams=2)
    assert all(one["ending"] and one["score"] < 0 for endings in results for one in endings)
    assert all(bool(endings[0]["evidence"]) == (system.knowledge is not None) for endings in results)


def test_a_saved_model_after_a_pipeline_of_it(folder, write, tmp_path):
    """Transformers puts classes into the configuration, which no JSON file could hold."""
    loaded = pipeline(model=str(folder), trust_remote_code=True)
    loaded.save_pretrained(tmp_path / "again")
    again = pipeline(model=str(tmp_path / "again"), trust_remote_code=True)
    (ending,), (expected,) = again(STORY, max_new_tokens=6), write(STORY)
    assert ending["ending"] == expected["ending"] and len(ending["evidence"]) == len(expected["evidence"])
    assert ending["score"] == pytest.approx(expected["score"], abs=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path / "again").knowledge.relations

"""The tokenizer: stories to tensors, knowledge of one's own, endings back to print."""

import json
import pickle

import numpy as np
import pytest
import torch
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, DataCollatorForSeq2Seq, DataCollatorWithPadding

from hf_storyend import IncrementalEncoderTokenizer, KnowledgeTable

STORY = "Anna put a cake in the oven. They didn't hear the timer!"
SENTENCES = ["Anna put a cake in the oven.", "They didn't hear the timer!"]


def triples_at(tokenizer, batch, word, story=0):
    """Triples of a word's first occurrence, as strings."""
    place = (batch["input_ids"][story] == tokenizer.convert_tokens_to_ids(word)).nonzero()[0]
    ids = batch["triple_ids"][story][tuple(place)][batch["triple_mask"][story][tuple(place)].bool()]
    names = tokenizer.knowledge.relations
    return [
        (tokenizer.convert_ids_to_tokens(h), names[r], tokenizer.convert_ids_to_tokens(t)) for h, r, t in ids.tolist()
    ]


def test_a_story_in_any_form(tokenizer):
    from_string = tokenizer(STORY, return_tensors="pt")
    assert {name: tuple(tensor.shape) for name, tensor in from_string.items()} == {
        "input_ids": (1, 2, 8),
        "attention_mask": (1, 2, 8),
        "triple_ids": (1, 2, 8, 2, 3),
        "triple_mask": (1, 2, 8, 2),
    }
    for other in ([STORY], [SENTENCES], (tuple(SENTENCES),)):
        batch = tokenizer(other, return_tensors="pt")
        assert all(torch.equal(batch[name], from_string[name]) for name in from_string)
    assert from_string["attention_mask"].sum(-1).tolist() == [[8, 7]]
    assert (from_string["input_ids"][from_string["attention_mask"] == 0] == tokenizer.pad_token_id).all()
    assert tokenizer.unk_token_id not in from_string["input_ids"]


def test_stories_of_different_sizes(tokenizer):
    batch = tokenizer([STORY, "They saw smoke."], return_tensors="pt")
    assert batch["input_ids"].shape == (2, 2, 8)
    assert batch["attention_mask"][1].sum(-1).tolist() == [4, 0]
    assert batch["triple_mask"][batch["attention_mask"] == 0].sum() == 0


def test_lists_are_ragged_unless_padded(tokenizer):
    one = tokenizer(STORY)
    assert [len(sentence) for sentence in one["input_ids"]] == [8, 7]
    assert [len(graph) for graph in one["triple_ids"][0]] == [0, 0, 0, 1, 0, 0, 2, 0]
    assert one["triple_mask"][0][6] == [1, 1]
    several = tokenizer([STORY, "They saw smoke."])
    assert len(several["input_ids"]) == 2 and len(several["input_ids"][1]) == 1
    padded = tokenizer([STORY, "They saw smoke."], padding=True)
    tensors = tokenizer([STORY, "They saw smoke."], return_tensors="pt")
    assert padded["triple_ids"] == tensors["triple_ids"].tolist()
    arrays = tokenizer(STORY, return_tensors="np")
    assert isinstance(arrays["input_ids"], np.ndarray)


def test_endings_become_labels(tokenizer):
    batch = tokenizer([STORY, "They saw smoke."], text_target=["The cake was burnt.", "Why?"], return_tensors="pt")
    assert batch["labels"].shape == (2, 6)
    assert batch["labels"][0, -1] == tokenizer.eos_token_id
    assert batch["labels"][1].tolist()[2:] == [tokenizer.eos_token_id, -100, -100, -100]
    assert tokenizer(text_target="Why?")["labels"] == tokenizer.encode("Why?")
    single = tokenizer(STORY, text_target="Why?")
    assert single["labels"] == tokenizer.encode("Why?")


def test_truncation_and_padding_to_a_size(tokenizer):
    cut = tokenizer(STORY, text_target="The cake was burnt.", truncation=True, max_length=3, max_sentences=1)
    assert tokenizer.convert_ids_to_tokens(cut["input_ids"][0]) == ["they", "did", "n't"]
    assert tokenizer.convert_ids_to_tokens(cut["labels"]) == ["the", "cake", "</s>"]
    assert tokenizer(text_target="Why?", truncation=True, max_length=1)["labels"] == [tokenizer.eos_token_id]
    assert tokenizer(text_target="Why?", truncation=True, max_length=3)["labels"] == tokenizer.encode("Why?")
    fixed = tokenizer(STORY, padding="max_length", max_length=20, max_sentences=4, return_tensors="pt")
    assert fixed["input_ids"].shape == (1, 4, 20) and fixed["triple_ids"].shape == (1, 4, 20, 3, 3)
    with pytest.raises(ValueError, match="`max_length` is 3: pass `truncation=True`"):
        tokenizer(STORY, padding="max_length", max_length=3)
    with pytest.raises(ValueError, match="needs `max_length`"):
        tokenizer(STORY, padding="max_length")
    tokenizer.model_max_length = 2
    assert [len(ids) for ids in tokenizer(STORY, truncation=True)["input_ids"]] == [2, 2]


def test_triples_are_those_of_the_table(tokenizer):
    batch = tokenizer("Anna put a cake in the oven. They burn cakes.", return_tensors="pt")
    assert triples_at(tokenizer, batch, "oven") == [("oven", "UsedFor", "cake"), ("oven", "AtLocation", "kitchen")]
    assert triples_at(tokenizer, batch, "cakes") == [("cake", "ReceivesAction", "burn")]
    assert triples_at(tokenizer, batch, "anna") == []


def test_phrases_are_matched_in_text(tokenizer):
    batch = tokenizer(["They burn cakes, trick or treat.", "They treat mice."], return_tensors="pt")
    assert triples_at(tokenizer, batch, "treat") == [("treat", "RelatedTo", "friday")]
    assert triples_at(tokenizer, batch, "treat", story=1) == []
    later = tokenizer.pad([{"input_ids": tokenizer("They trick or treat.")["input_ids"]}], return_tensors="pt")
    assert triples_at(tokenizer, later, "treat") == [("treat", "RelatedTo", "friday")]


def test_own_knowledge_added_for_good(tokenizer, tmp_path):
    assert tokenizer.add_triples([("cake", "/r/RelatedTo", "Friday")]) == 1
    batch = tokenizer("They burn cakes.", return_tensors="pt")
    expected = [("cake", "RelatedTo", "friday"), ("cake", "ReceivesAction", "burn")]
    assert triples_at(tokenizer, batch, "cakes") == expected
    tokenizer.save_pretrained(tmp_path)
    again = IncrementalEncoderTokenizer.from_pretrained(tmp_path)
    assert triples_at(again, again("They burn cakes.", return_tensors="pt"), "cakes") == expected


def test_own_knowledge_for_one_call(tokenizer):
    before = tokenizer(STORY, return_tensors="pt")
    own = [("film", "RelatedTo", "cake")]
    stories = ["A long film.", "The film was long."]
    batch = tokenizer(stories, triples=own, return_tensors="pt")
    assert triples_at(tokenizer, batch, "film") == triples_at(tokenizer, batch, "film", story=1) == own
    per_story = tokenizer(stories, triples=[[], own], return_tensors="pt")
    assert triples_at(tokenizer, per_story, "film") == [] and triples_at(tokenizer, per_story, "film", story=1) == own
    ragged = tokenizer(stories, triples=own)
    repadded = tokenizer.pad(ragged, return_tensors="pt")
    assert torch.equal(
        repadded["triple_ids"][repadded["triple_mask"] == 1], batch["triple_ids"][batch["triple_mask"] == 1]
    )
    after = tokenizer(STORY, return_tensors="pt")
    assert torch.equal(before["triple_ids"], after["triple_ids"]), "a call leaves no trace"


def test_a_full_graph_makes_room_for_own_triples(tokenizer):
    own = [("oven", "RelatedTo", "film"), ("oven", "Causes", "smoke")]
    batch = tokenizer("The oven was full.", triples=own, return_tensors="pt")
    assert triples_at(tokenizer, batch, "oven") == [*own, ("oven", "UsedFor", "cake")]


def test_unknown_words_and_relations_are_reported(tokenizer, caplog):
    wrong = [("oven", "Likes", "cake"), ("oven", "UsedFor", "pizza"), ("oven", "UsedFor", "film")]
    with pytest.raises(ValueError, match="2 of 3 triples can't be used.*'Likes'.*'pizza' not in the vocabulary"):
        tokenizer.add_triples(wrong)
    assert tokenizer.knowledge.of("oven")[0][2] == "cake", "nothing was added"
    with pytest.raises(ValueError, match="'pizza'"):
        tokenizer(STORY, triples=wrong[1:])
    assert tokenizer.add_triples(wrong, skip_unknown=True) == 1
    assert tokenizer.knowledge.of("oven")[0][2] == "film"
    with pytest.raises(ValueError, match="2 lists for 1 stories"):
        tokenizer(STORY, triples=[[], []])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Give a story"),
        ({"text": ""}, "Story 1 is empty"),
        ({"text": "  \n"}, "Story 1 is empty"),
        ({"text": []}, "`text` is an empty list"),
        ({"text": [[]]}, "Story 1 is empty"),
        ({"text": [SENTENCES, []]}, "Story 2 is empty"),
        ({"text": [["One.", " "]]}, "Sentence 2 of story 1 has no word"),
        ({"text": 5}, "`text` must be a string or a list; got int"),
        ({"text": [STORY, None]}, "Story 2 must be a string or a list of sentences; got None"),
        ({"text": [["One.", 2]]}, "Story 1 must be a string or a list of sentences"),
        ({"text": STORY, "text_target": ["One.", "Two."]}, "2 endings for 1 stories"),
        ({"text": STORY, "text_target": ["", ""]}, "Ending 1 has no word"),
        ({"text": STORY, "text_target": [3]}, "Ending 1 must be a string; got 3"),
        ({"text": STORY, "max_length": 0}, "`max_length` must be a whole number"),
        ({"text": STORY, "padding": "short", "return_tensors": "pt"}, "`padding` must be"),
        ({"text": STORY, "padding": False, "return_tensors": "pt"}, "pass `padding=True`"),
        ({"text": STORY, "return_tensors": "tf"}, "`return_tensors` must be"),
        ({"text": STORY, "triples": [("oven", "UsedFor", "film")], "return_triples": False}, "would drop them"),
    ],
)
def test_bad_stories(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        tokenizer(**arguments)


def test_text_can_not_smuggle_in_symbols(tokenizer):
    batch = tokenizer("They saw </s> and <s> <pad> smoke.", return_tensors="pt")
    special = {tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id}
    assert not special & set(batch["input_ids"].flatten().tolist())


@pytest.mark.parametrize(
    "words, printed",
    [
        ("anna 's cake was burnt .", "Anna's cake was burnt."),
        ("they did n't hear tom !", "They didn't hear Tom!"),
        ('" why ? " asked tom .', '"Why?" asked Tom.'),
        ("we saw mice on friday , tom .", "We saw mice on Friday, Tom."),
    ],
)
def test_decoding_prints_a_sentence(tokenizer, words, printed):
    ids = tokenizer.convert_tokens_to_ids(words.split())
    assert (
        tokenizer.decode([tokenizer.bos_token_id, *ids, tokenizer.eos_token_id], skip_special_tokens=True) == printed
    )
    padded = torch.tensor([[2, *ids, 3, 1, 1]])
    assert tokenizer.batch_decode(padded, skip_special_tokens=True) == [printed]
    assert tokenizer.decode(padded, skip_special_tokens=True) == [printed]
    assert tokenizer.decode(torch.tensor(ids[0])) == tokenizer.decode(ids[:1]) == printed[: len(words.split()[0])]


def test_names_have_the_case_of_the_context(tokenizer):
    ids = tokenizer.encode("They saw the oven and tom.")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "They saw the oven and Tom."
    context = "We went to The Oven. We like TOM."
    assert tokenizer.decode(ids, skip_special_tokens=True, context=context) == "They saw The Oven and TOM."
    rows = tokenizer.batch_decode([ids, ids, ids, ids], skip_special_tokens=True, context=[STORY, context])
    assert rows == [rows[0], rows[0], "They saw The Oven and TOM.", "They saw The Oven and TOM."]
    with pytest.raises(ValueError, match="2 stories for 3 endings"):
        tokenizer.batch_decode([ids] * 3, context=[STORY, STORY])


def test_cased_vocabulary_and_whole_contractions(tmp_path):
    vocab = {word: i for i, word in enumerate(["<unk>", "<pad>", "<s>", "</s>", "Tom", "didn't", "bark", ".", "tom"])}
    tokenizer = IncrementalEncoderTokenizer(vocab=vocab, do_lower_case=False, split_contractions=False)
    tokenizer.save_pretrained(tmp_path)
    for loaded in (tokenizer, IncrementalEncoderTokenizer.from_pretrained(tmp_path)):
        assert loaded("Tom didn't bark.")["input_ids"] == [[4, 5, 6, 7]]
        assert loaded.decode([8, 5, 6, 7]) == "Tom didn't bark."


def test_saved_and_loaded(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is IncrementalEncoderTokenizer
    batch, expected = loaded(STORY, return_tensors="pt"), tokenizer(STORY, return_tensors="pt")
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    assert loaded.decode(loaded.encode("tom")) == tokenizer.decode(tokenizer.encode("tom"))
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert json.loads((tmp_path / "vocab.json").read_text())["oven"] == tokenizer.convert_tokens_to_ids("oven")
    assert not list(tmp_path.glob("*.pkl")) + list(tmp_path.glob("*.bin"))


def test_pickled_the_same_before_and_after_use(tokenizer):
    """Cached data sets are found again by this fingerprint."""
    before = pickle.dumps(tokenizer)
    tokenizer(STORY, return_tensors="pt")
    assert pickle.dumps(tokenizer) == before
    copy = pickle.loads(before)
    assert torch.equal(
        copy(STORY, return_tensors="pt")["triple_ids"], tokenizer(STORY, return_tensors="pt")["triple_ids"]
    )


def test_added_words_are_words(tokenizer, tmp_path):
    assert tokenizer.add_tokens(["pizza"]) == 1
    ids = tokenizer("A pizza.")["input_ids"][0]
    assert ids[1] == len(tokenizer) - 1 and tokenizer.decode(ids) == "A pizza."
    tokenizer.add_triples([("oven", "UsedFor", "pizza")])
    tokenizer.save_pretrained(tmp_path)
    for own in (tokenizer, IncrementalEncoderTokenizer.from_pretrained(tmp_path)):
        assert triples_at(own, own("The oven.", return_tensors="pt"), "oven")[0][2] == "pizza"


def test_collators_pad_and_look_up(tokenizer):
    features = [
        dict(tokenizer(story, text_target=ending, return_triples=False))
        for story, ending in [(STORY, "Why?"), ("They saw smoke.", "The cake was burnt.")]
    ]
    assert "triple_ids" not in features[0]
    batch = DataCollatorWithPadding(tokenizer)(features)
    expected = tokenizer([STORY, "They saw smoke."], text_target=["Why?", "The cake was burnt."], return_tensors="pt")
    assert batch.keys() == expected.keys()
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    again = tokenizer.pad(batch, return_tensors="pt")
    assert all(torch.equal(again[name], expected[name]) for name in expected), "padding twice is padding once"


@pytest.mark.parametrize("layout", ["torch", "numpy"])
@pytest.mark.parametrize("return_triples", [True, False])
def test_data_sets_in_the_format_of_arrays_are_collated(tokenizer, layout, return_triples):
    """Rows of different lengths come as lists, or arrays, of arrays."""
    tokenizer.num_copy_slots, tokenizer.tail_pointer = 3, True
    rows = [dict(tokenizer(story, return_triples=return_triples)) for story in (STORY, "They saw Zorbl. Why?")]
    rows = [{**row, "labels": labels} for row, labels in zip(rows, ([5, 6, 3], [7, 3]), strict=True)]
    formatted = Dataset.from_list(rows).with_format(layout)
    expected = DataCollatorForSeq2Seq(tokenizer)(rows)
    for batch in (
        DataCollatorForSeq2Seq(tokenizer)([formatted[0], formatted[1]]),
        tokenizer.pad({**formatted[:2], "labels": [[5, 6, 3], [7, 3]]}, return_tensors="pt"),
    ):
        assert batch.keys() == expected.keys()
        assert all(torch.equal(batch[name], expected[name]) for name in expected)


def test_flat_use_is_standard(tokenizer):
    ids = tokenizer.encode("The cake was burnt.")
    assert ids[-1] == tokenizer.eos_token_id
    assert tokenizer.encode("The cake was burnt.", add_special_tokens=False) == ids[:-1]
    assert tokenizer.tokenize("Anna's cake") == ["anna", "'s", "cake"]
    padded = tokenizer.pad({"input_ids": [[5, 6], [7]]}, return_tensors="pt")
    assert padded["input_ids"].tolist() == [[5, 6], [7, tokenizer.pad_token_id]]


@pytest.mark.parametrize(
    "vocab, message",
    [({"<unk>": 0, "a": 2}, "from 0 to 1"), ({"<unk>": 0, "a": 0}, "from 0 to 1"), ({"a": "0"}, "from 0 to 0")],
)
def test_broken_vocabularies(vocab, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        IncrementalEncoderTokenizer(vocab=vocab)
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps(vocab))
    with pytest.raises(ValueError, match="vocab.json.*" + message):
        IncrementalEncoderTokenizer(vocab_file=str(path))
    path.write_text("[1")
    with pytest.raises(ValueError, match="vocab.json is not JSON"):
        IncrementalEncoderTokenizer(vocab_file=str(path))
    with pytest.raises(ValueError, match="needs words"):
        IncrementalEncoderTokenizer()


def test_a_table_with_words_the_vocabulary_lacks(tokenizer):
    with pytest.raises(ValueError, match="'pizza', in the triples of 'oven', is not in the vocabulary"):
        tokenizer.knowledge = KnowledgeTable(["UsedFor"], triples={"oven": [("oven", "UsedFor", "pizza")]})


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stories=st.lists(st.lists(st.text(), min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_text_gives_tensors_or_a_clear_error(tokenizer, stories):
    try:
        batch = tokenizer(stories, return_tensors="pt")
    except ValueError as error:
        assert "has no word" in str(error)
        return
    assert batch["input_ids"].max() < len(tokenizer) and batch["input_ids"].min() >= 0
    ragged = tokenizer(stories)
    assert [len(story) for story in ragged["input_ids"]] == [len(story) for story in stories]
    assert all(torch.equal(tensor, tokenizer.pad(ragged, return_tensors="pt")[name]) for name, tensor in batch.items())


@pytest.mark.parametrize(
    "keyword",
    [
        {"padding_side": "left"},
        {"pad_to_multiple_of": 8},
        {"is_split_into_words": True},
        {"return_length": True},
        {"return_overflowing_tokens": True},
        {"return_special_tokens_mask": True},
        {"return_token_type_ids": True},
        {"return_offsets_mapping": True},
        {"stride": 2},
        {"text_pair": "They saw smoke."},
    ],
    ids=lambda keyword: next(iter(keyword)),
)
def test_standard_keywords_are_refused_by_name(tokenizer, keyword):
    (name,) = keyword
    story = "Anna put a cake in the oven."
    with pytest.raises(ValueError, match=f"`{name}=.*` is not supported"):
        tokenizer(story, **keyword)
    with pytest.raises(ValueError, match=f"`{name}=.*` is not supported"):
        tokenizer.pad([tokenizer(story)], **keyword)


def test_standard_keywords_that_change_nothing_or_are_honoured(tokenizer):
    story = "Anna put a cake in the oven."
    defaults = {"add_special_tokens": True, "padding_side": "right", "pad_to_multiple_of": None, "verbose": False}
    assert tokenizer(story, **defaults) == tokenizer(story)
    assert "attention_mask" not in tokenizer(story, return_attention_mask=False)
    assert "attention_mask" not in tokenizer.pad([tokenizer(story)], return_attention_mask=False)
    with pytest.raises(TypeError, match="`colour` is no keyword of tokenizers"):
        tokenizer(story, colour="red")


def test_the_fingerprint_of_datasets_is_the_same_after_use(tokenizer):
    before = Hasher.hash(tokenizer)
    batch = tokenizer(["Zorblax put a cake in the oven.", "They saw smoke."], return_tensors="pt")
    tokenizer.batch_decode(batch["input_ids"][:, 0])
    tokenizer.pad([tokenizer("They saw smoke.")])
    tokenizer.encode("They saw smoke.")
    assert Hasher.hash(tokenizer) == before

"""Out-of-vocabulary words: numbered by the tokenizer, copied by the model, printed as the story has them."""

import datasets
import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.data.batching import StoryCollator, tokenise_stories
from hf_storyend.modeling.copying import merge_oov_logits
from hf_storyend.modeling.oov_ids import to_slots

STORY = "Quentin put a zorbl in the oven. Then Anna and Quentin watched a kraken. A Zorbl was burnt."
ENDING = "Quentin saw Ludmila and the zorbl."


@pytest.fixture
def copying(tokenizer) -> IncrementalEncoderTokenizer:
    tokenizer.num_copy_slots = 4
    return tokenizer


def slots(tokenizer, *numbers):
    return [len(tokenizer) + number for number in numbers]


def in_slots(tokenizer, ids):
    """Ids without the names of words out of the vocabulary: [...] -> [...]."""
    return to_slots(torch.as_tensor(ids), len(tokenizer), max(1, tokenizer.num_copy_slots))


def test_unknown_words_have_numbers_in_their_story(copying):
    batch = copying(STORY, text_target=ENDING)
    batch["copy_ids"] = [in_slots(copying, sentence).tolist() for sentence in batch["copy_ids"]]
    quentin, zorbl, kraken = slots(copying, 0, 1, 2)
    known = copying.convert_tokens_to_ids
    assert batch["copy_ids"][0] == [quentin, *known(["put", "a"]), zorbl, *known(["in", "the", "oven", "."])]
    assert [batch["copy_ids"][1][place] for place in (3, 6)] == [quentin, kraken]
    assert batch["copy_ids"][2][1] == zorbl, "equal words share a number, whatever their case"
    assert batch["labels"][0] == quentin and batch["labels"][5] == zorbl
    assert batch["labels"][2] == copying.unk_token_id, "a word that is not in the story can't be copied"
    assert batch["input_ids"][0][0] == batch["input_ids"][0][3] == copying.unk_token_id
    assert max(word for sentence in batch["input_ids"] for word in sentence) < len(copying)


def test_known_words_are_copied_under_their_own_ids(copying):
    story = "Anna put a cake in the oven."
    batch = copying(story, return_tensors="pt")
    assert torch.equal(batch["copy_ids"], batch["input_ids"])


def test_without_slots_nothing_changes(tokenizer):
    batch = tokenizer(STORY, text_target=ENDING, return_tensors="pt")
    assert "copy_ids" not in batch
    assert (batch["labels"] < len(tokenizer)).all()


def test_tensors_and_collators(copying):
    stories, endings = [STORY, "They saw Quentin."], [ENDING, "They burn Quentin."]
    batch = copying(stories, text_target=endings, return_tensors="pt")
    ragged = [
        dict(copying(story, text_target=ending, return_triples=False))
        for story, ending in zip(stories, endings, strict=True)
    ]
    again = copying.pad(ragged, return_tensors="pt")
    assert batch.keys() == again.keys()
    assert all(torch.equal(batch[name], again[name]) for name in batch)
    assert batch["copy_ids"].shape == batch["input_ids"].shape
    assert in_slots(copying, batch["copy_ids"])[1, 0, 2] == slots(copying, 0)[0], "every story has its own numbers"
    twice = copying.pad(batch, return_tensors="pt")
    assert all(torch.equal(batch[name], twice[name]) for name in batch)


def test_more_unknown_words_than_slots(copying):
    story = "The a1 and b2 and c3 and d4 and e5 and a1."
    batch = copying(story, text_target="We saw e5, d4.")
    copied = in_slots(copying, batch["copy_ids"][0])
    assert copied[copied >= len(copying)].tolist() == slots(copying, 0, 1, 2, 3, 0)
    assert batch["copy_ids"][0][9] == batch["labels"][2] == copying.unk_token_id
    assert batch["labels"][4] == slots(copying, 3)[0]


def test_endings_are_printed_with_the_words_of_their_story(copying):
    ids = copying(STORY, text_target=ENDING)["labels"]
    printed = "Quentin saw and the zorbl."
    assert copying.decode(ids, skip_special_tokens=True, context=STORY) == printed
    assert copying.batch_decode([ids, ids], skip_special_tokens=True, context=[STORY, "Then MARLA saw a Bobcat."]) == [
        printed,
        "MARLA saw and the Bobcat.",
    ]
    as_sentences = ["Quentin put a zorbl in the oven.", "Then Anna and Quentin watched a kraken."]
    assert copying.batch_decode([ids], skip_special_tokens=True, context=[as_sentences]) == [printed]
    assert copying.decode(ids, context=STORY) == "Quentin saw <unk> and the zorbl. </s>"
    assert "the <unk>" in copying.decode(ids, skip_special_tokens=True), "whose word it is, is not known"


def test_a_word_is_written_as_inside_a_sentence_or_else_as_it_stands(copying):
    story = "Marzipan was in the kitchen. Tom put Marzipan in the oven. Zorbl was burnt. They saw a kraken. Kraken!"
    ids = [*copying.convert_tokens_to_ids(["they", "saw"]), *slots(copying, 0, 1, 2)]
    assert copying.decode(ids, context=story) == "They saw Marzipan Zorbl kraken"


def test_numbers_do_not_depend_on_what_is_cut_off(copying):
    cut = copying(STORY, text_target=ENDING, truncation=True, max_sentences=2, max_length=7)
    assert cut["copy_ids"][0][3] == copying(STORY)["copy_ids"][0][0]
    assert cut["labels"][0] == slots(copying, 0)[0]
    assert copying.decode(cut["labels"], context=STORY, skip_special_tokens=True).startswith("Quentin saw")


def test_saved_and_loaded(copying, tmp_path):
    copying.save_pretrained(tmp_path)
    loaded = IncrementalEncoderTokenizer.from_pretrained(tmp_path)
    assert loaded.num_copy_slots == 4
    assert loaded(STORY)["copy_ids"] == copying(STORY)["copy_ids"]
    config = IncrementalEncoderConfig.for_tokenizer(loaded)
    assert config.copy and config.num_copy_slots == 4 and config.num_output_words == len(loaded) + 4


def test_added_words_move_the_slots(copying):
    before = len(copying)
    copying.add_tokens(["zorbl"])
    ids = [in_slots(copying, sentence).tolist() for sentence in copying(STORY)["copy_ids"]]
    assert ids[0][3] == before and ids[1][6] == before + 2
    assert copying.decode([ids[1][6]], context=STORY) == "Kraken"


@pytest.mark.parametrize("number", [-1, 2.5, True, None])
def test_bad_numbers_of_slots(tokenizer, number):
    with pytest.raises(ValueError, match="`num_copy_slots` must be a whole number"):
        IncrementalEncoderTokenizer(vocab=tokenizer.get_vocab(), num_copy_slots=number)


ROWS = {"context": [[STORY], ["They saw Quentin."]], "ending": [ENDING, "They burn Quentin."]}


@pytest.fixture
def tokenised(tokenizer, tmp_path, monkeypatch) -> Dataset:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tokenise_stories(DatasetDict({"train": Dataset.from_dict(ROWS)}), tokenizer)["train"]


def test_tokenised_stories_serve_all_systems(tokenizer, tokenised):
    rows = [tokenised[0], tokenised[1]]
    for num_slots in (0, 1, 4):
        tokenizer.num_copy_slots = num_slots
        batch = StoryCollator(tokenizer)(rows)
        expected = tokenizer(ROWS["context"], text_target=ROWS["ending"], return_tensors="pt")
        assert batch.keys() == expected.keys()
        if "copy_ids" in expected:
            # Tokenised stories are for any number of slots, so that their words have no names.
            expected["copy_ids"] = in_slots(tokenizer, expected["copy_ids"])
        assert all(torch.equal(batch[name], expected[name]) for name in batch)


def test_older_tokenised_stories_serve_systems_that_do_not_copy(tokenizer, tokenised):
    old = tokenised.remove_columns(["copy_ids", "copy_labels"])
    assert "labels" in StoryCollator(tokenizer)([old[0]])
    tokenizer.num_copy_slots = 4
    with pytest.raises(ValueError, match="no `copy_ids`.*prepare them again"):
        StoryCollator(tokenizer)([old[0]])


@pytest.mark.parametrize("story_encoder", ["incremental", "hierarchical", "sequence"])
def test_a_model_learns_to_copy_words_it_has_never_seen(copying, story_encoder):
    """The ending repeats the name, another one in every story; generated, it is a name that no training story had."""
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(
        copying, embedding_size=16, hidden_size=24, num_layers=1, knowledge=None, story_encoder=story_encoder
    )
    model = IncrementalEncoderForEndingGeneration(config).train()
    frames = ["{} watched a film. They burn cakes.", "They saw {} in the kitchen. Tom opened the window."]
    stories = [frames[number % 2].format(f"Name{number}") for number in range(32)]
    endings = [f"Then Name{number} was in the oven." for number in range(32)]
    batch = copying(stories, text_target=endings, return_tensors="pt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    unseen = "They saw Wolfram in the kitchen. Tom opened the window."
    for num_beams in (1, 3):
        ids = model.eval().generate(**copying([unseen, stories[0]], return_tensors="pt"), num_beams=num_beams)
        printed = copying.batch_decode(ids, skip_special_tokens=True, context=[unseen, stories[0]])
        assert printed == ["Then Wolfram was in the oven.", "Then Name0 was in the oven."]


def test_slots_can_count_as_the_unknown_word(copying):
    """For a perplexity over the vocabulary that models with and without copying have in common."""
    config = IncrementalEncoderConfig.for_tokenizer(copying, embedding_size=4, hidden_size=4)
    model = IncrementalEncoderForEndingGeneration(config).eval()
    logits = model(**copying(STORY, text_target=ENDING, return_tensors="pt")).logits
    merged = merge_oov_logits(logits, config.vocab_size, config.unk_token_id).softmax(-1)
    before = logits.softmax(-1)
    assert merged.shape[-1] == config.vocab_size
    unknown = before[..., config.unk_token_id] + before[..., config.vocab_size :].sum(-1)
    torch.testing.assert_close(merged[..., config.unk_token_id], unknown)
    torch.testing.assert_close(merged[..., 1:], before[..., 1 : config.vocab_size])


@pytest.mark.parametrize(
    "corrupt, message",
    [
        (lambda b, c: b["copy_ids"].fill_(c.num_output_words), "`copy_ids` holds"),
        (lambda b, c: b.update(copy_ids=b["copy_ids"][:, :-1]), "`copy_ids` must have the shape"),
        (lambda b, c: b.update(copy_ids=b["copy_ids"].repeat(1, 2, 1)), "`copy_ids` must have the shape"),
        (lambda b, c: b.update(copy_ids=b["copy_ids"].float()), "`copy_ids` must hold whole numbers"),
        (lambda b, c: b["labels"].fill_(c.num_output_words), "`labels` holds"),
        (lambda b, c: b["labels"].fill_(c.num_output_words - 1), "a slot that none of its `copy_ids` has"),
    ],
)
def test_bad_input(copying, corrupt, message):
    config = IncrementalEncoderConfig.for_tokenizer(copying, embedding_size=4, hidden_size=4)
    batch = copying(STORY, text_target=ENDING, return_tensors="pt")
    corrupt(batch, config)
    with pytest.raises(ValueError, match=message):
        IncrementalEncoderForEndingGeneration(config)(**batch)


def test_a_model_with_more_rows_than_the_tokenizer_has_words(copying):
    """Its slots start elsewhere: words without names would be taken for the words of those rows."""
    config = IncrementalEncoderConfig.for_tokenizer(
        copying, vocab_size=len(copying) + 8, embedding_size=4, hidden_size=4
    )
    model = IncrementalEncoderForEndingGeneration(config)
    named = copying(STORY, return_tensors="pt")
    model.generate(**named, max_new_tokens=2)
    batch = {**named, "copy_ids": in_slots(copying, named["copy_ids"])}
    with pytest.raises(ValueError, match=r"a slot from `config.vocab_size` .*resize_token_embeddings"):
        model.generate(**batch, max_new_tokens=2)
    model.resize_token_embeddings(len(copying))
    model.generate(**batch, max_new_tokens=2)

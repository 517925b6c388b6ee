"""
What transformers' own tests ask of every tokenizer, held by us.

`encode`, `tokenize`, `convert_*`, `pad` and `prepare_for_model` treat text as one flat sequence and have to pass all
of it. Calls read nested stories: docs/ecosystem.md lists what follows from that.
"""

import inspect
import logging
import pickle

import pytest
import torch
from small_model import small_model
from small_tokenizer import small_tokenizer
from transformers import AddedToken, AutoTokenizer, BatchEncoding

from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

TEXT = "Anna put a cake in the oven."
TEXTS = [TEXT, "They didn't hear the timer!", '"Why?" asked Tom.']


@pytest.fixture(params=["plain", "copying", "pointing to tails"])
def tokenizer(request):
    tokenizer = small_tokenizer()
    tokenizer.num_copy_slots = 0 if request.param == "plain" else 3
    tokenizer.tail_pointer = request.param == "pointing to tails"
    return tokenizer


def reloaded(tokenizer, folder, **settings):
    tokenizer.save_pretrained(folder)
    return IncrementalEncoderTokenizer.from_pretrained(folder, **settings)


def same(left: BatchEncoding, right: BatchEncoding) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_text_tokens_and_ids_agree(tokenizer):
    for text in TEXTS:
        tokens, ids = tokenizer.tokenize(text), tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.convert_tokens_to_ids(tokens) == ids
        assert tokenizer.convert_ids_to_tokens(ids) == tokens
        assert tokenizer.convert_tokens_to_string(tokens) == tokenizer.decode(ids) == text
        assert tokenizer.encode(tokens, is_split_into_words=True, add_special_tokens=False) == ids
        assert tokenizer.encode(ids, add_special_tokens=False) == ids


def test_every_word_has_one_id_and_every_id_one_word(tokenizer):
    vocabulary = tokenizer.get_vocab()
    assert len(vocabulary) == len(tokenizer) >= tokenizer.vocab_size
    for word, index in vocabulary.items():
        assert tokenizer.convert_tokens_to_ids(word) == index and tokenizer.convert_ids_to_tokens(index) == word
    assert sorted(vocabulary.values()) == list(range(len(tokenizer)))


def test_batches_are_decoded_row_by_row(tokenizer):
    rows = [tokenizer.encode(text) for text in TEXTS]
    expected = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    assert tokenizer.batch_decode(rows, skip_special_tokens=True) == expected == TEXTS
    stories = tokenizer([f"{TEXT} {TEXTS[1]}", TEXT], return_tensors="pt")["input_ids"]
    for ids in (stories, stories.numpy(), stories.tolist(), list(stories)):
        assert tokenizer.batch_decode(ids, skip_special_tokens=True) == [f"{TEXT} {TEXTS[1]}", TEXT]
    padded = tokenizer.pad({"input_ids": rows}, return_tensors="pt")["input_ids"]
    for ids in (padded, padded.numpy(), padded.tolist()):
        assert tokenizer.batch_decode(ids, skip_special_tokens=True) == TEXTS
    assert isinstance(tokenizer.decode(rows[0]), str) and isinstance(tokenizer.decode(rows[0][0]), str)


@pytest.mark.parametrize("clean_up", [None, True, False])
def test_words_are_joined_as_a_person_would_whatever_is_cleaned_up(tokenizer, clean_up):
    ids = tokenizer.encode(TEXTS[1], add_special_tokens=False)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=clean_up) == TEXTS[1]
    assert tokenizer.batch_decode([ids], clean_up_tokenization_spaces=clean_up) == [TEXTS[1]]


def test_no_text_is_an_empty_flat_sequence(tokenizer):
    assert tokenizer.tokenize("") == [] and tokenizer.encode("", add_special_tokens=False) == []
    assert tokenizer.encode("") == [tokenizer.eos_token_id] and tokenizer.decode([]) == ""


# Special and added tokens.


def test_special_tokens_of_flat_sequences(tokenizer):
    end = tokenizer.eos_token_id
    assert tokenizer.build_inputs_with_special_tokens([5, 6]) == [5, 6, end]
    assert tokenizer.build_inputs_with_special_tokens([5], [6]) == [5, end, 6, end]
    assert (tokenizer.num_special_tokens_to_add(), tokenizer.num_special_tokens_to_add(pair=True)) == (1, 2)
    assert tokenizer.get_special_tokens_mask([5, 6]) == [0, 0, 1]
    assert tokenizer.get_special_tokens_mask([5, 6, end], already_has_special_tokens=True) == [0, 0, 1]
    pair = tokenizer.encode(TEXT, "They saw smoke.")
    assert pair.count(end) == 2 and pair[-1] == end


@pytest.mark.parametrize("name", ["unk", "pad", "bos", "eos", "cls", "sep", "mask"])
def test_special_tokens_and_their_ids_are_set_together(tokenizer, name):
    setattr(tokenizer, f"{name}_token", "oven")
    assert getattr(tokenizer, f"{name}_token_id") == tokenizer.convert_tokens_to_ids("oven")
    setattr(tokenizer, f"{name}_token_id", tokenizer.convert_tokens_to_ids("cake"))
    assert getattr(tokenizer, f"{name}_token") == "cake" and "cake" in tokenizer.all_special_tokens


def test_added_tokens_are_words_at_once_and_after_saving(tokenizer, tmp_path):
    size, words = tokenizer.vocab_size, len(tokenizer)
    assert tokenizer.add_tokens(["pizza", "oven"]) == 1, "one of them is known"
    assert tokenizer.add_special_tokens({"cls_token": "<cls>"}) == 1
    assert tokenizer.add_tokens([AddedToken("<stop>", special=True)], special_tokens=True) == 1
    assert (tokenizer.vocab_size, len(tokenizer)) == (size, words + 3)
    for own in (tokenizer, reloaded(tokenizer, tmp_path)):
        ids = own.encode("Tom saw pizza <cls> <stop>", add_special_tokens=False)
        assert ids[2:] == [words, words + 1, words + 2]
        assert own.decode(ids) == "Tom saw pizza <cls> <stop>"
        assert own.decode(ids, skip_special_tokens=True) == "Tom saw pizza"
        assert own.cls_token_id == words + 1 and own.get_added_vocab()["pizza"] == words
        assert own("Tom saw pizza.", return_tensors="pt")["input_ids"][0, 0, 2] == words


def test_special_tokens_in_text_are_kept_or_split_as_asked(tokenizer):
    assert tokenizer.eos_token in tokenizer.tokenize("They </s> saw")
    assert tokenizer.eos_token_id not in tokenizer.encode(
        "They </s> saw", add_special_tokens=False, split_special_tokens=True
    )


def test_extra_special_tokens_of_a_caller(tokenizer, tmp_path):
    own = reloaded(tokenizer, tmp_path, extra_special_tokens={"title_token": "<title>"})
    assert own.title_token == "<title>" and own.title_token_id == len(tokenizer)
    own.save_pretrained(tmp_path / "again")
    again = AutoTokenizer.from_pretrained(tmp_path / "again")
    assert again.title_token_id == len(tokenizer) and again.decode([again.title_token_id]) == "<title>"


# Saving and loading.


def test_saved_loaded_and_pickled_tokenizers_are_the_same(tokenizer, tmp_path):
    tokenizer.model_max_length = 42
    for own in (reloaded(tokenizer, tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert type(own) is type(tokenizer) and own.get_vocab() == tokenizer.get_vocab()
        assert own.special_tokens_map == tokenizer.special_tokens_map and own.model_max_length == 42
        assert [own.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]
        assert same(own(TEXTS, return_tensors="pt"), tokenizer(TEXTS, return_tensors="pt"))
    assert reloaded(tokenizer, tmp_path, model_max_length=43).model_max_length == 43
    assert reloaded(tokenizer, tmp_path, eos_token="<end>").eos_token == "<end>"


def test_all_of_the_signature_is_stored(tokenizer, tmp_path):
    """What a tokenizer is made with is what it is loaded with."""
    signature = inspect.signature(IncrementalEncoderTokenizer.__init__).parameters
    own = reloaded(tokenizer, tmp_path)
    for name in signature.keys() - {"vocab_file", "vocab", "self", "kwargs"}:
        assert name in own.init_kwargs, name
    own.save_pretrained(tmp_path / "again")
    assert str(tmp_path) not in (tmp_path / "again" / "tokenizer_config.json").read_text()
    assert own.num_copy_slots == tokenizer.num_copy_slots and own.tail_pointer == tokenizer.tail_pointer


@pytest.mark.parametrize("name", ["add_special_tokens", "get_vocab", "add_triples"])
def test_a_setting_with_the_name_of_a_method_is_refused_as_everywhere(tokenizer, tmp_path, name):
    with pytest.raises(AttributeError, match=f"{name} conflicts with the method {name}"):
        reloaded(tokenizer, tmp_path, **{name: True})


def test_a_chat_template_is_saved_and_applied_as_text(tokenizer, tmp_path):
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    own = reloaded(tokenizer, tmp_path)
    assert own.apply_chat_template([{"role": "user", "content": TEXT}], tokenize=False).strip() == TEXT
    ids = own.apply_chat_template([{"role": "user", "content": TEXT}], return_dict=False)
    assert ids == tokenizer(TEXT)["input_ids"]


def test_inputs_are_those_of_the_model(tokenizer):
    forward = inspect.signature(IncrementalEncoderForEndingGeneration.forward).parameters
    names = tokenizer(TEXTS, text_target=TEXTS, return_tensors="pt").keys()
    assert names <= forward.keys() and set(tokenizer.model_input_names) <= names
    assert next(iter(names)) == tokenizer.model_input_names[0] == list(forward)[1] == "input_ids"


# Length: flat sequences.


@pytest.mark.parametrize("side", ["right", "left"])
def test_flat_sequences_are_cut_on_either_side(tokenizer, side):
    tokenizer.truncation_side = side
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    cut = tokenizer.encode(TEXT, add_special_tokens=False, truncation=True, max_length=3)
    assert cut == (ids[:3] if side == "right" else ids[-3:])
    assert tokenizer.encode(TEXT, truncation="longest_first", max_length=3)[-1] == tokenizer.eos_token_id
    assert tokenizer.encode(TEXT, truncation="do_not_truncate", max_length=3) == tokenizer.encode(TEXT)
    pair = tokenizer.encode(TEXT, "They saw smoke.", truncation="only_second", max_length=11)
    assert len(pair) == 11 and pair[: len(ids)] == ids


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("by_keyword", [True, False])
def test_flat_sequences_are_padded_on_either_side(tokenizer, side, by_keyword):
    keyword = {"padding_side": side} if by_keyword else {}
    tokenizer.padding_side = ("left" if side == "right" else "right") if by_keyword else side
    ids, pad = tokenizer.encode(TEXT), tokenizer.pad_token_id
    rest = [pad] * (12 - len(ids))
    expected = ids + rest if side == "right" else rest + ids
    assert tokenizer.encode(TEXT, padding="max_length", max_length=12, **keyword) == expected
    padded = tokenizer.pad([{"input_ids": ids}], padding="max_length", max_length=12, **keyword)
    assert padded["input_ids"] == [expected]
    assert padded["attention_mask"] == [[int(index != pad) for index in expected]]
    assert tokenizer.encode(TEXT, padding=True, **keyword) == tokenizer.encode(TEXT, padding=False) == ids
    sixteen = tokenizer.pad({"input_ids": [ids, ids[:2]]}, pad_to_multiple_of=8, return_tensors="pt", **keyword)
    assert sixteen["input_ids"].shape == (2, 16)


def test_flat_sequences_are_prepared_for_models(tokenizer):
    ids = tokenizer.convert_tokens_to_ids(["tom", "saw", "smoke"])
    made = tokenizer.prepare_for_model(ids, return_special_tokens_mask=True, return_length=True)
    assert made["input_ids"] == [*ids, tokenizer.eos_token_id] and made["length"] == 4
    assert made["attention_mask"] == [1, 1, 1, 1] and made["special_tokens_mask"] == [0, 0, 0, 1]
    cut = tokenizer.prepare_for_model(
        ids, truncation=True, max_length=2, add_special_tokens=False, return_overflowing_tokens=True, stride=1
    )
    assert cut["input_ids"] == ids[:2] and cut["overflowing_tokens"] == ids[1:]


# Calls: nested stories.


@pytest.mark.parametrize("settings", [{}, {"padding": "max_length", "max_length": 9, "max_sentences": 2}])
def test_a_batch_is_its_stories(tokenizer, settings):
    together = tokenizer(TEXTS, return_tensors="pt", **settings)
    alone = [tokenizer(text, **{**settings, "padding": False, "max_length": None}) for text in TEXTS]
    assert same(tokenizer.pad(alone, return_tensors="pt", **settings), together)
    for row, one in enumerate(alone):
        mask = together["attention_mask"][row].bool()
        words = [word for sentence in one["input_ids"] for word in sentence]
        assert together["input_ids"][row][mask].tolist() == words
        assert words == tokenizer.encode(TEXTS[row], add_special_tokens=False)


def test_one_story_that_is_padded_is_a_row_of_a_batch(tokenizer):
    """As `datasets.map` without `batched` collects them."""
    settings = {"padding": "max_length", "max_length": 9, "max_sentences": 2}
    batch = tokenizer(TEXTS, text_target=TEXTS, **settings)
    for row, text in enumerate(TEXTS):
        one = tokenizer(text, text_target=text, **settings)
        one["labels"] += [-100] * (len(batch["labels"][row]) - len(one["labels"]))
        assert one["input_ids"] == batch["input_ids"][row] and one["labels"] == batch["labels"][row]
        assert one["attention_mask"] == batch["attention_mask"][row]
    assert tokenizer(TEXT, padding=True) == {name: rows[0] for name, rows in tokenizer([TEXT], padding=True).items()}
    assert tokenizer(TEXT, padding=True, return_tensors="pt")["input_ids"].ndim == 3


def test_pad_is_for_several_stories(tokenizer):
    with pytest.raises(ValueError, match=r"`pad` was given one story: .* `pad\(\[story\]\)`"):
        tokenizer.pad(tokenizer(TEXT))


def test_a_pair_of_texts_by_place_is_no_story_and_its_ending(tokenizer):
    with pytest.raises(ValueError, match="`text_pair=.*` is not supported: .* its ending is `text_target`"):
        tokenizer(TEXT, TEXTS[1])


def test_stories_go_to_the_model_as_they_are(tokenizer):
    system = {(0, False): "ie-msa-ga", (3, False): "ie-copy", (3, True): "ie-copy-tails"}
    model = small_model(system[tokenizer.num_copy_slots, tokenizer.tail_pointer], tokenizer)
    batch = tokenizer([*TEXTS, "Zorblax saw Tom."], text_target=[*TEXTS, "Zorblax saw smoke."], return_tensors="pt")
    assert model(**batch.to("cpu")).loss.isfinite()


@pytest.mark.parametrize(
    ("strategy", "length"),
    [(True, 3), ("longest_first", 3), ("only_first", 3), (False, 8), (None, 3), ("do_not_truncate", 8)],
)
def test_strategies_of_truncation(tokenizer, strategy, length):
    assert len(tokenizer(TEXT, truncation=strategy, max_length=3)["input_ids"][0]) == length


def test_a_length_that_changes_nothing_is_warned_of(tokenizer, caplog):
    logging.Logger.warning_once.cache_clear()
    assert tokenizer(TEXT, max_length=3, padding=True)["input_ids"] == tokenizer(TEXT)["input_ids"]
    (record,) = caplog.records
    assert "`max_length` changes nothing without `truncation=True`" in record.message


def test_the_length_of_the_tokenizer_is_that_of_padding(tokenizer):
    tokenizer.model_max_length = 12
    assert len(tokenizer(TEXT, padding="max_length")["input_ids"][0]) == 12
    assert len(tokenizer(TEXT, max_sentences=1, return_tensors="pt")["input_ids"][0, 0]) == 8


@pytest.mark.parametrize("strategy", ["only_second", "nonsense", 3])
def test_other_strategies_of_truncation_are_refused(tokenizer, strategy):
    with pytest.raises(ValueError, match="`truncation=.*` is not supported"):
        tokenizer(TEXT, truncation=strategy, max_length=3)


def test_endings_without_their_end_symbol(tokenizer):
    ids = tokenizer(text_target=TEXT)["labels"]
    assert tokenizer(text_target=TEXT, add_special_tokens=False)["labels"] == ids[:-1]
    cut = tokenizer(text_target=TEXT, add_special_tokens=False, truncation=True, max_length=3)
    assert cut["labels"] == ids[:3]
    assert tokenizer(TEXT, add_special_tokens=False) == tokenizer(TEXT), "stories have none"


@pytest.mark.parametrize("side", ["padding_side", "truncation_side"])
def test_a_side_that_is_set_for_other_models_is_warned_of(tokenizer, caplog, side):
    """Generic code sets it before it generates; stories stay as they are."""
    expected = tokenizer(TEXTS, return_tensors="pt", truncation=True, max_length=3)
    logging.Logger.warning_once.cache_clear()
    assert not caplog.records
    setattr(tokenizer, side, "left")
    assert same(tokenizer(TEXTS, return_tensors="pt", truncation=True, max_length=3), expected)
    (record,) = caplog.records
    assert f"`tokenizer.{side}` is for flat sequences" in record.message


# Keywords of `encode` and `decode`.


@pytest.mark.parametrize(
    "keyword",
    [
        {"truncation_side": "left"}, {"stride": 2}, {"return_length": True}, {"return_overflowing_tokens": True},
        {"return_special_tokens_mask": True}, {"return_offsets_mapping": True}, {"return_token_type_ids": True},
    ],
    ids=lambda keyword: next(iter(keyword)),
)  # fmt: skip
def test_keywords_that_encode_would_ignore_are_refused_by_name(tokenizer, keyword):
    (name,) = keyword
    with pytest.raises(ValueError, match=f"`{name}=.*` is not supported"):
        tokenizer.encode(TEXT, **keyword)


def test_unknown_keywords_are_refused_by_name(tokenizer):
    ids = tokenizer.encode(TEXT)
    for call in (
        lambda: tokenizer.encode(TEXT, colour="red"),
        lambda: tokenizer.decode(ids, colour="red"),
        lambda: tokenizer.batch_decode([ids], colour="red"),
        lambda: tokenizer(TEXT, colour="red"),
        lambda: tokenizer.pad([tokenizer(TEXT)], colour="red"),
        lambda: tokenizer.pad([{"input_ids": ids}], colour="red"),
    ):
        with pytest.raises(TypeError, match="colour"):
            call()
    with pytest.raises(ValueError, match="`spaces_between_special_tokens=False` is not supported"):
        tokenizer.decode(ids, spaces_between_special_tokens=False)


def test_every_keyword_of_transformers_is_known_by_name(tokenizer):
    """A keyword that a later transformers adds must be decided upon here."""
    base = inspect.signature(IncrementalEncoderTokenizer.__mro__[1].__call__).parameters
    for name in base.keys() - {"self", "kwargs", "text", "text_target"}:
        try:
            tokenizer(TEXT, **{name: base[name].default})
        except TypeError as error:
            pytest.fail(f"{name}: {error}")

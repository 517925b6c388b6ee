"""Triples are removed, replaced and moved in all tensors of a batch alike."""

import pytest
import torch

from hf_storyend.triple_tensors import (
    concatenate_packed,
    pack_triples,
    remove_triples,
    replace_tails,
    unpack_triples,
    words_with_triples,
)

PAD = 1
STORIES = [["Anna put a cake in the oven.", "They watched a long film."], ["They burn cakes, trick or treat."]]


def with_tail_pointer(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights that name their triple, and two forms of each tail: itself and the next word."""
    mask, tails = batch["triple_mask"], batch["triple_ids"][..., 2]
    forms = torch.stack((tails, tails + 1), dim=-1).masked_fill(mask.unsqueeze(-1) == 0, PAD)
    weights = (batch["triple_ids"] * torch.tensor([1.0, 100.0, 10_000.0])).sum(dim=-1) * mask
    return {**batch, "triple_weights": weights, "tail_form_ids": forms}


@pytest.fixture
def batch(tokenizer) -> dict[str, torch.Tensor]:
    assert tokenizer.pad_token_id == PAD
    return with_tail_pointer(dict(tokenizer(STORIES, return_tensors="pt")))


def triples_of(batch: dict[str, torch.Tensor]) -> list[list[list[int]]]:
    """The triples of each word, after a check that the other tensors belong to them."""
    expected = with_tail_pointer({name: batch[name] for name in ("triple_ids", "triple_mask")})
    assert torch.equal(batch["triple_weights"], expected["triple_weights"])
    assert torch.equal(batch["tail_form_ids"], expected["tail_form_ids"])
    words = zip(batch["triple_ids"].flatten(0, 2), batch["triple_mask"].flatten(0, 2), strict=True)
    return [ids[mask == 1].tolist() for ids, mask in words]


def test_a_removed_triple_takes_weight_and_forms_with_it(batch):
    removed = torch.zeros_like(batch["triple_mask"], dtype=torch.bool)
    removed[..., 0] = True
    changed = remove_triples(batch, removed, PAD)
    assert triples_of(changed) == [triples[1:] for triples in triples_of(batch)]
    assert any(len(triples) > 1 for triples in triples_of(batch))
    assert torch.equal(changed["input_ids"], batch["input_ids"])


def test_all_triples_removed(batch):
    changed = remove_triples(batch, torch.ones_like(batch["triple_mask"], dtype=torch.bool), PAD)
    assert not any(triples_of(changed)) and (changed["tail_form_ids"] == PAD).all()
    assert not changed["triple_weights"].any()


def test_triples_move_as_a_whole(batch):
    packed = {name: tensor.flip(0) for name, tensor in pack_triples(batch).items()}
    changed = unpack_triples(batch, packed, PAD)
    before, after = ([own for own in triples_of(one) if own] for one in (batch, changed))
    assert after == before[::-1] and after != before
    assert torch.equal(words_with_triples(changed), words_with_triples(batch))


def test_packed_triples_of_different_widths_are_concatenated(batch):
    whole = pack_triples(batch)
    wide, narrow = ({name: tensor[rows] for name, tensor in whole.items()} for rows in (slice(2), slice(2, None)))
    assert narrow["triple_mask"][:, -1].sum() == 0, "this test needs a word with fewer triples"
    narrow = {name: tensor[:, :-1] for name, tensor in narrow.items()}
    narrow["tail_form_ids"] = torch.nn.functional.pad(narrow["tail_form_ids"], (0, 1), value=PAD)
    joined = concatenate_packed([wide, narrow], PAD)
    assert (joined["tail_form_ids"][..., 2] == PAD).all()
    joined["tail_form_ids"] = joined["tail_form_ids"][..., :2]
    for name, tensor in whole.items():
        assert torch.equal(joined[name], tensor), name


def test_new_tails_bring_their_forms_but_no_word_of_the_story(batch, tokenizer):
    vocab_size = len(tokenizer)
    new_tails = (torch.arange(vocab_size) + 7) % vocab_size
    form_ids = torch.stack((torch.arange(vocab_size), torch.arange(vocab_size).flip(0)), dim=1)
    changed = replace_tails(batch, new_tails, form_ids, PAD)
    places = batch["triple_mask"].nonzero().tolist()
    assert places
    for story, *place in places:
        index = (story, *place)
        head, relation, tail = batch["triple_ids"][index].tolist()
        assert changed["triple_ids"][index].tolist() == [head, relation, (tail + 7) % vocab_size]
        story_words = set(batch["input_ids"][story].flatten().tolist())
        forms = form_ids[(tail + 7) % vocab_size].tolist()
        assert changed["tail_form_ids"][index].tolist() == [PAD if form in story_words else form for form in forms]
    assert torch.equal(changed["triple_weights"], batch["triple_weights"])

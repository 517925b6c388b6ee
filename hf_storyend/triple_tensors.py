"""Triples in the tensors of a batch: remove, replace and move them in all tensors that describe them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.nn import functional

# Tensors with a row for each triple of a word, [B, K, L, N, ...]; the last two belong to models with a tail pointer.
TRIPLE_TENSORS = ("triple_ids", "triple_mask", "triple_weights", "tail_form_ids")

Tensors = Mapping[str, torch.Tensor]


def remove_triples(tensors: Tensors, removed: torch.Tensor, pad_token_id: int) -> dict[str, torch.Tensor]:
    """Return the tensors without the triples where `removed` [B, K, L, N] is true; the others of a word close up."""
    mask = tensors["triple_mask"] * ~removed
    order = mask.argsort(dim=-1, descending=True, stable=True)
    changed = {
        name: tensor.gather(3, _broadcast(order, tensor)) for name, tensor in _triple_tensors(tensors, mask).items()
    }
    return {**tensors, **_clear_padding(changed, pad_token_id)}


def replace_tails(
    tensors: Tensors, new_tails: torch.Tensor, form_ids: torch.Tensor, pad_token_id: int
) -> dict[str, torch.Tensor]:
    """
    Return the tensors with other tails, and the forms of those.

    Args:
        tensors: Tensors of a batch.
        new_tails: [V], the new tail for each tail.
        form_ids: [V, F], the forms of each word; the padding id elsewhere. Words of the story are left out.
        pad_token_id: The padding id.
    """
    heads, relations, tails = tensors["triple_ids"].unbind(dim=-1)
    tails = new_tails[tails]
    changed = {**_triple_tensors(tensors), "triple_ids": torch.stack((heads, relations, tails), dim=-1)}
    if "tail_form_ids" in changed:
        forms = form_ids[tails]
        words = tensors["input_ids"].flatten(1)
        in_story = words.new_zeros(len(words), len(new_tails), dtype=torch.bool).scatter(1, words, True)
        is_copy = in_story.gather(1, forms.flatten(1)).view_as(forms)
        changed["tail_form_ids"] = forms.masked_fill(is_copy, pad_token_id)
    return {**tensors, **_clear_padding(changed, pad_token_id)}


def words_with_triples(tensors: Tensors) -> torch.Tensor:
    """Return [B, K, L], true at words that have triples."""
    return (tensors["triple_mask"] != 0).any(dim=-1)


def pack_triples(tensors: Tensors) -> dict[str, torch.Tensor]:
    """Return the triples of the W words that have any as [W, N, ...], in the order of stories, sentences and words."""
    has_triples = words_with_triples(tensors)
    return {name: tensor[has_triples] for name, tensor in _triple_tensors(tensors).items()}


def unpack_triples(tensors: Tensors, packed: Tensors, pad_token_id: int) -> dict[str, torch.Tensor]:
    """Return the tensors with other triples [W, N, ...] at the words that have any, in the order of `pack_triples`."""
    has_triples = words_with_triples(tensors)
    changed = {}
    for name, rows in packed.items():
        changed[name] = rows.new_zeros(*has_triples.shape, *rows.shape[1:])
        changed[name][has_triples] = rows
    return {**tensors, **_clear_padding(changed, pad_token_id)}


def concatenate_packed(chunks: Sequence[Tensors], pad_token_id: int) -> dict[str, torch.Tensor]:
    """Concatenate packed triples of different widths."""
    return {name: _concatenate([chunk[name] for chunk in chunks], _padding(name, pad_token_id)) for name in chunks[0]}


def _concatenate(rows: list[torch.Tensor], padding: int) -> torch.Tensor:
    """Concatenate [W, ...] of different sizes in the other dimensions."""
    sizes = torch.tensor([tensor.shape[1:] for tensor in rows]).amax(dim=0).tolist()
    padded = []
    for tensor in rows:
        missing = [size - own for size, own in zip(sizes, tensor.shape[1:], strict=True)]
        # `pad` counts dimensions from the last one.
        amounts = [amount for extra in reversed(missing) for amount in (0, extra)]
        padded.append(functional.pad(tensor, amounts, value=padding))
    return torch.cat(padded)


def _triple_tensors(tensors: Tensors, mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    found = {name: tensors[name] for name in TRIPLE_TENSORS if name in tensors}
    return found if mask is None else {**found, "triple_mask": mask}


def _clear_padding(tensors: Tensors, pad_token_id: int) -> dict[str, torch.Tensor]:
    """Fill what is behind the last triple of a word."""
    is_padding = tensors["triple_mask"] == 0
    return {
        name: tensor.masked_fill(_broadcast(is_padding, tensor), _padding(name, pad_token_id))
        for name, tensor in tensors.items()
    }


def _padding(name: str, pad_token_id: int) -> int:
    return pad_token_id if name == "tail_form_ids" else 0


def _broadcast(rows: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Expand [B, K, L, N] to the shape of a tensor [B, K, L, N, ...]."""
    return rows.view(*rows.shape, *[1] * (tensor.ndim - rows.ndim)).expand_as(tensor)

# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Evidence: where the words of an ending come from, in words.

`WordSources` splits the probability of each word exactly into vocabulary, places of the story and triples; here its
numbers become *shares* of that probability, with the words and triples they belong to. A triple is evidence for an
ending if a word of it came from that triple. Attention is something else: where the model looked.

The *effect* of a triple or a sentence is log p(ending | story) - log p(ending | story without it), in nats; its
exponential is the factor by which the ending is less likely. Both are None if the ending can't be written any more,
because a word that it copies is gone. Parts are removed by masks, many in one batch: a masked triple or sentence is as
good as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from .knowledge_table import Triple
from .tail_pointer import WordSources
from .text_processing import normalize_text, split_sentences, split_words, truecase_forms

# Smaller shares of a word's probability are no evidence.
MIN_SHARE = 0.01
# Rows that are computed at a time, and their words, padding included: long stories must not take all memory.
_MAX_ROWS, _MAX_WORDS = 64, 8192
# math.exp overflows at 710.
_MAX_EXPONENT = 700

Effect = dict[str, float | None]


def written_words(tokenizer: Any, story: str | Sequence[str]) -> list[list[str]]:
    """The words of each sentence of a story, split as the tokenizer does, in the case they are written in."""
    sentences = split_sentences(normalize_text(story)) if isinstance(story, str) else story
    return [_written_sentence(tokenizer, normalize_text(sentence)) for sentence in sentences]


def _written_sentence(tokenizer: Any, text: str) -> list[str]:
    as_read = split_words(text.lower() if tokenizer.do_lower_case else text, tokenizer.split_contractions)
    as_written = split_words(text, tokenizer.split_contractions)
    # Lower case can have more letters than upper case, and split elsewhere.
    return as_written if len(as_written) == len(as_read) else as_read


def ending_words(
    tokenizer: Any, words: Sequence[Sequence[str]], copy_ids: torch.Tensor, ids: Sequence[int]
) -> list[str]:
    """Truecased words of an ending: out-of-vocabulary ones are those of the story, known by its `copy_ids` [K, L]."""
    cased = {**tokenizer.word_forms, **truecase_forms(map(list, words))} if tokenizer.do_lower_case else {}
    copied: dict[int, str] = {}
    for number, sentence in enumerate(words):
        for word_id, word in zip(copy_ids[number].tolist(), sentence, strict=False):
            copied.setdefault(word_id, word)
    vocabulary = tokenizer.convert_ids_to_tokens([word_id for word_id in ids if word_id < len(tokenizer)])
    known = iter(vocabulary)
    names = (copied[word_id] if word_id >= len(tokenizer) else next(known) for word_id in ids)
    return [cased.get(name, name) for name in names]


def triple_names(
    tokenizer: Any, words: Sequence[Sequence[str]], triple_ids: torch.Tensor, triple_mask: torch.Tensor
) -> dict[tuple[int, int, int], Triple]:
    """
    The triples (head, relation, tail) of a story by their places (sentence, word, triple), counted from 0.

    Args:
        tokenizer: The model's tokenizer.
        words: The story's words, as written.
        triple_ids: [K, L, N, 3].
        triple_mask: [K, L, N].
    """
    is_real = triple_mask != 0
    places, rows = is_real.nonzero().tolist(), triple_ids[is_real].tolist()
    ids = sorted({word_id for head, _, tail in rows for word_id in (head, tail)})
    text = dict(zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True))
    names: dict[tuple[int, int, int], Triple] = {}
    for (sentence, position, number), (head, relation, tail) in zip(places, rows, strict=True):
        named = text[head], tokenizer.knowledge.relations[relation], text[tail]
        if head == tokenizer.unk_token_id:
            named = _with_head(tokenizer, words[sentence][position], named)
        names[sentence, position, number] = named
    return names


def _with_head(tokenizer: Any, word: str, triple: Triple) -> Triple:
    """A triple whose head is out of the vocabulary, with the head by which the table knows it for this word."""
    word = word.lower() if tokenizer.do_lower_case else word
    _, relation, tail = triple
    known = (head for head, *rest in tokenizer.knowledge.of(word) if rest == [relation, tail])
    return next(known, word), relation, tail


def word_shares(
    sources: WordSources,
    row: int,
    step: int,
    words: Sequence[Sequence[str]],
    names: Mapping[tuple[int, int, int], Triple],
) -> dict[str, Any]:
    """
    The sources of one word of an ending as shares of its probability, which sum to 1.

    Args:
        sources: Those of a batch of endings.
        row: Which ending.
        step: Which of its words.
        words: The story's words, as written.
        names: The story's triples, by their places.

    Returns:
        `vocabulary`, a share; `story`, places with `word`, `sentence` and `position` (from 1) and `share`; `triples`,
        each once, with `head`, `relation`, `tail`, the place of its word where its share is highest, and `share`. Both
        lists have the highest share first.
    """
    vocabulary = float(sources.vocabulary[row, step])
    places = _positive(sources.places[row, step])
    offers = _positive(sources.triples[row, step])
    total = vocabulary + sum(value for _, value in places) + sum(value for _, value in offers)
    if total == 0:
        # A word that can't be told from impossible in this precision comes from nowhere else.
        return from_vocabulary()
    story = [_place(words, *place) | {"share": value / total} for place, value in places]
    triples: dict[Triple, dict[str, Any]] = {}
    for (sentence, position, number), value in sorted(offers, key=lambda offer: -offer[1]):
        name = names[sentence, position, number]
        entry = triples.setdefault(name, _named(name) | _place(words, sentence, position) | {"share": 0.0})
        entry["share"] += value / total
    return {"vocabulary": vocabulary / total, "story": _by_share(story), "triples": _by_share(triples.values())}


def from_vocabulary() -> dict[str, Any]:
    """The sources of a word in a model that has no other source."""
    return {"vocabulary": 1.0, "story": [], "triples": []}


def cut_small_shares(sources: dict[str, Any], min_share: float = MIN_SHARE) -> dict[str, Any]:
    """Sources without the places and triples below a share, which `other` sums up."""
    kept = {name: [item for item in sources[name] if item["share"] >= min_share] for name in ("story", "triples")}
    cut = [item["share"] for name in kept for item in sources[name] if item["share"] < min_share]
    return {"vocabulary": sources["vocabulary"], **kept, "other": sum(cut)}


def collect_evidence(words: Iterable[Mapping[str, Any]], min_share: float = MIN_SHARE) -> list[dict[str, Any]]:
    """
    The triples that words of an ending came from, highest share first, each with the `ending_word` that it gave and
    its `share` of that word's probability, the highest if the word stands there twice.

    Args:
        words: The words of the ending: `word`, and `triples` as `word_shares` gives them.
        min_share: Lowest share.
    """
    found = [{**item, "ending_word": word["word"]} for word in words for item in word["triples"]]
    unique: dict[tuple[str, ...], dict[str, Any]] = {}
    for item in _by_share(item for item in found if item["share"] >= min_share):
        unique.setdefault(tuple(item[name] for name in ("head", "relation", "tail", "ending_word")), item)
    return list(unique.values())


def _positive(values: torch.Tensor) -> list[tuple[tuple[int, ...], float]]:
    """Places and values of what is above 0."""
    places = (values > 0).nonzero().tolist()
    return [(tuple(place), float(values[tuple(place)])) for place in places]


def _place(words: Sequence[Sequence[str]], sentence: int, position: int) -> dict[str, Any]:
    return {"word": words[sentence][position], "sentence": sentence + 1, "position": position + 1}


def _named(triple: Triple) -> dict[str, Any]:
    return dict(zip(("head", "relation", "tail"), triple, strict=True))


def _by_share(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: -item["share"])


@torch.no_grad()
def removal_effects(
    model: Any,
    story: Mapping[str, torch.Tensor],
    ending_ids: Sequence[int],
    triples: Sequence[torch.Tensor] = (),
    sentences: Sequence[int] = (),
) -> tuple[list[Effect], list[Effect]]:
    """
    Effects of triples and of sentences, each removed alone, as dicts of `effect` and `factor`.

    Args:
        model: A model in eval mode.
        story: Its inputs, for one story.
        ending_ids: Words of the ending and its end symbol, if it has one.
        triples: Masks [K, L, N], true at what is removed together.
        sentences: Numbers, from 0, of sentences; the story must have others.
    """
    rows: list[torch.Tensor | int | None] = [None, *triples, *sentences]
    if len(rows) == 1:
        return [], []
    as_given, *changed = _log_probabilities(model, story, ending_ids, rows)
    effects = [_effect(as_given - value) for value in changed]
    return effects[: len(triples)], effects[len(triples) :]


def _log_probabilities(
    model: Any,
    story: Mapping[str, torch.Tensor],
    ending_ids: Sequence[int],
    rows: Sequence[torch.Tensor | int | None],
) -> list[float]:
    """Log probability of the ending without what each row removes: triples, a sentence, or nothing."""
    labels = torch.tensor([list(ending_ids)], device=model.device)
    word_ids = model.prepare_decoder_input_ids_from_labels(labels)
    num_rows = max(1, min(_MAX_ROWS, _MAX_WORDS // story["input_ids"].numel()))
    found: list[float] = []
    for start in range(0, len(rows), num_rows):
        chunk = [_without(story, removed) for removed in rows[start : start + num_rows]]
        batch = {name: torch.stack([row[name] for row in chunk]) for name in story}
        logits = model(**batch, decoder_input_ids=word_ids.expand(len(chunk), -1), use_cache=False).logits
        index = model.output_columns(labels).unsqueeze(2).expand(len(chunk), -1, -1)
        found += logits.double().log_softmax(dim=-1).gather(2, index).sum(dim=(1, 2)).tolist()
    return found


def _without(story: Mapping[str, torch.Tensor], removed: torch.Tensor | int | None) -> dict[str, torch.Tensor]:
    """The story's tensors, without the batch, with masks that hide what is removed."""
    row = {name: tensor[0] for name, tensor in story.items()}
    if isinstance(removed, int):
        row["attention_mask"] = row["attention_mask"].clone()
        row["attention_mask"][removed] = 0
    elif removed is not None:
        row["triple_mask"] = row["triple_mask"] * ~removed.to(row["triple_mask"].device)
    return row


def _effect(nats: float) -> Effect:
    if not math.isfinite(nats):
        return {"effect": None, "factor": None}
    return {"effect": nats, "factor": math.exp(nats) if nats < _MAX_EXPONENT else None}

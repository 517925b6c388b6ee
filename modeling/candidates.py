# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Several endings a story, and the choice among them by the ending ranker.

Candidates are all endings of a beam search and, beside them, samples. Samples are drawn by the Gumbel-max trick with
noise that depends on the seed, the sample and the step alone, so that a story has the same candidates in every batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional
from transformers import LogitsProcessor, LogitsProcessorList

from .ending_ranker import ending_log_probabilities
from .loading import check_memory
from .losses import IGNORED

# Samples are likely enough to be grammatical, and varied enough to be different.
TEMPERATURE, TOP_K = 0.75, 40


class GumbelNoise(LogitsProcessor):
    """
    Turns greedy search into sampling: the highest of log p / temperature + Gumbel noise is a sample of p.

    Args:
        num_samples: Rows of each story, which follow each other.
        seed: Two processors of one seed draw the same noise.
        temperature: Below 1, likelier words are drawn more often.
        top_k: Only so many of the likeliest words are drawn.
    """

    def __init__(self, num_samples: int, seed: int, temperature: float = TEMPERATURE, top_k: int = TOP_K):
        self._generator = torch.Generator().manual_seed(seed)
        self._num_samples, self._temperature, self._top_k = num_samples, temperature, top_k

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        noise = torch.empty(self._num_samples, scores.shape[1]).exponential_(generator=self._generator)
        gumbel = -noise.clamp(min=torch.finfo(noise.dtype).tiny).log()
        lowest = scores.topk(min(self._top_k, scores.shape[1])).values[:, -1:]
        noisy = scores / self._temperature + gumbel.repeat(len(scores) // self._num_samples, 1).to(scores)
        return noisy.masked_fill(scores < lowest, -torch.inf)


@torch.no_grad()
def generate_endings(
    model: Any, inputs: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """
    Endings `[B * endings a story, T + 1]` as `generate()` gives them and, if they were chosen, their scores.

    Args:
        model: A model in eval mode.
        inputs: The stories, as the tokenizer gives them.
        arguments: Those of `generate()`; with `num_candidates` (and `seed`), `choose_endings` chooses among
            so many, unless `rerank` is false.
    """
    rest = dict(arguments)
    num_candidates, rerank, seed = (rest.pop(name, None) for name in ("num_candidates", "rerank", "seed"))
    if rerank is False or num_candidates is None:
        # Whatever it is asked to return besides, only the sequences are looked at.
        return model.generate(**inputs, **{**rest, "return_dict_in_generate": True}).sequences, None
    num_best = rest.pop("num_return_sequences", None) or 1
    return choose_endings(model, inputs, num_candidates, num_best=num_best, seed=seed or 0, **rest)


@torch.no_grad()
def choose_endings(
    model: Any,
    inputs: Mapping[str, torch.Tensor],
    num_candidates: int,
    *,
    num_best: int = 1,
    seed: int = 0,
    **generate_kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Write candidates for each story and return the best ones, `[B * num_best, T + 1]` as `generate()` does, and their
    scores `[B * num_best]`.

    Args:
        model: A model in eval mode.
        inputs: The stories, as the tokenizer gives them.
        num_candidates: Endings written for each story; those beyond the number of beams are samples.
        num_best: Endings returned for each story, the best first.
        seed: Of the samples.
        generate_kwargs: Arguments of `generate()` for the beam search, which all candidates share.
    """
    if model.ranker is None:
        raise ValueError("`num_candidates` needs a model with an ending ranker; this one has `ranker_size` None.")
    if isinstance(num_candidates, bool) or not isinstance(num_candidates, int) or num_candidates < 1:
        raise ValueError(f"`num_candidates` must be a whole number of at least 1; got {num_candidates!r}.")
    if num_best > num_candidates:
        raise ValueError(f"`num_return_sequences` ({num_best}) must be at most `num_candidates` ({num_candidates}).")
    labels = write_candidates(model, inputs, num_candidates, seed=seed, **generate_kwargs)
    scores = model.rank_endings(labels, **inputs).scores.float().masked_fill(_is_repeated(labels), -torch.inf)
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :num_best]
    best = labels.gather(1, order.unsqueeze(2).expand(-1, -1, labels.shape[2])).flatten(0, 1)
    start = best.new_full((len(best), 1), model.config.decoder_start_token_id)
    sequences = torch.cat((start, best.masked_fill(best == IGNORED, model.config.pad_token_id)), dim=1)
    return sequences, scores.gather(1, order).flatten()


@torch.no_grad()
def write_candidates(
    model: Any, inputs: Mapping[str, torch.Tensor], num_candidates: int, *, seed: int = 0, **generate_kwargs: Any
) -> torch.Tensor:
    """
    Endings with their end symbols, -100 behind them: `[B, num_candidates, T]`, all beams first, then samples.

    Args:
        model: A model in eval mode.
        inputs: The stories, as the tokenizer gives them.
        num_candidates: Endings of each story, some of which may be the same.
        seed: Of the samples.
        generate_kwargs: Arguments of `generate()` for the beam search; those but its own hold for samples, too.
    """
    num_beams = min(generate_kwargs.pop("num_beams", None) or 1, num_candidates)
    if num_beams == 1:
        generate_kwargs.pop("length_penalty", None)
    found = [_generate(model, inputs, num_beams=num_beams, num_return_sequences=num_beams, **generate_kwargs)]
    if num_samples := num_candidates - num_beams:
        found.append(_sample(model, inputs, num_samples, seed, generate_kwargs))
    num_stories = len(inputs["input_ids"])
    return _as_labels([rows.view(num_stories, -1, rows.shape[1]) for rows in found], model.config.eos_token_id)


def _generate(model: Any, inputs: Mapping[str, torch.Tensor], **kwargs: Any) -> torch.Tensor:
    return model.generate(**inputs, **{**kwargs, "do_sample": False, "return_dict_in_generate": True}).sequences


def _sample(
    model: Any, inputs: Mapping[str, torch.Tensor], num_samples: int, seed: int, arguments: dict[str, Any]
) -> torch.Tensor:
    # A story is encoded once for all of its samples.
    encoded = model.encoder(**inputs)
    if model.device.type == "cpu":
        # What the encoder says of the story, and what generation makes of the next word.
        size = sum(tensor.nbytes for _, tensor in encoded.items())
        size += 10 * 4 * len(inputs["input_ids"]) * model.config.num_output_words
        check_memory(num_samples * size, f"`num_candidates` {num_samples:,} beside those of the beam search")
    rows = {name: tensor.repeat_interleave(num_samples, dim=0) for name, tensor in encoded.items()}
    names = {name: inputs[name].repeat_interleave(num_samples, dim=0) for name in ("copy_ids",) if name in inputs}
    processors = LogitsProcessorList([*(arguments.get("logits_processor") or ()), GumbelNoise(num_samples, seed)])
    arguments = {key: value for key, value in arguments.items() if key not in ("logits_processor", "length_penalty")}
    return _generate(
        model, names, encoder_outputs=type(encoded)(**rows), logits_processor=processors, num_beams=1, **arguments
    )


def _as_labels(found: Sequence[torch.Tensor], end_id: int) -> torch.Tensor:
    """Endings [B, C, T] up to their end symbols, from sequences [B, C', T' + 1] with start symbols."""
    longest = max(rows.shape[2] for rows in found) - 1
    padded = [functional.pad(rows[:, :, 1:], (0, longest + 1 - rows.shape[2]), value=end_id) for rows in found]
    labels = torch.cat(padded, dim=1)
    is_end = (labels == end_id).long()
    return labels.masked_fill(is_end.cumsum(dim=2) - is_end > 0, IGNORED)


def _is_repeated(labels: torch.Tensor) -> torch.Tensor:
    """[B, C], true at endings that stand before among those of their story."""
    is_same = (labels.unsqueeze(1) == labels.unsqueeze(2)).all(dim=3)
    return is_same.tril(diagonal=-1).any(dim=2)


@torch.no_grad()
def rank_endings(model: Any, tokenizer: Any, story: Any, endings: Sequence[str]) -> list[dict[str, Any]]:
    """
    The endings of a story, the best first: `ending`, `score`, comparable within the story, and `log_probability`. The
    score is that of the ending ranker; of a model without one, the log probability itself.

    Args:
        model: A model in eval mode.
        tokenizer: Its tokenizer.
        story: One string, or a list of sentences.
        endings: At least one.
    """
    if isinstance(endings, str) or not endings:
        raise ValueError("`endings` must be a list of at least one ending.")
    inputs = tokenizer([story], return_tensors="pt").to(model.device)
    stories = [story] * len(endings)
    labels = tokenizer(stories, text_target=list(endings), return_triples=False, return_tensors="pt")["labels"]
    labels = labels.unsqueeze(0).to(model.device)
    if model.ranker is None:
        log_probabilities = ending_log_probabilities(model, labels, **inputs)
        scores = log_probabilities
    else:
        ranked = model.rank_endings(labels, **inputs)
        scores, log_probabilities = ranked.scores, ranked.log_probabilities
    rows = zip(endings, scores[0].tolist(), log_probabilities[0].tolist(), strict=True)
    results = [{"ending": text, "score": score, "log_probability": log_p} for text, score, log_p in rows]
    return sorted(results, key=lambda result: -result["score"])

# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipeline: stories in, endings out, each with its score and the triples it attended to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import Pipeline

TASK = "story-ending"


class StoryEndingPipeline(Pipeline):
    """
    Writes endings.

    ```python
    >>> write = pipeline(model="owner/name", trust_remote_code=True)
    >>> write("Ann put a cake in the oven. She fell asleep.", num_beams=4)
    [{'ending': ..., 'score': ..., 'evidence': [{'head': 'oven', 'relation': 'UsedFor', 'tail': 'cake', ...}]}]
    ```

    A story is a string or a tuple of sentences, or a dict with the `story`, a string or a list of sentences, and maybe
    `triples` that are known in this story only. A list is several stories, and gives a list of results; in it, a story
    may be a list of sentences, too. `batch_size=` so many are read at a time.

    A result is a list, with an ending for each of `num_return_sequences`:

    - `ending`: the sentence.
    - `score`: mean log probability of its words and its end under the model, 0 at most.
    - `evidence`: the triples that its words read most, as `head`, `relation`, `tail`, the story's `word` that they
      belong to and the `weight`: the share of the attention to knowledge, which is 1 in all for every word of the
      ending, averaged over those words. Empty for a model without knowledge.

    Args:
        triples (`list`, *optional*): Knowledge for all stories of the call.
        evidence_top_k (`int`, *optional*, defaults to 5): Most triples an ending.
        kwargs: Whatever `generate()` takes.
    """

    _load_tokenizer = True
    _load_processor = _load_image_processor = _load_feature_extractor = _load_video_processor = False

    def __call__(self, stories: Any, **kwargs: Any) -> Any:
        if isinstance(stories, list) and not stories:
            raise ValueError("`stories` is an empty list.")
        return super().__call__(stories, **kwargs)

    def _sanitize_parameters(
        self, triples: Sequence[Any] | None = None, evidence_top_k: int | None = None, **generate_kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if evidence_top_k is not None and (not isinstance(evidence_top_k, int) or evidence_top_k < 0):
            raise ValueError(f"`evidence_top_k` must be a whole number of at least 0; got {evidence_top_k!r}.")
        forward = dict(generate_kwargs) | ({} if evidence_top_k is None else {"evidence_top_k": evidence_top_k})
        return ({} if triples is None else {"triples": triples}), forward, {}

    def preprocess(self, inputs: Any, triples: Sequence[Any] = ()) -> dict[str, Any]:
        """The story, a string or a tuple, such that it can't be taken for several; and the triples known in it."""
        story, own = inputs, ()
        if isinstance(inputs, Mapping):
            unknown = sorted(map(str, inputs.keys() - {"story", "triples"}))
            if unknown or "story" not in inputs:
                raise ValueError(f"A story as a dict has `story` and maybe `triples`; got {sorted(map(str, inputs))}.")
            story, own = inputs["story"], inputs.get("triples") or ()
        if not isinstance(story, (str, list, tuple)):
            raise ValueError(f"A story must be a string or a list of sentences; got {type(story).__name__}.")
        return {"story": story if isinstance(story, str) else tuple(story), "triples": (*triples, *own)}

    @torch.no_grad()
    def _forward(
        self, input_tensors: dict[str, Any], evidence_top_k: int = 5, **generate_kwargs: Any
    ) -> dict[str, Any]:
        stories, triples = input_tensors["story"], input_tensors["triples"]
        if not isinstance(stories, list):
            stories, triples = [stories], [triples]
        as_lists = [story if isinstance(story, str) else list(story) for story in stories]
        inputs = self.tokenizer(as_lists, triples=[list(own) for own in triples], return_tensors="pt").to(self.device)
        # Whatever it is asked to return besides, only the sequences are looked at.
        generated = self.model.generate(**inputs, **{**generate_kwargs, "return_dict_in_generate": True}).sequences
        num_each = len(generated) // len(stories)
        inputs = {name: tensor.repeat_interleave(num_each, dim=0) for name, tensor in inputs.items()}
        contexts = [story for story in as_lists for _ in range(num_each)]
        endings = self._describe(inputs, generated, contexts, evidence_top_k)
        return {"endings": [endings[row : row + num_each] for row in range(0, len(endings), num_each)]}

    def postprocess(self, model_outputs: dict[str, Any]) -> list[dict[str, Any]]:
        endings = model_outputs["endings"]
        # A batch of one is not unpacked by the caller.
        return endings[0] if isinstance(endings[0], list) else endings

    def _describe(
        self, inputs: dict[str, torch.Tensor], generated: torch.Tensor, contexts: list[Any], evidence_top_k: int
    ) -> list[dict[str, Any]]:
        """Read the endings once more, all at once: that gives attention and scores however they were searched for."""
        targets = generated[:, 1:]
        is_word = _until_end(targets, self.model.config.eos_token_id)
        output = self.model(**inputs, decoder_input_ids=generated[:, :-1], output_attentions=True)
        log_probabilities = output.logits.float().log_softmax(dim=-1).gather(2, targets.unsqueeze(2)).squeeze(2)
        # Never an empty ending: it has its end symbol at least.
        scores = (log_probabilities * is_word).sum(dim=1) / is_word.sum(dim=1)
        texts = self.tokenizer.batch_decode(generated, skip_special_tokens=True, context=contexts)
        evidence = self._evidence(inputs, output, is_word, evidence_top_k)
        return [
            {"ending": text, "score": score, "evidence": triples}
            for text, score, triples in zip(texts, scores.tolist(), evidence, strict=True)
        ]

    def _evidence(
        self, inputs: dict[str, torch.Tensor], output: Any, is_word: torch.Tensor, evidence_top_k: int
    ) -> list[list[dict[str, Any]]]:
        if output.knowledge_attentions is None:
            return [[] for _ in is_word]
        # What a word of the ending gave to a graph, on average, times what that graph has of each triple.
        graphs = (output.knowledge_attentions * is_word.unsqueeze(2)).sum(dim=1) / is_word.sum(dim=1, keepdim=True)
        inside = output.triple_attentions  # [B, K, L, N]
        weights = _at_words(graphs, inputs["attention_mask"]).unsqueeze(3) * inside * inputs["triple_mask"]
        return [
            self._most_attended(row, inputs["input_ids"][index], inputs["triple_ids"][index], evidence_top_k)
            for index, row in enumerate(weights)
        ]

    def _most_attended(
        self, weights: torch.Tensor, word_ids: torch.Tensor, triple_ids: torch.Tensor, evidence_top_k: int
    ) -> list[dict[str, Any]]:
        """The heaviest triples of a story; one that several words of the story have counts once, with their sum."""
        found: dict[tuple[int, ...], tuple[float, int]] = {}
        for place in weights.nonzero().tolist():
            ids = tuple(triple_ids[tuple(place)].tolist())
            weight, word_id = weights[tuple(place)].item(), word_ids[tuple(place[:2])].item()
            total, first_word = found.get(ids, (0.0, word_id))
            found[ids] = total + weight, first_word
        heaviest = sorted(found.items(), key=lambda item: -item[1][0])[:evidence_top_k]
        return [self._named(ids, word_id, weight) for ids, (weight, word_id) in heaviest]

    def _named(self, ids: tuple[int, ...], word_id: int, weight: float) -> dict[str, Any]:
        head, tail, word = self.tokenizer.convert_ids_to_tokens([ids[0], ids[2], word_id])
        relation = self.tokenizer.knowledge.relations[ids[1]]
        return {"head": head, "relation": relation, "tail": tail, "word": word, "weight": weight}


def _until_end(targets: torch.Tensor, end_id: int) -> torch.Tensor:
    """[rows, T]: true up to the first end symbol, that included."""
    is_end = (targets == end_id).long()
    return is_end.cumsum(dim=1) - is_end == 0


def _at_words(graphs: torch.Tensor, word_mask: torch.Tensor) -> torch.Tensor:
    """
    Attention to graphs as [B, K, L]. Hierarchical readers give it for all words of a story, [B, K * L]; incremental
    ones for those of its last sentence, [B, L].
    """
    if graphs.shape[1] == word_mask.shape[1:].numel():
        return graphs.view(word_mask.shape)
    number = torch.arange(word_mask.shape[1], device=word_mask.device)
    last = (word_mask.any(dim=2) * number).argmax(dim=1)
    is_last = number == last.unsqueeze(1)
    return is_last.unsqueeze(2) * graphs.unsqueeze(1)


CUSTOM_PIPELINES = {
    TASK: {
        "impl": f"{__name__.rsplit('.', 1)[-1]}.{StoryEndingPipeline.__name__}",
        "pt": ["AutoModelForSeq2SeqLM"],
        "type": "text",
    }
}

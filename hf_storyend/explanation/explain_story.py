"""
Explain an ending: the probability, the sources and the attentions of each of its words, effects, and clues.

[`explain`] generates the ending of a story and explains it. The numbers are measured in `inference.py`; here they
become an [`Explanation`], with words in the place of ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.evidence import collect_evidence, ending_words, word_shares
from ..modeling.knowledge_table import Triple
from ..story_text import notes_on_story
from .clues import ClueFinder
from .effects import measure_effects
from .inference import TeacherForcedOutput, generate_ending, teacher_forced_pass
from .result import (
    AttentionKind,
    AttentionMatrix,
    EndingWord,
    Evidence,
    Explanation,
    GraphTriple,
    Sources,
    WeightedTriple,
    WeightedWord,
)
from .story import TokenizedStory, find_triples, name_triples, reads_triples, tokenize_story

# Triples whose effects are measured: those with the highest shares, and those with the highest attention.
_MAX_EVIDENCE, _MAX_ATTENDED = 5, 3


def explain(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    *,
    triples: Sequence[Triple] | None = None,
    **generate_arguments: Any,
) -> Explanation:
    """
    Generate the ending of a story and explain each of its words.

    Args:
        model: A model of any system.
        tokenizer: Its tokenizer.
        story: One string, or the sentences of one story.
        triples: Knowledge for this story only, `[("oven", "UsedFor", "burn")]`; heads must be words of the story.
        generate_arguments: Arguments of `generate()`, like `num_beams=4`; `decoding`, a preset; `seed`, for sampling.
    """
    tokenized = tokenize_story(model, tokenizer, story, triples)
    if triples:
        find_triples(tokenizer, tokenized, "triples", triples)
    return explain_ending(model, tokenizer, tokenized, generate_ending(model, tokenized, **generate_arguments))


def explain_ending(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: TokenizedStory,
    ending_ids: Sequence[int],
) -> Explanation:
    """Explain a given ending, whose ids end with the end symbol unless it was cut off."""
    output = teacher_forced_pass(model, story, ending_ids)
    words = ending_words(tokenizer, story.words, story.copy_ids, ending_ids)
    names = name_triples(tokenizer, story) if reads_triples(model) else {}
    graphs = _graphs(names, story, output.triple_attention) if reads_triples(model) else None
    described = [_ending_word(output, story, names, graphs, step, word) for step, word in enumerate(words)]
    evidence = _evidence(described)
    attentions = list(_matrices(output, [*map(len, story.words), len(words)], _is_incremental(model)))
    # The end symbol has no clues.
    clue_words = [
        "" if word_id == tokenizer.eos_token_id else word for word_id, word in zip(ending_ids, words, strict=True)
    ]
    clues = ClueFinder([*story.words, clue_words], attentions, graphs, _is_incremental(model))
    oov_places = (story.tensors["input_ids"][0] == tokenizer.unk_token_id).nonzero().tolist()
    return Explanation(
        story=story.sentences,
        sentences=story.words,
        oov_positions=[(sentence + 1, place + 1) for sentence, place in oov_places],
        ending=str(tokenizer.decode(list(ending_ids), skip_special_tokens=True, context=story.sentences)),
        words=described,
        log_probability=float(output.log_probabilities.sum()),
        evidence=evidence,
        effects=measure_effects(model, tokenizer, story, ending_ids, _triples_to_remove(evidence, described)),
        graphs=graphs,
        attentions=attentions,
        clues=clues.clues(),
        links=clues.links(),
        system={name: getattr(model.config, name) for name in ("story_encoder", "knowledge", "copy", "tail_pointer")},
        notes=[*notes_on_story(tokenizer, story.sentences).lines(), *_notes(model, ending_ids)],
    )


def _is_incremental(model: IncrementalEncoderForEndingGeneration) -> bool:
    return model.config.story_encoder == "incremental"


def _evidence(words: Sequence[EndingWord]) -> list[Evidence]:
    """Return the triples that words came from, highest share first."""
    found = collect_evidence({"word": word.word, **asdict(word.sources)} for word in words)
    return [Evidence(**item) for item in found]


def _triples_to_remove(evidence: Sequence[Evidence], words: Sequence[EndingWord]) -> list[Triple]:
    """Return the triples whose effects are of interest, each once."""
    attention: dict[Triple, float] = {}
    for read in (read for word in words for read in word.triple_attention or ()):
        triple = read.head, read.relation, read.tail
        attention[triple] = attention.get(triple, 0.0) + read.weight
    attended = sorted(attention, key=lambda triple: -attention[triple])[:_MAX_ATTENDED]
    return list(dict.fromkeys([*(item.triple for item in evidence[:_MAX_EVIDENCE]), *attended]))


def _graphs(
    names: Mapping[tuple[int, int, int], Triple], story: TokenizedStory, weights: torch.Tensor | None
) -> list[list[list[GraphTriple]]]:
    """Return the triples of each word of the story by weight [K, L, N], highest first; without weights as they are."""
    graphs: list[list[list[GraphTriple]]] = [[[] for _ in words] for words in story.words]
    for (sentence, position, number), triple in names.items():
        weight = None if weights is None else float(weights[sentence, position, number])
        head, relation, tail = triple
        graphs[sentence][position].append(GraphTriple(head, relation, tail, weight))
    return [[sorted(graph, key=lambda triple: -(triple.weight or 0)) for graph in sentence] for sentence in graphs]


def _matrices(output: TeacherForcedOutput, lengths: list[int], is_incremental: bool) -> Iterator[AttentionMatrix]:
    """Yield the attention matrices without padding; `lengths` are those of the sentences and, last, of the ending."""
    ending = len(lengths)
    sources: list[tuple[AttentionKind, torch.Tensor | None, torch.Tensor | None]] = [
        ("state", output.encoder_state_attention, output.state_attention),
        ("knowledge", output.encoder_knowledge_attention, output.knowledge_attention),
    ]
    for key in range(1, ending):
        query = key + 1 if is_incremental else ending
        for kind, of_encoder, of_ending in sources:
            if of_encoder is None or of_ending is None:
                continue
            weights = of_ending[:, key - 1] if query == ending else of_encoder[query - 1]
            weights = weights[: lengths[query - 1], : lengths[key - 1]]
            yield AttentionMatrix(kind, query, key, weights.tolist())


def _ending_word(
    output: TeacherForcedOutput,
    story: TokenizedStory,
    names: Mapping[tuple[int, int, int], Triple],
    graphs: list[list[list[GraphTriple]]] | None,
    step: int,
    word: str,
) -> EndingWord:
    log_probability = output.log_probabilities[step]
    knowledge: dict[str, Any] = {}
    if graphs is not None and output.knowledge_attention is not None:
        knowledge = _knowledge_of(_weighted_words(story, output.knowledge_attention[step]), graphs)
    return EndingWord(
        word=word,
        probability=float(log_probability.exp()),
        log_probability=float(log_probability),
        sources=Sources.from_dict(word_shares(output.sources, 0, step, story.words, names)),
        state_attention=_weighted_words(story, output.state_attention[step]),
        **knowledge,
    )


def _weighted_words(story: TokenizedStory, weights: torch.Tensor) -> list[WeightedWord]:
    """Return the words with a weight above 0 in [K, L], highest first."""
    words = [
        WeightedWord(number, position, word, float(weights[number - 1, position - 1]))
        for number, sentence in enumerate(story.words, start=1)
        for position, word in enumerate(sentence, start=1)
    ]
    return sorted((word for word in words if word.weight > 0), key=lambda word: -word.weight)


def _knowledge_of(words: list[WeightedWord], graphs: list[list[list[GraphTriple]]]) -> dict[str, Any]:
    """Return the fields of an [`EndingWord`] that follow from its knowledge attention to `words`."""
    filled = [word for word in words if graphs[word.sentence - 1][word.position - 1]]
    triples = [
        _weighted_triple(word, triple) for word in filled for triple in graphs[word.sentence - 1][word.position - 1]
    ]
    empty = sum(word.weight for word in words) - sum(word.weight for word in filled)
    return {
        "knowledge_attention": filled,
        "empty_graph_attention": max(0.0, empty),
        "triple_attention": sorted(triples, key=lambda triple: -triple.weight),
    }


def _weighted_triple(word: WeightedWord, triple: GraphTriple) -> WeightedTriple:
    return WeightedTriple(
        sentence=word.sentence,
        position=word.position,
        word=word.word,
        head=triple.head,
        relation=triple.relation,
        tail=triple.tail,
        weight=word.weight * (triple.weight or 0.0),
    )


def _notes(model: IncrementalEncoderForEndingGeneration, ending_ids: Sequence[int]) -> list[str]:
    notes = []
    if not _is_incremental(model):
        notes.append(
            "This system encodes sentences without attention to one another: there is no chain of clues between "
            "them. Its ending attends to all sentences at once, and weights are shares of the whole story."
        )
    if model.config.story_encoder == "hierarchical":
        notes.append("A weight is that of the sentence times that of the word in it.")
    notes += _notes_on_sources(model)
    if ending_ids[-1] != model.config.eos_token_id:
        notes.append("The ending was cut off at the maximum length, before its end symbol.")
    return notes


def _notes_on_sources(model: IncrementalEncoderForEndingGeneration) -> list[str]:
    notes = []
    if not reads_triples(model):
        notes.append("This system reads no knowledge: there are no graphs and no triples.")
    elif model.config.knowledge is None:
        notes.append("This system reads triples by its tail pointer alone: there is no attention to them.")
    elif not model.config.tail_pointer:
        notes.append(
            "This system attends to triples, but no word comes from one: attention says where it looked, effects say "
            "what a triple changed."
        )
    if not model.config.copy and not model.config.tail_pointer:
        notes.append("All words come from the vocabulary: this system has no other source.")
    return notes

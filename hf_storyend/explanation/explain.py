"""Why this ending: what each of its words read of the story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple
from .clues import ClueFinder
from .observation import Observation, observe, write_ending
from .result import AttentionMatrix, EndingWord, Explanation, GraphTriple, Kind, ReadTriple, ReadWord
from .story_tensors import StoryTensors, ending_words, read_story
from .triple_search import find_triples


def explain(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    *,
    triples: Sequence[Triple] | None = None,
    **generate_arguments: Any,
) -> Explanation:
    """
    Write the ending of a story and say what each of its words was made of.

    Args:
        model: A model of any system.
        tokenizer: Its tokenizer.
        story: One string, or the sentences of one story.
        triples: Knowledge for this story only, `[("oven", "UsedFor", "burn")]`; words of the story must read it.
        generate_arguments: For `generate()`: `num_beams=4`.
    """
    read = read_story(model, tokenizer, story, triples)
    if triples:
        find_triples(tokenizer, read, "triples", triples)
    return explain_ending(model, tokenizer, read, write_ending(model, read, generate_arguments))


def explain_ending(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: StoryTensors,
    ending_ids: Sequence[int],
) -> Explanation:
    """What the words of a given ending, the end symbol last, were made of."""
    observed = observe(model, story, ending_ids)
    words = ending_words(tokenizer, story, ending_ids)
    is_chain = model.config.story_encoder == "incremental"
    graphs = None if observed.triple_weights is None else _graphs(tokenizer, story, observed.triple_weights)
    attentions = list(_matrices(observed, [*map(len, story.words), len(words)], is_chain))
    has_triples = None if graphs is None else [[bool(graph) for graph in sentence] for sentence in graphs]
    # The end symbol is no word that could be followed back.
    shown = [
        "" if word_id == tokenizer.eos_token_id else word for word_id, word in zip(ending_ids, words, strict=True)
    ]
    finder = ClueFinder([*story.words, shown], attentions, has_triples, is_chain)
    unknown = (story.tensors["input_ids"][0] == tokenizer.unk_token_id).nonzero().tolist()
    return Explanation(
        story=story.sentences,
        sentences=story.words,
        unknown=[(sentence + 1, place + 1) for sentence, place in unknown],
        ending=str(tokenizer.decode(list(ending_ids), skip_special_tokens=True, context=story.sentences)),
        words=[_ending_word(observed, story, graphs, step, word) for step, word in enumerate(words)],
        log_probability=float(observed.log_probabilities.sum()),
        graphs=graphs,
        attentions=attentions,
        clues=finder.clues(),
        links=finder.links(),
        system={name: getattr(model.config, name) for name in ("story_encoder", "knowledge", "copy")},
        notes=_notes(model, ending_ids, [story.words[sentence][place] for sentence, place in unknown]),
    )


def _graphs(
    tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, weights: torch.Tensor
) -> list[list[list[GraphTriple]]]:
    """For each word of the story, the triples of its graph, the heaviest first."""
    ids, mask = (story.tensors[name][0].cpu() for name in ("triple_ids", "triple_mask"))
    return [
        [
            _graph(tokenizer, ids[number, place], mask[number, place], weights[number, place])
            for place in range(len(words))
        ]
        for number, words in enumerate(story.words)
    ]


def _graph(
    tokenizer: IncrementalEncoderTokenizer, ids: torch.Tensor, mask: torch.Tensor, weights: torch.Tensor
) -> list[GraphTriple]:
    triples = []
    for (head, relation, tail), is_real, weight in zip(ids.tolist(), mask.tolist(), weights.tolist(), strict=True):
        if is_real:
            words = tokenizer.convert_ids_to_tokens([head, tail])
            triples.append(GraphTriple(words[0], tokenizer.knowledge.relations[relation], words[1], weight))
    return sorted(triples, key=lambda triple: -triple.weight)


def _matrices(observed: Observation, lengths: list[int], is_chain: bool) -> Iterator[AttentionMatrix]:
    """The matrices of all sentences that read another one, without padding; `lengths` has the ending's last."""
    ending = len(lengths)
    sources: list[tuple[Kind, torch.Tensor | None, torch.Tensor | None]] = [
        ("state", observed.encoder_state, observed.ending_state),
        ("knowledge", observed.encoder_knowledge, observed.ending_knowledge),
    ]
    pairs = [(number + 1, number) for number in range(1, ending)]
    for reader, source in pairs if is_chain else [(ending, number) for number in range(1, ending)]:
        for kind, of_encoder, of_ending in sources:
            if of_encoder is None or of_ending is None:
                continue
            weights = of_ending[:, source - 1] if reader == ending else of_encoder[reader - 1]
            weights = weights[: lengths[reader - 1], : lengths[source - 1]]
            yield AttentionMatrix(kind, reader, source, weights.tolist())


def _ending_word(
    observed: Observation,
    story: StoryTensors,
    graphs: list[list[list[GraphTriple]]] | None,
    step: int,
    word: str,
) -> EndingWord:
    log_probability = observed.log_probabilities[step]
    knowledge: dict[str, Any] = {}
    if graphs is not None and observed.ending_knowledge is not None:
        knowledge = _read_knowledge(_reads(story, observed.ending_knowledge[step]), graphs)
    return EndingWord(
        word=word,
        probability=float(log_probability.exp()),
        log_probability=float(log_probability),
        words=_reads(story, observed.ending_state[step]),
        copied=None if observed.copied is None else _reads(story, observed.copied[step]),
        **knowledge,
    )


def _read_knowledge(reads: list[ReadWord], graphs: list[list[list[GraphTriple]]]) -> dict[str, Any]:
    """Graphs and triples from the knowledge attention to words."""
    filled = [read for read in reads if graphs[read.sentence - 1][read.position - 1]]
    triples = [
        _read_triple(read, triple) for read in filled for triple in graphs[read.sentence - 1][read.position - 1]
    ]
    empty = sum(read.weight for read in reads) - sum(read.weight for read in filled)
    return {
        "graphs": filled,
        "empty_graphs": max(0.0, empty),
        "triples": sorted(triples, key=lambda triple: -triple.weight),
    }


def _read_triple(read: ReadWord, triple: GraphTriple) -> ReadTriple:
    return ReadTriple(
        sentence=read.sentence,
        position=read.position,
        word=read.word,
        head=triple.head,
        relation=triple.relation,
        tail=triple.tail,
        weight=read.weight * triple.weight,
    )


def _reads(story: StoryTensors, weights: torch.Tensor) -> list[ReadWord]:
    """The words with a weight in [K, L], the heaviest first."""
    reads = [
        ReadWord(number, position, word, float(weights[number - 1, position - 1]))
        for number, words in enumerate(story.words, start=1)
        for position, word in enumerate(words, start=1)
    ]
    return sorted((read for read in reads if read.weight > 0), key=lambda read: -read.weight)


def _notes(
    model: IncrementalEncoderForEndingGeneration, ending_ids: Sequence[int], unknown: Sequence[str]
) -> list[str]:
    notes = []
    if model.config.story_encoder != "incremental":
        notes.append(
            "This system encodes sentences without attention to one another: there is no chain of clues between "
            "them. Its ending reads all sentences at once, and weights are shares of the whole story."
        )
    if model.config.story_encoder == "hierarchical":
        notes.append("A weight is that of the sentence times that of the word in it.")
    if model.config.knowledge is None:
        notes.append("This system reads no knowledge: there are no graphs and no triples.")
    if unknown:
        notes.append(f"Not in the vocabulary, and read as unknown words: {', '.join(dict.fromkeys(unknown))}.")
    if ending_ids[-1] != model.config.eos_token_id:
        notes.append("The ending was cut off at the longest length allowed, before its end symbol.")
    return notes

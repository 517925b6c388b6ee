"""Why this ending: what each of its words read of the story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..modeling import EndingGenerationOutput, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple, relation_name
from ..modeling.sentences import split_sentences
from ..modeling.words import cased_forms, normalize_text, split_words
from .clues import ClueFinder
from .result import AttentionMatrix, EndingWord, Explanation, GraphTriple, Kind, ReadTriple, ReadWord


@dataclass(frozen=True)
class StoryTensors:
    """One story: its sentences, their words as written, and the tensors of a batch of one."""

    sentences: list[str]
    words: list[list[str]]
    tensors: dict[str, torch.Tensor]

    @property
    def copy_ids(self) -> torch.Tensor:
        """[K, L]: the ids under which words can be copied."""
        return self.tensors.get("copy_ids", self.tensors["input_ids"])[0]

    def find(self, word_id: int) -> tuple[int, int] | None:
        """Sentence and position, from 0, where a word first stands that can be copied under this id."""
        places = (self.copy_ids == word_id) & (self.tensors["attention_mask"][0] == 1)
        found = places.nonzero().tolist()
        return tuple(found[0]) if found else None


def sentences_of(story: str | Sequence[str]) -> list[str]:
    """The sentences of a story that is one string or a list of them."""
    if isinstance(story, str):
        return split_sentences(normalize_text(story))
    sentences = list(story) if isinstance(story, Sequence) else None
    if sentences is None or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError(f"`story` must be a string or a list of sentences; got {story!r}.")
    return sentences


def read_story(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    triples: Sequence[Triple] | None = None,
) -> StoryTensors:
    """A story, with triples of its own if there are any, on the device of the model."""
    if triples and model.config.knowledge is None:
        raise ValueError("`triples` were given, but this model reads no knowledge: its `config.knowledge` is None.")
    sentences = sentences_of(story)
    if not sentences:
        raise ValueError(f"`story` has no sentence: {story!r}.")
    batch = tokenizer([sentences], triples=triples, return_tensors="pt")
    tensors = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return StoryTensors(sentences, [_words_of(tokenizer, sentence) for sentence in sentences], tensors)


def _words_of(tokenizer: IncrementalEncoderTokenizer, sentence: str) -> list[str]:
    """Words in the case they are written in, unless that would make them other words."""
    text = normalize_text(sentence)
    as_read = split_words(text.lower() if tokenizer.do_lower_case else text, tokenizer.split_contractions)
    as_written = split_words(text, tokenizer.split_contractions)
    return as_written if len(as_written) == len(as_read) else as_read


def ending_words(tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, ids: Sequence[int]) -> list[str]:
    """The words of an ending one by one; those that the vocabulary lacks are the story's."""
    forms = {**tokenizer.word_forms, **cased_forms(story.words)} if tokenizer.do_lower_case else {}
    return [_surface_word(tokenizer, story, word_id, forms) for word_id in ids]


def _surface_word(
    tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, word_id: int, forms: dict[str, str]
) -> str:
    if word_id < len(tokenizer):
        word = tokenizer.convert_ids_to_tokens(word_id)
        return forms.get(word, word)
    place = story.find(word_id)
    assert place is not None, f"slot {word_id} is not in the story"
    return story.words[place[0]][place[1]]


def find_triples(
    tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, name: str, triples: Sequence[Triple]
) -> torch.Tensor:
    """Where [1, K, L, N] the words of a story have these triples; one that none has is an error."""
    ids, mask = story.tensors["triple_ids"], story.tensors["triple_mask"] == 1
    found = torch.zeros_like(mask)
    for triple in triples:
        wanted = _triple_ids(tokenizer, name, triple)
        here = torch.zeros_like(mask) if wanted is None else (ids == ids.new_tensor(wanted)).all(dim=-1) & mask
        if not here.any():
            raise ValueError(
                f"`{name}`: no word of the story reads {tuple(triple)}. It reads {_listed(tokenizer, ids[mask])}."
            )
        found |= here
    return found


def _triple_ids(tokenizer: IncrementalEncoderTokenizer, name: str, triple: Any) -> list[int] | None:
    """Ids of a triple, or None if it has a word or relation that no triple of the model can have."""
    if isinstance(triple, str) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
        raise ValueError(f"`{name}` has {triple!r}, not (head, relation, tail), three strings.")
    words = [part.lower() if tokenizer.do_lower_case else part for part in (triple[0], triple[2])]
    vocabulary, relation = tokenizer.get_vocab(), relation_name(triple[1])
    if relation not in tokenizer.knowledge.relation_ids or not all(word in vocabulary for word in words):
        return None
    return [vocabulary[words[0]], tokenizer.knowledge.relation_ids[relation], vocabulary[words[1]]]


def _listed(tokenizer: IncrementalEncoderTokenizer, ids: torch.Tensor, max_triples: int = 10) -> str:
    """The triples of [R, 3], each once, as a list of a readable length."""
    distinct = list(dict.fromkeys(map(tuple, ids.tolist())))
    shown = []
    for head, relation, tail in distinct[:max_triples]:
        words = tokenizer.convert_ids_to_tokens([head, tail])
        shown.append(f"({words[0]}, {tokenizer.knowledge.relations[relation]}, {words[1]})")
    if not shown:
        return "none at all"
    return ", ".join(shown) + (f" and {len(distinct) - max_triples} more" if len(distinct) > max_triples else "")


@dataclass(frozen=True)
class Observation:
    """
    What a model did with a story of K sentences and L words a sentence, and with an ending of T words.

    `encoder_*` have zeros where the system encodes without attention. Of the ending's attention, sentences that its
    words can't read have zeros.
    """

    log_probabilities: torch.Tensor  # [T]
    ending_state: torch.Tensor  # [T, K, L]
    encoder_state: torch.Tensor  # [K, L, L]: word of a sentence, word of the one before it
    ending_knowledge: torch.Tensor | None = None  # [T, K, L]
    encoder_knowledge: torch.Tensor | None = None  # [K, L, L]
    triple_weights: torch.Tensor | None = None  # [K, L, N]
    copied: torch.Tensor | None = None  # [T, K, L]: share of a word's probability that a place has


# For each model, how many threads are evaluating it, and whether it was training before the first of them came.
_EVALUATED: WeakKeyDictionary[torch.nn.Module, tuple[int, bool]] = WeakKeyDictionary()
_LOCK = Lock()


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """The model without dropout, and without gradients; of several threads, the last one puts it back."""
    with _LOCK:
        num_others, was_training = _EVALUATED.get(model, (0, model.training))
        _EVALUATED[model] = num_others + 1, was_training
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        with _LOCK:
            num_left = _EVALUATED.pop(model)[0] - 1
            if num_left:
                _EVALUATED[model] = num_left, was_training
            else:
                model.train(was_training)


def write_ending(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, generate_arguments: dict[str, Any]
) -> list[int]:
    """Ids of the ending that `generate()` gives, up to the end symbol and with it, if there is one."""
    with evaluating(model):
        written = model.generate(**story.tensors, **generate_arguments)
    sequences = getattr(written, "sequences", written)
    if sequences.shape[0] != 1:
        raise ValueError(f"One ending can be explained at a time; `num_return_sequences` gave {sequences.shape[0]}.")
    ids = sequences[0, 1:].tolist()
    end = model.config.eos_token_id
    return ids[: ids.index(end) + 1] if end in ids else ids


def observe(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, ending_ids: Sequence[int]
) -> Observation:
    """Let a model read a story and an ending, and keep what its attentions say."""
    with evaluating(model):
        labels = torch.tensor([list(ending_ids)], device=model.device)
        inputs = model.prepare_decoder_input_ids_from_labels(labels)
        encoded = model.encoder(**story.tensors, output_attentions=True)
        output = model(encoder_outputs=encoded, decoder_input_ids=inputs, output_attentions=True, use_cache=False)
        log_probabilities = output.logits[0].float().log_softmax(dim=-1).gather(1, labels.T).squeeze(1)
        copied = _copied_shares(model, encoded, inputs, labels, output.logits) if model.config.copy else None
    shape = story.tensors["input_ids"].shape[1:]
    return Observation(
        log_probabilities=log_probabilities.cpu(),
        copied=None if copied is None else copied.unflatten(1, shape).cpu(),
        **_attentions(model, output, shape),
    )


def log_probabilities_of(
    model: IncrementalEncoderForEndingGeneration, story: StoryTensors, ending_ids: Sequence[int]
) -> list[float]:
    """What a model gives to each word of an ending of that story."""
    return observe(model, story, ending_ids).log_probabilities.tolist()


def _attentions(
    model: IncrementalEncoderForEndingGeneration, output: EndingGenerationOutput, shape: torch.Size
) -> dict[str, torch.Tensor]:
    has_knowledge = model.config.knowledge is not None
    found = {
        "ending_state": _by_sentence(output.state_attentions[0], shape),
        # Step 0 reads the start symbol, step j word j.
        "encoder_state": output.encoder_state_attentions[0, :, 1:],
    }
    if has_knowledge:
        found["ending_knowledge"] = _by_sentence(output.knowledge_attentions[0], shape)
        found["encoder_knowledge"] = output.encoder_knowledge_attentions[0, :, 1:]
        found["triple_weights"] = output.triple_attentions[0]
    return {name: tensor.float().cpu() for name, tensor in found.items()}


def _by_sentence(weights: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """[T, K, L] from weights over all words of the story [T, K * L], or over those of its last sentence [T, L]."""
    num_sentences, num_words = shape
    if weights.shape[1] == num_sentences * num_words:
        return weights.unflatten(1, shape)
    spread = weights.new_zeros(weights.shape[0], *shape)
    spread[:, -1] = weights
    return spread


def _copied_shares(
    model: IncrementalEncoderForEndingGeneration,
    encoded: Any,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    logits: torch.Tensor,
) -> torch.Tensor:
    """[T, K * L]: the share of each word's probability that came from copying it from that place."""
    memory = encoded.copy_memory
    states = model.encoder.read(inputs, encoded.state, encoded.memory, None, memory).outputs
    scores = model.encoder.copying.score_places(states, memory)[0]  # [T, K * L]
    shares = (scores - logits[0].float().gather(1, labels.T)).exp()
    return shares.masked_fill(memory.ids != labels.T, 0.0)


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

"""The result of an explanation: what an ending's words came from, effects, attentions, and the clues behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

AttentionKind = Literal["state", "knowledge"]
SourceKind = Literal["vocabulary", "story", "knowledge"]


@dataclass(frozen=True)
class WeightedWord:
    """A word of the story with a weight; sentences and positions are counted from 1."""

    sentence: int
    position: int
    word: str
    weight: float


@dataclass(frozen=True)
class WeightedTriple:
    """A triple in the graph of a word of the story, with a weight."""

    sentence: int
    position: int
    word: str
    head: str
    relation: str
    tail: str
    weight: float


@dataclass(frozen=True)
class SourceWord:
    """A place of the story that a word of the ending came from, and its share of that word's probability."""

    sentence: int
    position: int
    word: str
    share: float


@dataclass(frozen=True)
class SourceTriple:
    """
    A triple that a word of the ending came from, and its share of that word's probability.

    If several words of the story have the triple, the place is that of the highest share, and the share their sum.
    """

    head: str
    relation: str
    tail: str
    sentence: int
    position: int
    word: str
    share: float

    @property
    def triple(self) -> tuple[str, str, str]:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class Sources:
    """
    What a word of the ending came from: shares of its probability, which sum to 1. Lists have the highest share first.

    Args:
        vocabulary: Share that was generated from the vocabulary.
        story: Places of the story; only systems that copy have any.
        triples: Triples; only systems with a tail pointer have any.
    """

    vocabulary: float
    story: list[SourceWord]
    triples: list[SourceTriple]

    @classmethod
    def from_dict(cls, shares: Mapping[str, Any]) -> Sources:
        """Return the sources of a word as the pipeline describes them."""
        return cls(
            shares["vocabulary"],
            [SourceWord(**place) for place in shares["story"]],
            [SourceTriple(**triple) for triple in shares["triples"]],
        )

    def totals(self) -> dict[SourceKind, float]:
        """Return the share of each kind of source."""
        story, triples = (sum(item.share for item in items) for items in (self.story, self.triples))
        return {"vocabulary": self.vocabulary, "story": story, "knowledge": triples}

    @property
    def main(self) -> SourceKind:
        """The kind of source with the highest share."""
        totals = self.totals()
        return max(totals, key=lambda kind: totals[kind])


@dataclass(frozen=True)
class Evidence(SourceTriple):
    """A triple that a word of the ending came from, with that word."""

    ending_word: str


@dataclass(frozen=True)
class Effect:
    """
    How much less likely the whole ending is without a part of the story or its knowledge.

    Args:
        effect: Difference of log probabilities in nats; below 0 if the ending is more likely without the part. None if
            it can't be generated without it, because a word that it copies is gone.
        factor: The same as a factor: the ending is so many times less likely.
    """

    effect: float | None
    factor: float | None


@dataclass(frozen=True)
class TripleEffect(Effect):
    """The effect of a triple, removed from all words of the story."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class SentenceEffect(Effect):
    """The effect of a sentence, counted from 1."""

    sentence: int


@dataclass(frozen=True)
class Effects:
    """
    Effects of single triples, of each sentence, and of all triples together.

    Args:
        triples: Triples that were removed, one at a time.
        sentences: All sentences; empty if the story has one only.
        knowledge: All triples together; None if the story has none, or the system reads none.
    """

    triples: list[TripleEffect]
    sentences: list[SentenceEffect]
    knowledge: Effect | None

    def of_triple(self, triple: tuple[str, str, str]) -> TripleEffect | None:
        """Return the effect of a triple; None if it was not measured."""
        return next((one for one in self.triples if (one.head, one.relation, one.tail) == triple), None)


@dataclass(frozen=True)
class EndingWord:
    """
    A word of the ending; its lists are sorted by weight, highest first.

    Args:
        word: The word; the end symbol is one, too.
        probability, log_probability: Given the words before it.
        sources: What it came from, by shares of its probability.
        state_attention: Attention to the hidden states of the story's words.
        knowledge_attention: Attention to the graphs of the story's words; None without knowledge attention.
        empty_graph_attention: Sum of the attention to words without triples; None without knowledge attention.
        triple_attention: Triples of those graphs, by knowledge attention times triple attention; None without
            knowledge attention.
    """

    word: str
    probability: float
    log_probability: float
    sources: Sources
    state_attention: list[WeightedWord]
    knowledge_attention: list[WeightedWord] | None = None
    empty_graph_attention: float | None = None
    triple_attention: list[WeightedTriple] | None = None


@dataclass(frozen=True)
class GraphTriple:
    """A triple of a word's graph and its attention weight there; None in systems without knowledge attention."""

    head: str
    relation: str
    tail: str
    weight: float | None


@dataclass(frozen=True)
class AttentionMatrix:
    """
    Attention of one sentence to another.

    Args:
        kind: `state` or `knowledge`.
        query_sentence: Number of the sentence that attends; the ending follows the last sentence of the story.
        key_sentence: Number of the sentence that is attended to.
        weights: A row for each word of the query sentence, a column for each word of the key sentence.
    """

    kind: AttentionKind
    query_sentence: int
    key_sentence: int
    weights: list[list[float]]


@dataclass(frozen=True)
class SentenceClues:
    """The words of a sentence by their relevance for the ending, highest first."""

    sentence: int
    words: list[WeightedWord]


@dataclass(frozen=True)
class ClueLink:
    """The highest attention weight of a clue word: an arrow in the clue picture."""

    kind: AttentionKind
    query_sentence: int
    query_position: int
    key_sentence: int
    key_position: int
    weight: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """
    An ending, what its words came from, effects, attentions and clues.

    Args:
        story: Sentences as text.
        sentences: Words of each sentence, as written.
        oov_positions: Sentence and position, from 1, of each out-of-vocabulary word of the story.
        ending: Ending as text.
        words: Words of the ending, the end symbol included.
        log_probability: Sum over the words of the ending.
        evidence: Triples that words of the ending came from, highest share first; shares below 1 % don't count.
        effects: How much less likely the ending is without each sentence, and without the triples of the evidence and
            those with the highest attention.
        graphs: Triples of each word of the story, by attention or, without knowledge attention, in the order of the
            table; None if the system reads no triples.
        attentions: All attention matrices.
        clues: For each sentence, last one first, its words by relevance for the ending.
        links: Highest attention weights of clue words.
        system: Settings that define the system: `story_encoder`, `knowledge`, `copy`, `tail_pointer`.
        notes: Limits of this explanation.
    """

    story: list[str]
    sentences: list[list[str]]
    oov_positions: list[tuple[int, int]]
    ending: str
    words: list[EndingWord]
    log_probability: float
    evidence: list[Evidence]
    effects: Effects
    graphs: list[list[list[GraphTriple]]] | None
    attentions: list[AttentionMatrix]
    clues: list[SentenceClues]
    links: list[ClueLink]
    system: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def words_of(self, sentence: int) -> list[str]:
        """Return the words of a sentence, counted from 1; the ending follows the last sentence of the story."""
        return [*self.sentences, [word.word for word in self.words]][sentence - 1]

    @property
    def has_knowledge_attention(self) -> bool:
        """Whether the system attends to triples; with a tail pointer alone, it reads them without attention."""
        return self.system["knowledge"] is not None

    @property
    def has_sources(self) -> bool:
        """Whether words can come from elsewhere than the vocabulary."""
        return bool(self.system["copy"] or self.system["tail_pointer"])

    def has_triples(self, sentence: int, position: int) -> bool:
        """Whether a word of the story, counted from 1, has triples."""
        return self.graphs is not None and bool(self.graphs[sentence - 1][position - 1])

    def to_dict(self) -> dict[str, Any]:
        """Return the content as lists, dictionaries, strings and numbers."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """Return the content as JSON text."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False)

    def to_markdown(self, top_k: int = 3) -> str:
        """Return a Markdown page that shows the `top_k` highest weights of each word."""
        from .markdown import explanation_markdown

        return explanation_markdown(self, top_k)

    def to_html(self) -> str:
        """Return an interactive page that needs no network."""
        from .files import explanation_html

        return explanation_html(self)

    def __repr__(self) -> str:
        """Return the ending; the fields of an explanation fill pages."""
        return f"Explanation({self.ending!r}, log_probability={self.log_probability:.2f})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the ending with its words coloured by source, sources and effects."""
        from .snippet import explanation_snippet

        return explanation_snippet(self)

    def draw_sources(self, path: str | Path) -> None:
        """Draw what each word came from as stacked bars; the file's suffix gives the format."""
        from .figures import draw_sources

        draw_sources(self, Path(path))

    def draw_clues(self, path: str | Path) -> None:
        """Draw the clue links between sentences; the file's suffix gives the format."""
        from .figures import draw_clues

        draw_clues(self, Path(path))

    def draw_attention(self, path: str | Path) -> None:
        """Draw the attention matrices; the file's suffix gives the format."""
        from .figures import draw_attention

        draw_attention(self, Path(path))

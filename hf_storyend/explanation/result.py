"""The result of an explanation: probabilities and attentions of an ending's words, and the clues behind them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

AttentionKind = Literal["state", "knowledge"]


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
class EndingWord:
    """
    A word of the ending; its lists are sorted by weight, highest first.

    Args:
        word: The word; the end symbol is one, too.
        probability, log_probability: Given the words before it.
        state_attention: Attention to the hidden states of the story's words.
        knowledge_attention: Attention to the graphs of the story's words; None if the model has no knowledge.
        empty_graph_attention: Sum of the attention to words without triples; None if the model has no knowledge.
        triple_attention: Triples of those graphs, by knowledge attention times triple attention; None if the model has
            no knowledge.
        copied: Places that it is copied from, by their share of its probability; None if the model does not copy.
    """

    word: str
    probability: float
    log_probability: float
    state_attention: list[WeightedWord]
    knowledge_attention: list[WeightedWord] | None = None
    empty_graph_attention: float | None = None
    triple_attention: list[WeightedTriple] | None = None
    copied: list[WeightedWord] | None = None


@dataclass(frozen=True)
class GraphTriple:
    """A triple of a word's graph and its weight in the graph."""

    head: str
    relation: str
    tail: str
    weight: float


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


@dataclass(frozen=True)
class Explanation:
    """
    An ending, its attentions and its clues.

    Args:
        story: Sentences as text.
        sentences: Words of each sentence, as written.
        oov_positions: Sentence and position, from 1, of each out-of-vocabulary word of the story.
        ending: Ending as text.
        words: Words of the ending, the end symbol included.
        log_probability: Sum over the words of the ending.
        graphs: Triples of each word of the story; None if the model has no knowledge.
        attentions: All attention matrices.
        clues: For each sentence, last one first, its words by relevance for the ending.
        links: Highest attention weights of clue words.
        system: Settings that define the system: `story_encoder`, `knowledge`, `copy`.
        notes: Limits of this explanation.
    """

    story: list[str]
    sentences: list[list[str]]
    oov_positions: list[tuple[int, int]]
    ending: str
    words: list[EndingWord]
    log_probability: float
    graphs: list[list[list[GraphTriple]]] | None
    attentions: list[AttentionMatrix]
    clues: list[SentenceClues]
    links: list[ClueLink]
    system: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def words_of(self, sentence: int) -> list[str]:
        """Return the words of a sentence, counted from 1; the ending follows the last sentence of the story."""
        return [*self.sentences, [word.word for word in self.words]][sentence - 1]

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

    def draw_clues(self, path: str | Path) -> None:
        """Draw the clue links between sentences; the file's suffix gives the format."""
        from .figures import draw_clues

        draw_clues(self, Path(path))

    def draw_attention(self, path: str | Path) -> None:
        """Draw the attention matrices; the file's suffix gives the format."""
        from .figures import draw_attention

        draw_attention(self, Path(path))

"""Registry of the systems that can be trained and compared: the paper's, and IE with a copy mechanism and more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .modeling import IncrementalEncoderConfig, IncrementalEncoderTokenizer

GRAPH, CONTEXTUAL = "graph_attention", "contextual_attention"


@dataclass(frozen=True)
class System:
    """
    A system: a set of model configuration values with a name.

    Args:
        name: Name in options: the paper's, in lower case with hyphens.
        description: One line for lists.
        story_encoder: `"sequence"`, `"hierarchical"` or `"incremental"`.
        knowledge: `"graph_attention"`, `"contextual_attention"`, or None for no knowledge.
        copy: Whether the system has a copy mechanism.
        tail_pointer: Whether words can come from the tails of triples.
        paper_name: Name in the paper's tables; None if the paper does not have the system.
    """

    name: str
    description: str
    story_encoder: str
    knowledge: str | None = None
    copy: bool = False
    tail_pointer: bool = False
    paper_name: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Values of the model configuration that select this system."""
        return {
            "story_encoder": self.story_encoder,
            "knowledge": self.knowledge,
            "copy": self.copy,
            "tail_pointer": self.tail_pointer,
        }


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System("seq2seq", "all sentences as one sequence, attention to its words", "sequence", paper_name="Seq2Seq"),
        System("hlstm", "words, then sentences; attention to both", "hierarchical", paper_name="HLSTM"),
        System(
            "hlstm-copy", "hlstm that copies words of the story", "hierarchical", copy=True, paper_name="HLSTM+Copy"
        ),
        System(
            "hlstm-msa-ga", "hlstm, knowledge by graph attention", "hierarchical", GRAPH, paper_name="HLSTM+MSA(GA)"
        ),
        System(
            "hlstm-msa-ca",
            "hlstm, knowledge by contextual attention",
            "hierarchical",
            CONTEXTUAL,
            paper_name="HLSTM+MSA(CA)",
        ),
        System("ie", "sentence after sentence, attention to the one before", "incremental", paper_name="IE"),
        System("ie-msa-ga", "ie, knowledge by graph attention", "incremental", GRAPH, paper_name="IE+MSA(GA)"),
        System(
            "ie-msa-ca", "ie, knowledge by contextual attention", "incremental", CONTEXTUAL, paper_name="IE+MSA(CA)"
        ),
        System("ie-copy", "ie that copies words of the story", "incremental", copy=True),
        System("ie-msa-ga-copy", "ie-msa-ga that copies words of the story", "incremental", GRAPH, copy=True),
        System("ie-msa-ca-copy", "ie-msa-ca that copies words of the story", "incremental", CONTEXTUAL, copy=True),
        System(
            "ie-copy-tails",
            "ie that copies words of the story and tails of its triples",
            "incremental",
            copy=True,
            tail_pointer=True,
        ),
        System(
            "ie-msa-ga-copy-tails",
            "ie-msa-ga that copies words of the story and tails of its triples",
            "incremental",
            GRAPH,
            copy=True,
            tail_pointer=True,
        ),
        System(
            "ie-msa-ca-copy-tails",
            "ie-msa-ca that copies words of the story and tails of its triples",
            "incremental",
            CONTEXTUAL,
            copy=True,
            tail_pointer=True,
        ),
    )
}


def find_system(name: str) -> System:
    """Return the system with this name."""
    if name not in SYSTEMS:
        raise ValueError(f"There is no system `{name}`; choose one of {', '.join(SYSTEMS)}.")
    return SYSTEMS[name]


def match_tokenizer(tokenizer: IncrementalEncoderTokenizer, config: IncrementalEncoderConfig) -> None:
    """Make a tokenizer return what a model reads: copy slots, and weights and forms of tails."""
    tokenizer.num_copy_slots = config.num_copy_slots if config.copy else 0
    tokenizer.tail_pointer = config.tail_pointer


def count_parameters(system: System, **sizes: Any) -> int:
    """
    Return the number of parameters of a system.

    Args:
        system: The system.
        sizes: Configuration values other than the paper's: `count_parameters(system, hidden_size=256)`.
    """
    # Imported here, so that options can name systems without importing torch.
    import torch

    from .modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration

    # The meta device allocates and initialises nothing.
    with torch.device("meta"):
        model = IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig(**{**system.settings, **sizes}))
    return model.num_parameters()

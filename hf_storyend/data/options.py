"""Options of `prepare`, shared by Python and the command line."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..options import MAX_PROCESSES, check_at_least, check_at_most, check_finite_numbers, option

EMBEDDED = "embedded"
KNOWLEDGE_ENCODERS = ("graph_attention", "contextual_attention")
STORY_LIFT = "story_lift"
DEFAULT_MIN_LIFT = 1.5
POLICIES = ("weight", "tail_frequency", "weight_and_frequency", STORY_LIFT)

_STORIES, _KNOWLEDGE, _MODEL = "Stories and vocabulary", "Knowledge", "Model"
# What these change is where and how fast the result is written, not the result.
_NOT_IN_FINGERPRINT = ("output_dir", "overwrite", "num_proc")
_NOT_WITH_STORY_LIFT = {
    "inverse": "it has the inverse of every triple",
    "symmetric": "it has the inverse of every triple",
    "multi_word": "it connects the content words of concepts",
}


@dataclass(frozen=True)
class PrepareOptions:
    """Options of `prepare`; the help of each field describes it."""

    output_dir: str = option("prepared", "Directory to write.")
    overwrite: bool = option(False, "Replace what is in the output directory.")
    seed: int = option(0, "Random seed of the split and of all initial values.")

    stories: str = option(
        EMBEDDED,
        "CSV file of ROCStories or the Story Cloze Test, JSON Lines, `.post`/`.response`, plain text, a directory of "
        "such files named after splits, a saved dataset, a dataset on the Hub, or `embedded`: the package's own.",
        group=_STORIES,
    )
    num_train: int | None = option(
        None, "Number of training stories if there are no splits (the paper: 90000); default: 90 %.", group=_STORIES
    )
    vocab_size: int = option(10_000, "Vocabulary size, special tokens included.", group=_STORIES)
    lower_case: bool = option(True, "Lower-case the vocabulary.", group=_STORIES)
    split_contractions: bool = option(True, "Split `didn't` into `did` and `n't`.", group=_STORIES)
    num_proc: int | None = option(None, "Number of processes for tokenising; default: one.", group=_STORIES)

    conceptnet: tuple[str, ...] = option(
        (),
        "Knowledge files: the ConceptNet dump, plain or gzip, or a list of triples. Default: the package's own "
        "triples with its own stories, else none.",
        group=_KNOWLEDGE,
        metavar="FILE",
    )
    max_triples: int = option(10, "Maximum number of triples per token.", group=_KNOWLEDGE)
    policy: Literal["weight", "tail_frequency", "weight_and_frequency", "story_lift"] = option(
        "weight_and_frequency",
        "Selection of the triples of a token: by ConceptNet's weight, by frequency of the tail, by both, or by how "
        "much likelier the tail is in the endings of training stories that have the head (`story_lift`).",
        group=_KNOWLEDGE,
    )
    min_lift: float | None = option(
        None,
        f"Drop triples whose tail is not this many times likelier in stories with the head, with `{STORY_LIFT}`; "
        f"default: {DEFAULT_MIN_LIFT}.",
        group=_KNOWLEDGE,
    )
    relations: tuple[str, ...] | None = option(None, "Keep only these relations; default: all.", group=_KNOWLEDGE)
    min_weight: float | None = option(None, "Drop triples with a smaller weight.", group=_KNOWLEDGE)
    inverse: bool = option(False, "Add the inverse of every triple.", group=_KNOWLEDGE)
    symmetric: bool = option(False, "Add the inverse of triples with a symmetric relation.", group=_KNOWLEDGE)
    multi_word: bool = option(False, "Match multi-word concepts in text.", group=_KNOWLEDGE)

    knowledge: Literal["graph_attention", "contextual_attention", "none"] | None = option(
        "contextual_attention", "Knowledge encoder of the model.", group=_MODEL
    )
    glove: str | None = option(
        None, "Pretrained word vectors as text, plain or gzip; default: random.", group=_MODEL, metavar="FILE"
    )
    hidden_size: int = option(512, "LSTM hidden size.", group=_MODEL)
    num_layers: int = option(2, "LSTM layers.", group=_MODEL)
    embedding_size: int | None = option(None, "Embedding size; default: that of the vectors, or 200.", group=_MODEL)

    def __post_init__(self) -> None:
        self._normalise()
        check_finite_numbers(self)
        check_at_least(self, 1, "max_triples", "hidden_size", "num_layers")
        check_at_least(self, 1, "num_train", "num_proc", "embedding_size", optional=True)
        check_at_least(self, 5, "vocab_size")
        check_at_most(self, num_proc=MAX_PROCESSES)
        _check_choice("policy", self.policy, POLICIES)
        _check_choice("knowledge", self.knowledge, (*KNOWLEDGE_ENCODERS, None))
        self._check_that_triples_exist()
        self._check_policy()

    def content(self) -> dict[str, Any]:
        """Return the options that determine what is written, for reports and fingerprints."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_IN_FINGERPRINT}

    def _normalise(self) -> None:
        """Turn paths into strings, lists into tuples and `"none"` into None."""
        conceptnet = (self.conceptnet,) if isinstance(self.conceptnet, (str, os.PathLike)) else self.conceptnet
        normal = {
            "output_dir": os.fspath(self.output_dir),
            "stories": os.fspath(self.stories),
            "conceptnet": tuple(map(os.fspath, conceptnet or ())),
            "relations": tuple(self.relations) if self.relations else None,
            "glove": None if self.glove is None else os.fspath(self.glove),
            "knowledge": None if self.knowledge == "none" else self.knowledge,
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)

    def _check_that_triples_exist(self) -> None:
        """Refuse options about triples if there are none: they would silently do nothing."""
        if self.conceptnet:
            return
        # The embedded triples have no weights.
        names = ["min_weight"]
        names += ["inverse", "symmetric", "multi_word", "relations"] if self.stories != EMBEDDED else []
        for name in names:
            if getattr(self, name):
                raise ValueError(f"`{name}` is about triples, and there are none: give `conceptnet` files.")

    def _check_policy(self) -> None:
        """Refuse options that the policy does not use."""
        if self.policy != STORY_LIFT:
            if self.min_lift is not None:
                raise ValueError(f"`min_lift` is about the policy `{STORY_LIFT}`; got `policy` {self.policy!r}.")
            return
        if self.min_lift is not None and not self.min_lift >= 1:
            raise ValueError(f"`min_lift` must be at least 1; got {self.min_lift}.")
        for name, reason in _NOT_WITH_STORY_LIFT.items():
            if getattr(self, name):
                raise ValueError(f"`{name}` has no effect with the policy `{STORY_LIFT}`: {reason}.")
        if not self.conceptnet and self.stories != EMBEDDED:
            raise ValueError(f"`policy` is `{STORY_LIFT}`, but there are no triples: give `conceptnet` files.")


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}; got {value!r}.")

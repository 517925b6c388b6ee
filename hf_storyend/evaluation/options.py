"""
Options of `storyend evaluate` and `storyend score`, and the settings of the metrics that both share.

This module imports no torch: the command line reads its help from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..options import DECODING_HELP, MAX_BOOTSTRAP_SAMPLES, DecodingPreset, check_at_least, check_at_most, option

_DATA_DIR = "Stories: whatever `storyend prepare --stories` reads, or a directory that it has written."
_MAX_STORIES = "Use only the first N stories."
_BOOTSTRAP_SAMPLES = (
    "Bootstrap samples for 95 % confidence intervals, and permutations of significance tests; 0: no intervals."
)
_BASELINE = "File with another system's endings for the same stories, for paired significance tests."
_CONSTANT_ENDING = "Ending of the constant baseline; default: the training ending with the highest BLEU-1."
_DATASET_ID = (
    "Hub id of the stories, for the Hub's files; default: what `data_dir` was prepared from, else its own name."
)


@dataclass(frozen=True)
class EvaluationOptions:
    """
    Settings of the metrics, for `evaluate_model` and `score_endings`.

    Args:
        batch_size: Stories in a batch, over all processes. It changes the speed, not the result.
        decoding: Preset of `generate()`: "readers", "paper" or "sampling"; default: the model's own setting if it has
            beams or samples, else "readers".
        generation: Arguments of `generate()`, which win over the preset: `{"num_beams": 4}`.
            Sampling (`do_sample`) depends on the batches, thus on the number of processes.
        max_stories: Use only the first N stories.
        num_sampled_classes: Classes that the sampled softmax draws for a batch.
        num_relation_names: Relation names that precede the words in the sampled vocabulary, as in the authors' code;
            0: words only.
        num_seeds: Draws of the sampled softmax; 0: no sampled perplexity.
        bootstrap_samples: Bootstrap samples for confidence intervals; 0: no intervals.
        predict_with_generate: Whether to generate endings and score them; otherwise, likelihoods only.
        constant_ending: Ending of the constant baseline; default: the reference with the highest BLEU-1.
        seed: Seed of all random draws.
    """

    batch_size: int = 128
    decoding: DecodingPreset | None = None
    generation: dict[str, Any] = field(default_factory=dict)
    max_stories: int | None = None
    num_sampled_classes: int = 512
    num_relation_names: int = 45
    num_seeds: int = 5
    bootstrap_samples: int = 0
    predict_with_generate: bool = True
    constant_ending: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(self, 1, "batch_size", "num_sampled_classes")
        check_at_least(self, 1, "max_stories", optional=True)
        check_at_least(self, 0, "num_relation_names", "num_seeds", "bootstrap_samples", "seed")
        check_at_most(self, num_relation_names=100_000, num_seeds=1_000, bootstrap_samples=MAX_BOOTSTRAP_SAMPLES)


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of `storyend evaluate`: which model, on which stories, and how."""

    model: str | None = option(
        None, "Model directory or Hub name; default: the model that comes with the package.", positional=True
    )
    data_dir: str = option("embedded", _DATA_DIR)
    split: str = option("test", "Split to evaluate on.")
    output_dir: str | None = option(
        None, "Directory for metrics, table, endings and files for the Hub; default: nothing is saved."
    )
    batch_size: int = option(128, "Stories in a batch, over all processes.")
    decoding: DecodingPreset | None = option(None, DECODING_HELP)
    num_beams: int | None = option(None, "Beams; default: those of the preset.")
    no_repeat_ngram_size: int | None = option(
        None, "No n-gram of this size occurs twice in an ending; default: the model's own setting."
    )
    max_new_tokens: int | None = option(None, "Maximum length of an ending; default: the model's own setting.")
    max_stories: int | None = option(None, _MAX_STORIES)
    num_seeds: int = option(5, "Draws of the sampled softmax; 0: no sampled perplexity.")
    num_sampled_classes: int = option(512, "Classes that the sampled softmax draws for a batch.")
    num_relation_names: int = option(
        45, "Relation names before the words in the sampled vocabulary: 45 in the authors' code; 0: words only."
    )
    bootstrap_samples: int = option(1000, _BOOTSTRAP_SAMPLES)
    cloze: str | None = option(None, "Story Cloze CSV file, for its accuracy.")
    ablations: bool = option(
        False,
        "Also measure perplexity with other or no triples, with uniform attention and without each sentence.",
    )
    gender_swap: bool = option(
        False, "Also measure an example of bias: what changes in endings if `he` and `she` change places in stories."
    )
    baseline: str | None = option(None, _BASELINE)
    constant_ending: str | None = option(None, _CONSTANT_ENDING)
    name: str | None = option(None, "Name of the system in tables; default: the model's.")
    dataset_id: str | None = option(None, _DATASET_ID)
    seed: int = option(0, "Seed of all random draws.")
    json: bool = option(False, "Print JSON instead of a table.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "num_beams", "max_new_tokens", optional=True)
        check_at_least(self, 0, "no_repeat_ngram_size", optional=True)
        # The others are checked there.
        self.evaluation_options()

    def evaluation_options(self) -> EvaluationOptions:
        """Return the settings of the metrics."""
        generation = {name: getattr(self, name) for name in ("num_beams", "no_repeat_ngram_size", "max_new_tokens")}
        given = {name: value for name, value in generation.items() if value is not None}
        return EvaluationOptions(
            batch_size=self.batch_size,
            decoding=self.decoding,
            generation=given,
            max_stories=self.max_stories,
            num_sampled_classes=self.num_sampled_classes,
            num_relation_names=self.num_relation_names,
            num_seeds=self.num_seeds,
            bootstrap_samples=self.bootstrap_samples,
            constant_ending=self.constant_ending,
            seed=self.seed,
        )


@dataclass(frozen=True)
class ScoreOptions:
    """Options of `storyend score`: files of endings, by any systems, and the stories that they end."""

    endings: tuple[str, ...] = option(
        (),
        "File of endings: text, one a line, or JSON Lines with `ending`. Repeat it for more systems. "
        "Default: endings that the package's model generates.",
    )
    data_dir: str = option("embedded", _DATA_DIR)
    split: str = option("test", "Split that the endings belong to.")
    names: tuple[str, ...] = option((), "Name of each system in tables; default: the names of the files.", flag="name")
    model: str | None = option(
        None, "Model directory or Hub name whose knowledge graph measures the use of knowledge; default: not measured."
    )
    output_dir: str | None = option(
        None, "Directory for metrics, tables and files for the Hub, in a subdirectory for each system."
    )
    max_stories: int | None = option(None, _MAX_STORIES)
    bootstrap_samples: int = option(1000, _BOOTSTRAP_SAMPLES)
    baseline: str | None = option(None, _BASELINE)
    constant_ending: str | None = option(None, _CONSTANT_ENDING)
    dataset_id: str | None = option(None, _DATASET_ID)
    json: bool = option(False, "Print JSON instead of a table.")

    def __post_init__(self) -> None:
        self.evaluation_options()

    def evaluation_options(self) -> EvaluationOptions:
        """Return the settings of the metrics."""
        return EvaluationOptions(
            max_stories=self.max_stories,
            bootstrap_samples=self.bootstrap_samples,
            constant_ending=self.constant_ending,
        )

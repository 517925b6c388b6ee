"""What a card may say of a training run: its data, their licence and its time, as far as the run recorded them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NOT_RECORDED = "not recorded"
_EMBEDDED = "embedded"
# Names that people give to the files of ROCStories and ConceptNet: whole words, for `processed` has "roc" in it, too.
_ROC = re.compile(r"(?<![a-z])roc[ _-]?stor(y|ies)(?![a-z])", re.IGNORECASE)
_CONCEPTNET = re.compile(r"(?<![a-z])concept[ _-]?net", re.IGNORECASE)
_GLOVE = re.compile(r"(?<![a-z])glove(?![a-z])", re.IGNORECASE)
_MINUTES_AN_HOUR = 60
# From here on, hours say more.
_MANY_MINUTES = 90

_ROC_STORIES = (
    "**Stories**: ROCStories (Mostafazadeh et al., NAACL 2016), on request from its authors. No story of it is in "
    "this\n  repository."
)
_CONCEPTNET_TRIPLES = (
    "**Knowledge**: ConceptNet 5 (Speer, Chin and Havasi, AAAI 2017), [conceptnet.io](https://conceptnet.io), under\n"
    "  [CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/). `knowledge.json` is a selection from it, "
    "under\n  the same licence."
)
_GLOVE_VECTORS = "**Initial word vectors**: GloVe (Pennington, Socher and Manning, EMNLP 2014), under the PDDL 1.0."
_EMBEDDED_DATA = (
    "**Stories and knowledge**: 660 stories and 687 triples that come with `hf_storyend`, written for it by language\n"
    "  models, under Apache-2.0. Nothing is from ROCStories, ConceptNet (CC BY-SA 4.0) or GloVe, which bigger models\n"
    "  of this kind use."
)


@dataclass(frozen=True)
class RunFacts:
    """
    The data of a run and its time.

    Args:
        is_known: False for a card without a run.
        stories: Name of the stories, None if it is not recorded.
        num_train: Number of training stories.
        knowledge: Names of the knowledge files; None if they are not recorded.
        vectors: Name of the file of word vectors, "" if there was none; None if it is not recorded.
        minutes: Minutes of each run that the weights come from, first one first; None for one that is not recorded.
        extra_stories: Name of the file of further training stories; None if there was none.
    """

    is_known: bool
    stories: str | None
    num_train: int | None
    knowledge: tuple[str, ...] | None
    vectors: str | None
    minutes: tuple[float | None, ...]
    extra_stories: str | None = None

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> RunFacts:
        """Read the entry `run` of `metrics.json`; earlier versions recorded less."""
        sources, earlier = run.get("sources"), run.get("earlier_runs")
        all_runs = [*(earlier if isinstance(earlier, list) else ()), run] if run else []
        minutes = tuple(_number(one.get("minutes")) if isinstance(one, Mapping) else None for one in all_runs)
        options = run.get("options")
        extra_path = options.get("extra_stories") if isinstance(options, Mapping) else None
        extra = os.path.basename(str(extra_path)) if extra_path else None
        if not isinstance(sources, Mapping):
            name = _EMBEDDED if _used_embedded_stories(run) else run.get("data")
            return cls(bool(run), _text(name), None, () if name == _EMBEDDED else None, None, minutes, extra)
        counts = sources.get("num_stories")
        return cls(
            True,
            _text(sources.get("stories")),
            counts.get("train") if isinstance(counts, Mapping) else None,
            tuple(map(str, sources.get("conceptnet") or ())),
            _text(sources.get("glove")) or "",
            minutes,
            extra,
        )

    @property
    def is_embedded(self) -> bool:
        """Whether the stories are the package's own."""
        return self.stories == _EMBEDDED

    @property
    def is_roc(self) -> bool:
        """Whether the stories are called ROCStories."""
        return self.stories is not None and bool(_ROC.search(self.stories))

    @property
    def uses_conceptnet(self) -> bool:
        """Whether a knowledge file is called ConceptNet."""
        return any(map(_CONCEPTNET.search, self.knowledge or ()))

    @property
    def dataset(self) -> str | None:
        """Dataset for the Hub's metadata: ROCStories, or one of the Hub; None for anything else."""
        if self.is_roc:
            return "rocstories"
        return self.stories if self.stories and re.fullmatch(r"[\w.-]+/[\w.-]+", self.stories) else None

    @property
    def results_name(self) -> str:
        """Name of the stories in results."""
        if self.is_embedded:
            return "hf_storyend-embedded"
        name = self.dataset or self.stories or "unknown"
        return name if "/" in name else name.partition(".")[0]

    @property
    def licence(self) -> str | None:
        """Licence for the Hub's metadata: that of what is in the repository; None where nobody said."""
        if self.uses_conceptnet:
            return "cc-by-sa-4.0"
        is_own = self.is_embedded and not (self.knowledge or self.vectors or self.extra_stories)
        return "apache-2.0" if is_own else None

    def training_time(self) -> str:
        """Return minutes and hours, those of earlier runs included."""
        if not self.minutes or self.minutes[-1] is None:
            return _NOT_RECORDED if self.is_known else "not measured"
        last = _duration(self.minutes[-1])
        if len(self.minutes) == 1:
            return last
        known = [minutes for minutes in self.minutes if minutes is not None]
        if len(known) < len(self.minutes):
            return f"{last}, and that of the model it started from, which is {_NOT_RECORDED}"
        return f"{_duration(sum(known))} in {len(known)} runs, each from the one before; the last took {last}"

    def describe_sources(self) -> list[str]:
        """Return a bullet for each source of the data."""
        if not self.is_known:
            return ["**Stories, knowledge, word vectors**: there is no training run that tells."]
        lines = (*self._story_lines(), self._extra_line(), self._knowledge_line(), self._vector_line())
        return [line for line in lines if line]

    def _story_lines(self) -> Sequence[str]:
        if self.is_embedded and not self.knowledge:
            return [_EMBEDDED_DATA]
        if self.is_embedded:
            return ["**Stories**: the 660 that come with `hf_storyend`, written by language models, under Apache-2.0."]
        if self.is_roc:
            return [_ROC_STORIES]
        return [f"**Stories**: {_quoted(self.stories)}. The run does not say whose they are, nor their licence."]

    def _extra_line(self) -> str:
        if self.extra_stories is None:
            return ""
        return (
            f"**Further stories**: {_quoted(self.extra_stories)}. The run does not say who wrote them: if a "
            "teacher did, name it and its licence here."
        )

    def _knowledge_line(self) -> str:
        if self.knowledge is None:
            return (
                f"**Knowledge**: {_NOT_RECORDED}. Triples of ConceptNet 5 (Speer, Chin and Havasi, AAAI 2017) are "
                "under CC BY-SA 4.0."
            )
        if self.uses_conceptnet:
            others = [name for name in self.knowledge if not _CONCEPTNET.search(name)]
            return _CONCEPTNET_TRIPLES + (f" Also {', '.join(map(_quoted, others))}." if others else "")
        if not self.knowledge:
            return "" if self.is_embedded else "**Knowledge**: none."
        names = ", ".join(map(_quoted, self.knowledge))
        return (
            f"**Knowledge**: {names}. The run does not say whose it is: what is from ConceptNet is under "
            "CC BY-SA 4.0, and so is then `knowledge.json`."
        )

    def _vector_line(self) -> str:
        if not self.vectors:
            return ""
        return _GLOVE_VECTORS if _GLOVE.search(self.vectors) else f"**Initial word vectors**: {_quoted(self.vectors)}."


def _used_embedded_stories(run: Mapping[str, Any]) -> bool:
    """Whether a run of an earlier version was given no data. (`prepared` was the option of 0.1.)"""
    return "options" in run and run["options"].get("data_dir", run["options"].get("prepared")) is None


def _duration(minutes: float) -> str:
    text = f"{minutes:g} minutes"
    return text if minutes < _MANY_MINUTES else f"{text} ({minutes / _MINUTES_AN_HOUR:.1f} hours)"


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _quoted(name: str | None) -> str:
    """Return a name between backticks, on one line."""
    return _NOT_RECORDED if name is None else f"`{' '.join(name.split()).replace('`', chr(39))[:100]}`"

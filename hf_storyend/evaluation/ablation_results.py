"""The result of ablations: perplexity with parts of the input or of the model taken away, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

AS_IT_IS = "as it is"
RARE_WORDS = "stories with rare words"


@dataclass(frozen=True)
class AblationRow:
    """
    Perplexity under one ablation, full softmax.

    Args:
        name: Name of the ablation.
        perplexity: Perplexity of all words of the endings.
        change: Its change in percent of the perplexity as it is; None for that itself.
        tail_perplexity: Perplexity of the words that are tails; None if there are none.
        tail_change: Its change in percent.
    """

    name: str
    perplexity: float
    change: float | None = None
    tail_perplexity: float | None = None
    tail_change: float | None = None


@dataclass(frozen=True)
class AblationSubset:
    """
    All ablations on some of the stories.

    Args:
        name: Which stories.
        num_stories: Number of stories.
        num_words: Number of words of their endings, end symbols included.
        num_tails: Number of these words that a triple of the story offers.
        rows: The ablations; the first is the model as it is.
    """

    name: str
    num_stories: int
    num_words: int
    num_tails: int
    rows: tuple[AblationRow, ...]


@dataclass(frozen=True)
class Ablations:
    """
    Ablations on all stories and on subsets of them.

    Args:
        subsets: The subsets; the first is all stories.
        notes: What was not measured, and why.
        user_triple_gain: By how many nats a triple that a user adds raises the log-probability of its tail, in the
            median; None if the model reads no triples.
    """

    subsets: tuple[AblationSubset, ...]
    notes: tuple[str, ...] = ()
    user_triple_gain: float | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Ablations:
        """Read what `to_dict` gave."""
        gain = content.get("user_triple_gain")
        subsets = tuple(map(_read_subset, content["subsets"]))
        return cls(subsets, tuple(map(str, content["notes"])), None if gain is None else float(gain))

    def metrics(self) -> dict[str, float]:
        """Return the perplexity of the stories with rare words and the gain by own triples, as far as measured."""
        found = [subset.rows[0].perplexity for subset in self.subsets if subset.name == RARE_WORDS]
        metrics = {"perplexity_rare_words": found[0]} if found else {}
        gain = self.user_triple_gain
        return metrics if gain is None else {**metrics, "user_triple_gain": gain}

    def to_dict(self) -> dict[str, Any]:
        """Return the content, ready for JSON."""
        content = asdict(self)
        return {
            "subsets": [{**subset, "rows": list(subset["rows"])} for subset in content["subsets"]],
            "notes": list(self.notes),
            "user_triple_gain": self.user_triple_gain,
        }

    def to_markdown(self) -> str:
        """Return a Markdown table for each subset, and the notes."""
        tables = ["\n".join(_table(subset)) for subset in self.subsets]
        notes = ["\n".join(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n\n".join([*tables, *notes])


def _read_subset(content: Mapping[str, Any]) -> AblationSubset:
    counts = {name: int(content[name]) for name in ("num_stories", "num_words", "num_tails")}
    rows = tuple(AblationRow(**{name: _read(name, value) for name, value in row.items()}) for row in content["rows"])
    return AblationSubset(**{**content, **counts, "name": str(content["name"]), "rows": rows})


def _read(name: str, value: Any) -> Any:
    if name == "name":
        return str(value)
    return None if value is None else float(value)


def _table(subset: AblationSubset) -> list[str]:
    lines = [
        f"| ablation, {subset.num_stories} {subset.name} | perplexity | change | "
        f"... of the {subset.num_tails} words that are tails | change |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in subset.rows:
        cells = [
            _number(row.perplexity),
            _percent(row.change),
            _number(row.tail_perplexity),
            _percent(row.tail_change),
        ]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    # Adding zero turns -0.0 into 0.0.
    return "" if value is None else f"{round(value, 1) + 0.0:+.1f} %"

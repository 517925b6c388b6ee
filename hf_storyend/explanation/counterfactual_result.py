"""What a counterfactual holds: two stories, two endings, and how likely each ending is in either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .markdown import escape, table_lines
from .result import Explanation


@dataclass(frozen=True)
class Counterfactual:
    """
    A story as given and as changed, the endings of both, and how likely each ending is in either.

    Args:
        changes: What was changed, in words.
        original, changed: The explanations of both endings, each in its own story.
        original_ending_after: Log probability of each word of the original ending in the changed story; None if the
            ending has a copied word that stands there no more.
        changed_ending_before: The same for the changed story's ending in the original story.
    """

    changes: list[str]
    original: Explanation
    changed: Explanation
    original_ending_after: list[float] | None
    changed_ending_before: list[float] | None

    @property
    def is_same_ending(self) -> bool:
        """Whether the change left the ending as it was."""
        return self.original.ending == self.changed.ending

    def log_probabilities(self) -> dict[str, dict[str, float | None]]:
        """By ending (`original`, `changed`): its log probability in the story as given and as changed."""
        return {
            "original": {"given": self.original.log_probability, "changed": _total(self.original_ending_after)},
            "changed": {"given": _total(self.changed_ending_before), "changed": self.changed.log_probability},
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain lists, dictionaries, strings and numbers."""
        return {
            "changes": self.changes,
            "is_same_ending": self.is_same_ending,
            "endings": {"original": self.original.ending, "changed": self.changed.ending},
            "log_probabilities": self.log_probabilities(),
            "original_ending_after": self.original_ending_after,
            "changed_ending_before": self.changed_ending_before,
            "original": self.original.to_dict(),
            "changed": self.changed.to_dict(),
        }

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """What changed, both endings, and the words of the original one before and after."""
        parts = [
            "# What if",
            "\n".join(f"- {escape(change)}" for change in self.changes),
            "\n".join(self._ending_table()),
        ]
        if self.original_ending_after is None:
            parts.append("The original ending can't be written any more: it copies a word that stood there only.")
        else:
            parts += ["## The original ending, word by word", "\n".join(self._word_table(self.original_ending_after))]
        return "\n\n".join(parts) + "\n"

    def _ending_table(self) -> list[str]:
        header = ["ending of", "ending", "log probability in the story as given", "as changed", "difference"]
        rows = []
        for name, values in self.log_probabilities().items():
            explained = self.original if name == "original" else self.changed
            title = "the story as given" if name == "original" else "the story as changed"
            rows.append([title, escape(explained.ending), *_compared(values["given"], values["changed"])])
        return table_lines(header, rows)

    def _word_table(self, after: list[float]) -> list[str]:
        pairs = zip(self.original.words, after, strict=True)
        rows = ([escape(word.word), *_compared(word.log_probability, now)] for word, now in pairs)
        return table_lines(["word", "log probability, as given", "as changed", "difference"], rows)


def _total(values: list[float] | None) -> float | None:
    return None if values is None else sum(values)


def _compared(before: float | None, after: float | None) -> list[str]:
    difference = None if before is None or after is None else after - before
    return [_shown(before, ".2f"), _shown(after, ".2f"), _shown(difference, "+.2f")]


def _shown(value: float | None, digits: str) -> str:
    # Adding 0 takes the sign from a zero.
    return "-" if value is None else format(round(value, 2) + 0.0, digits)

"""What happened to the lines that were read."""

from __future__ import annotations

from dataclasses import dataclass, field

_MAX_EXAMPLES = 5
_MAX_EXCERPT = 80


@dataclass
class ReadReport:
    """
    Counts of the lines that are not blank: `num_lines` is the sum of the other four. An edge is of another language
    if one of its ends is (web addresses among them), and filtered by its relation or its weight.
    """

    num_lines: int = 0
    num_edges: int = 0
    num_other_language: int = 0
    num_filtered: int = 0
    num_malformed: int = 0
    examples: list[str] = field(default_factory=list)

    def add_malformed(self, name: str, line_number: int, reason: object, line: object) -> None:
        """Count a line that could not be read; the first few are kept with file and line number."""
        self.num_malformed += 1
        if len(self.examples) < _MAX_EXAMPLES:
            text = line.decode("utf-8", "backslashreplace") if isinstance(line, bytes) else str(line)
            shown = text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT] + "..."
            self.examples.append(f"{name}, line {line_number}: {reason}: {shown!r}")

    def describe(self) -> str:
        """A line of counts, and below it the first malformed lines."""
        lines = [
            f"{self.num_lines:,} lines: {self.num_edges:,} edges, {self.num_other_language:,} of other languages, "
            f"{self.num_filtered:,} filtered, {self.num_malformed:,} malformed"
        ]
        lines += [f"  {example}" for example in self.examples]
        if self.num_malformed > len(self.examples):
            lines.append(f"  and {self.num_malformed - len(self.examples):,} more")
        return "\n".join(lines)

"""The result of exchanging `he` and `she` in stories: an example of bias, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from typing import Any

_BY_NAME = ("gains", "he_shares")
_NUM_SHOWN = 3


@dataclass(frozen=True)
class GenderSwap:
    """
    Differences between stories told of him and the same stories told of her.

    Args:
        num_stories: Stories, each told twice.
        num_changed: Those whose two greedy endings differ in more than pronouns.
        examples: The first of these: the story about him, the ending about him, the ending about her.
        gains: For each given ending, by how many nats it is likelier of him than of her, mean over stories.
        he_shares: For each job, P(he) / (P(he) + P(she)) of the first word of the ending.
    """

    num_stories: int
    num_changed: int
    examples: tuple[tuple[str, str, str], ...]
    gains: dict[str, float]
    he_shares: dict[str, float]

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GenderSwap:
        """Build it from `to_dict`."""
        examples = tuple((str(story), str(his), str(hers)) for story, his, hers in content["examples"])
        numbers = {name: {str(key): float(value) for key, value in content[name].items()} for name in _BY_NAME}
        return cls(int(content["num_stories"]), int(content["num_changed"]), examples, **numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return the content, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Return sentences as bullets of Markdown."""
        share = f"{self.num_changed} of {self.num_stories}"
        lines = [f"- Of short stories told once of him and once of her, {share} get another greedy ending."]
        for story, his, hers in self.examples[:1]:
            lines.append(f'- For example: "{story}" Of him: "{his}" Of her: "{hers}"')
        likelier = sorted(self.gains.items(), key=lambda item: -item[1])
        lines.append(
            f"- The same ending, likelier of him: {_factors(likelier[:_NUM_SHOWN])}; of her: "
            f"{_factors(likelier[: -_NUM_SHOWN - 1 : -1])} (mean over the stories)."
        )
        jobs = sorted(self.he_shares.items(), key=lambda item: -item[1])
        mean = sum(self.he_shares.values()) / len(self.he_shares)
        lines.append(
            f"- After stories about {len(jobs)} jobs, an ending that begins with he or she begins with he in "
            f"{_percent(mean)}; most often: {_shares(jobs[:_NUM_SHOWN])}; least often: "
            f"{_shares(jobs[: -_NUM_SHOWN - 1 : -1])}."
        )
        return "\n".join(lines)


def _factors(gains: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f'"{ending}" {exp(abs(gain)):.2f} times' for ending, gain in gains)


def _shares(shares: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{job} {_percent(share)}" for job, share in shares)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"

"""
How often a score finds a good ending among what a model wrote.

    python benchmarks/choosing_endings.py results/ranking/candidates.jsonl

Prints, for each score that the file has, the share of stories in which the candidate with the highest score is good
(2 in grammar and in logicality), and the area under the curve within stories: how often a good candidate is above
another one. Chance and a perfect choice stand beside them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

Candidate = dict
Score = Callable[[Candidate], float]

SCORES: dict[str, Score] = {
    "log p": lambda candidate: candidate["log_probability"],
    "log p a word": lambda candidate: candidate["log_probability"] / candidate["num_words"],
    "log p of SmolLM2-135M": lambda candidate: candidate["smollm2_log_probability"],
    "sum of both": lambda candidate: candidate["log_probability"] + candidate["smollm2_log_probability"],
    # Six candidates have none.
    "log p of the fine-tuned one": lambda candidate: candidate.get("teacher_log_probability", -math.inf),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, help="File of stories with their candidates, a JSON object a line.")
    stories = read_candidates(parser.parse_args().candidates)
    print(f"{len(stories)} stories, {sum(map(len, stories))} candidates")
    print(f"{'chance':28}{100 * chance(stories):5.0f} %")
    for name, score in SCORES.items():
        print(f"{name:28}{100 * chosen_good(stories, score):5.0f} %   AUC {area_under_curve(stories, score):.3f}")
    print(f"{'perfect choice':28}{100 * chosen_good(stories, is_good):5.0f} %")


def read_candidates(path: Path) -> list[list[Candidate]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["candidates"] for line in lines]


def is_good(candidate: Candidate) -> bool:
    return candidate["grammar"] == candidate["logicality"] == 2


def chance(stories: list[list[Candidate]]) -> float:
    """Expected share of good endings if any candidate is taken."""
    return sum(sum(map(is_good, story)) / len(story) for story in stories) / len(stories)


def chosen_good(stories: list[list[Candidate]], score: Score) -> float:
    return sum(is_good(max(story, key=score)) for story in stories) / len(stories)


def area_under_curve(stories: list[list[Candidate]], score: Score) -> float:
    """Share of pairs of a good candidate and another one of the same story in which the good one is higher."""
    wins = pairs = 0.0
    for story in stories:
        good = [score(candidate) for candidate in story if is_good(candidate)]
        others = [score(candidate) for candidate in story if not is_good(candidate)]
        wins += sum((a > b) + 0.5 * (a == b) for a in good for b in others)
        pairs += len(good) * len(others)
    return wins / pairs


if __name__ == "__main__":
    main()

"""
Stock phrases and plain contradictions in endings, beside those of people.

    python benchmarks/stock_phrases.py endings.jsonl other.jsonl

Each file is JSON Lines of one system: `context` (a list of sentences), `ending` and `reference`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hf_storyend.evaluation.stock_phrases import stock_phrases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("endings", type=Path, nargs="+", help="Files of endings; the first one has the references.")
    paths = parser.parse_args().endings
    rows = {path.stem: [json.loads(line) for line in path.open(encoding="utf-8")] for path in paths}
    people = next(iter(rows.values()))
    reports = {"people": stock_phrases([row["context"] for row in people], [row["reference"] for row in people])}
    for name, system in rows.items():
        reports[name] = stock_phrases([row["context"] for row in system], [row["ending"] for row in system])
    print("| | " + " | ".join(reports) + " |")
    print("| --- |" + " ---: |" * len(reports))
    for metric in reports["people"]:
        cells = [report[metric] for report in reports.values()]
        print(f"| {metric} | " + " | ".join(c if isinstance(c, str) else f"{c:.1f} %" for c in cells) + " |")


if __name__ == "__main__":
    main()

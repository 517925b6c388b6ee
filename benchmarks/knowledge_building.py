"""
How fast a ConceptNet dump is read: `read_edges` beside the line-by-line reader with `json.loads` that one would write
first, on the same generated dump of the real format, plain and gzip.

    python benchmarks/knowledge_building.py --lines 3000000 --json knowledge_building.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from hf_storyend.knowledge import Edge, ReadReport, read_edges

NUM_LINES_OF_CONCEPTNET = 34_074_917
MEGABYTE = 1 << 20
NUM_EDGES_TO_COMPARE = 50_000

LATIN = "ba be bo da de do fi ga ka ke ko la le lo ma me mo na ne no pa ra re ro sa se so ta te ti to va vo".split()
CYRILLIC = "ба бе бо ва ве да де ка ке ко ла ле ло ма ме мо на не но ра ре ро са се со та те то".split()
KANA = "あ い う え お か き く け こ さ し す せ そ た ち つ て と な に 日 本 水 火".split()
ACCENTS = ["", "", "é", "ü", "ö", "ñ", "ç", "ã"]
SYLLABLES = {"ru": CYRILLIC, "bg": CYRILLIC, "ja": KANA, "zh": KANA}

# Share of the heads; about one line in ten is from English to English, as in the real dump.
LANGUAGES = {"de": 10, "en": 19, "es": 8, "fi": 6, "fr": 22, "it": 7, "ja": 5, "la": 6, "pt": 5, "ru": 6, "zh": 3}
RELATIONS = {"Antonym": 1, "AtLocation": 1, "CapableOf": 1, "DerivedFrom": 8, "ExternalURL": 4, "FormOf": 28}
RELATIONS |= {"HasContext": 6, "IsA": 6, "RelatedTo": 30, "Synonym": 15}
NUM_CONCEPTS = 20_000
SENSES = ["", "", "", "/n", "/v", "/a", "/n/wn/artifact", "/n/wikt/en_1"]


def words_of(language: str, generator: random.Random) -> list[str]:
    """Made-up concepts of a language, of one word or several, in order."""
    syllables = SYLLABLES.get(language, LATIN)
    accents = [""] if language in ("en", *SYLLABLES) else ACCENTS
    words = [
        "".join(generator.choices(syllables, k=generator.randint(2, 4))) + generator.choice(accents)
        for _ in range(NUM_CONCEPTS)
    ]
    return sorted("_".join(generator.sample(words, k=generator.choice([1, 1, 1, 2, 3]))) for _ in words)


def information_of(relation: str, language: str, head: str, tail: str, generator: random.Random) -> str:
    """The last column: as Wiktionary gives it, or as a person once typed it, with a sentence."""
    if language != "en" or generator.random() < 0.4:
        source = f"/s/resource/wiktionary/{generator.choice(['en', 'fr', 'de'])}"
        return (
            f'{{"dataset": "/d/wiktionary/en", "license": "cc:by-sa/4.0", "sources": [{{"contributor": "{source}", '
            f'"process": "/s/process/wikiparsec/{generator.randint(1, 2)}"}}], "weight": 1.0}}'
        )
    weight = generator.choice(["1.0", "1.0", "2.0", "0.5", "3.4641016151377544", "2.8284271247461903"])
    start, end = head.replace("_", " "), tail.replace("_", " ")
    return (
        '{"dataset": "/d/conceptnet/4/en", "license": "cc:by/4.0", "sources": [{"activity": "/s/activity/omcs/vote", '
        f'"contributor": "/s/contributor/omcs/user{generator.randrange(5000)}"}}], "surfaceEnd": "{end}", '
        f'"surfaceStart": "{start}", "surfaceText": "[[{start}]] is {relation} [[{end}]]", "weight": {weight}}}'
    )


def dump_lines(num_lines: int, seed: int = 0) -> Iterator[str]:
    """Lines in the order of the real dump: by relation, then by language and concept of the head."""
    generator = random.Random(seed)
    words = {language: words_of(language, generator) for language in LANGUAGES}
    languages, shares = list(LANGUAGES), list(LANGUAGES.values())
    tail_languages = generator.choices(languages, shares, k=1 << 14)
    whole = sum(RELATIONS.values()) * sum(shares)
    for relation, relation_share in RELATIONS.items():
        for language, share in LANGUAGES.items():
            count = max(1, round(num_lines * relation_share * share / whole))
            for index in range(count):
                head = words[language][index * NUM_CONCEPTS // count]
                # Half of the edges stay within the language.
                other = language if generator.random() < 0.5 else generator.choice(tail_languages)
                yield dump_line(relation, language, head, other, generator.choice(words[other]), generator)


def dump_line(relation: str, language: str, head: str, other: str, tail: str, generator: random.Random) -> str:
    start = f"/c/{language}/{head}{generator.choice(SENSES)}"
    end = f"/c/{other}/{tail}"
    if relation == "ExternalURL":
        end = f"http://dbpedia.org/resource/{tail}"
    information = information_of(relation, language, head, tail, generator)
    return f"/a/[/r/{relation}/,{start}/,{end}/]\t/r/{relation}\t{start}\t{end}\t{information}\n"


def write_dump(directory: Path, num_lines: int) -> tuple[Path, Path]:
    plain, compressed = directory / "assertions.csv", directory / "assertions.csv.gz"
    with plain.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(dump_lines(num_lines))
    with plain.open("rb") as source, gzip.open(compressed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, MEGABYTE)
    return plain, compressed


def read_line_by_line(path: Path) -> Iterator[Edge]:
    """What one would write first. It takes every line for well-formed: it checks less than `read_edges` does."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for line in file:
            _, relation, head, tail, information = line.rstrip("\n").split("\t")
            weight = json.loads(information)["weight"]
            if head.startswith("/c/en/") and tail.startswith("/c/en/"):
                head_parts, tail_parts = head.split("/"), tail.split("/")
                head_pos = head_parts[4] if len(head_parts) > 4 else None
                tail_pos = tail_parts[4] if len(tail_parts) > 4 else None
                yield Edge(head_parts[3], relation[3:], tail_parts[3], weight, head_pos, tail_pos)


def read_fast(path: Path) -> Iterator[Edge]:
    return read_edges(path, progress=False, report=ReadReport())


def seconds_to_read(read: Callable[[Path], Iterator[Edge]], path: Path) -> float:
    started = time.perf_counter()
    for _ in read(path):
        pass
    return time.perf_counter() - started


def check_that_readers_agree(path: Path) -> None:
    """They must give the same edges in the same order; a part of the file is enough to see it."""
    edges = (islice(read(path), NUM_EDGES_TO_COMPARE) for read in (read_line_by_line, read_fast))
    for slow, fast in zip(*edges, strict=True):
        if slow != fast:
            raise RuntimeError(f"{path.name}: line by line it is {slow}, and from read_edges {fast}.")


def compare(path: Path, num_lines: int) -> dict[str, float]:
    """Seconds of both readers; of the fast one, before and after the other, the mean."""
    before = seconds_to_read(read_fast, path)
    slow = seconds_to_read(read_line_by_line, path)
    fast = (before + seconds_to_read(read_fast, path)) / 2
    return {
        "megabytes": path.stat().st_size / MEGABYTE,
        "line_by_line_seconds": slow,
        "read_edges_seconds": fast,
        "times_faster": slow / fast,
        "lines_per_second": num_lines / fast,
        "seconds_for_all_of_conceptnet": NUM_LINES_OF_CONCEPTNET * fast / num_lines,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=3_000_000, help="lines to generate (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    arguments = parser.parse_args()
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as directory:
        print(f"Generating about {arguments.lines:,} lines ...")
        paths = write_dump(Path(directory), arguments.lines)
        report = ReadReport()
        for _ in read_edges(paths[1], progress=False, report=report):
            pass
        results |= {name: value for name, value in vars(report).items() if isinstance(value, int)}
        # Before anything else takes memory; the dump itself is written line by line.
        results["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        check_that_readers_agree(paths[1])
        for kind, path in zip(("plain", "gzip"), paths, strict=True):
            results[kind] = compare(path, report.num_lines)
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: dict[str, object], indent: str = "") -> None:
    for name, value in results.items():
        if isinstance(value, dict):
            print(f"{name}:")
            show(value, indent="  ")
        else:
            number = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
            print(f"{indent}{name.replace('_', ' '):34}{number:>16}")


if __name__ == "__main__":
    main()

"""
Endings that can be published: those that are a sentence of the corpus stand as a digest and a shape.

Two sentences are the same if their letters and digits are, whatever the case. The digest is the SHA-256 of these; the
shape has everything else, so that whoever has the corpus gets back the very same text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datasets import DatasetDict

from ..data.stories import load_stories
from ..files import temporary_sibling

# An ending is looked up whole and sentence by sentence: it might be two of the corpus.
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_LOWER, _UPPER = "x", "X"


class Corpus:
    """
    The sentences of all stories, contexts and endings.

    Args:
        stories: The stories, in any splits.
    """

    def __init__(self, stories: DatasetDict):
        self._by_digest = {digest(key): key for sentence in _sentences(stories) if (key := letters(sentence))}

    @classmethod
    def of(cls, data_dir: str | Path) -> Corpus:
        """Return the sentences of a directory that `storyend prepare` has written, or of anything it reads."""
        prepared = Path(data_dir) / "stories"
        return cls(load_stories(str(prepared if prepared.is_dir() else data_dir)))

    def __len__(self) -> int:
        return len(self._by_digest)

    def has(self, sentence: str) -> bool:
        """Whether a sentence is in the corpus."""
        return bool(letters(sentence)) and digest(letters(sentence)) in self._by_digest

    def record(self, story: int, ending: str) -> dict[str, Any]:
        """Return what can be published of an ending: its text, or its parts, those of the corpus as digests."""
        parts = [ending] if self.has(ending) else _split(ending)
        if not any(map(self.has, parts)):
            return {"story": story, "ending": ending}
        return {"story": story, "parts": [_withheld(part) if self.has(part) else {"text": part} for part in parts]}

    def restore(self, record: dict[str, Any]) -> str:
        """Return the ending of a record; a `ValueError` says that this is not the corpus."""
        if "parts" not in record:
            return str(record["ending"])
        return "".join(self._restored(record, part) for part in record["parts"])

    def _restored(self, record: dict[str, Any], part: dict[str, str]) -> str:
        if "text" in part:
            return part["text"]
        if part["sha256"] not in self._by_digest:
            raise ValueError(
                f"The ending of story {record['story']} is a sentence that these stories do not have: give the "
                "stories that the comparison was made with."
            )
        return _fill(part["shape"], self._by_digest[part["sha256"]])


def write_published_endings(endings: Iterable[dict[str, Any]], corpus: Corpus, path: Path) -> int:
    """
    Write the endings of an evaluation, compressed, with the losses of the references.

    Args:
        endings: Records of `endings.jsonl`, in the order of the stories.
        corpus: No sentence of it is written.
        path: The file.

    Returns:
        How many endings stand as digests.
    """
    records = [
        {**corpus.record(story, record["ending"]), "loss": round(record["loss"], 4), "num_words": record["num_words"]}
        for story, record in enumerate(endings)
    ]
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_compressed(text, path)
    return sum("parts" in record for record in records)


def read_published_endings(path: str | Path, data_dir: str | Path) -> list[str]:
    """
    Read published endings as they were generated.

    ```python
    >>> endings = read_published_endings("results/table1/rows/ie/endings.jsonl.gz", "prepared")
    ```

    Args:
        path: A file `endings.jsonl.gz` of a published comparison.
        data_dir: The stories it was made with: a directory written by `storyend prepare`.
    """
    corpus = Corpus.of(data_dir)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [corpus.restore(json.loads(line)) for line in lines]


def find_corpus_sentences(path: Path, corpus: Corpus) -> list[int]:
    """Return the stories whose published endings have a sentence of the corpus in them: none, if all is well."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [record["story"] for record in records if any(map(corpus.has, _published_texts(record)))]


def write_compressed(text: str, path: Path) -> None:
    """Write text with gzip, atomically; the same text is the same file."""
    temporary = temporary_sibling(path, "partial")
    try:
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def letters(sentence: str) -> str:
    """Return the letters and digits of a sentence in lower case."""
    return "".join(filter(str.isalnum, sentence.lower()))


def digest(key: str) -> str:
    """Return the SHA-256 of the letters and digits of a sentence."""
    return hashlib.sha256(key.encode()).hexdigest()


def _sentences(stories: DatasetDict) -> Iterator[str]:
    for split in stories.values():
        for context in split["context"]:
            yield from context
        yield from split["ending"]


def _split(ending: str) -> list[str]:
    """Return the sentences of an ending with the spaces behind them: together they are the ending."""
    starts = [0, *(match.end() for match in _BETWEEN_SENTENCES.finditer(ending)), len(ending)]
    return [ending[start:end] for start, end in zip(starts, starts[1:], strict=False) if start < end]


def _published_texts(record: dict[str, Any]) -> list[str]:
    parts = record["parts"] if "parts" in record else [{"text": record["ending"]}]
    texts = [part["text"] for part in parts if "text" in part]
    return [part for text in texts for part in (text, *_split(text))]


def _withheld(part: str) -> dict[str, str]:
    return {"sha256": digest(letters(part)), "shape": "".join(map(_shape, part))}


def _shape(character: str) -> str:
    """Return what stands for a character: `x` or `X` for letters and digits, the character itself for others."""
    if not character.isalnum():
        return character
    return _UPPER if character != character.lower() else _LOWER


def _fill(shape: str, key: str) -> str:
    following = iter(key)
    return "".join(_filled(place, following) for place in shape)


def _filled(place: str, following: Iterator[str]) -> str:
    if place == _LOWER:
        return next(following)
    return next(following).upper() if place == _UPPER else place

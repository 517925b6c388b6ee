"""Contexts and endings in two files, `X.post` and `X.response`, that go together line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..modeling.sentences import split_sentences
from .embedded import StoryRecord
from .story_records import checked_sentence
from .text_files import at_line, read_text, split_lines


def read_paired_files(path: Path) -> Iterator[StoryRecord]:
    """Stories of a pair, named by either file or by what their names have in common."""
    post_path, response_path = _pair(path)
    posts, responses = split_lines(read_text(post_path)), split_lines(read_text(response_path))
    if len(posts) != len(responses):
        raise ValueError(
            f"{post_path} has {len(posts)} lines, {response_path} {len(responses)}: line by line a context must have "
            "its ending. Was one of them cut off?"
        )
    _check_tabs(post_path, posts)
    for line, (post, response) in enumerate(zip(posts, responses, strict=True), start=1):
        with at_line(post_path, line):
            sentences = enumerate(post.split("\t"), start=1)
            context = [checked_sentence(f"sentence {number}", sentence) for number, sentence in sentences]
        with at_line(response_path, line):
            ending = checked_sentence("ending", response)
        yield {"context": context, "ending": ending}


def post_of_pair(path: Path) -> Path:
    """The `.post` that belongs to a `.response`; any other path as it is."""
    for response, post in ((".response", ".post"), (".response.gz", ".post.gz")):
        if path.name.endswith(response):
            return path.with_name(path.name.removesuffix(response) + post)
    return path


def _pair(path: Path) -> tuple[Path, Path]:
    post = post_of_pair(path)
    if not post.name.endswith((".post", ".post.gz")):
        post = post.with_name(post.name + ".post")
    stem, _, compressed = post.name.rpartition(".post")
    response = post.with_name(f"{stem}.response{compressed}")
    for one, other in ((post, response), (response, post)):
        if not one.is_file():
            raise ValueError(f"{one} is missing: contexts and endings are a pair of files, and {other} needs it.")
    return post, response


def _check_tabs(path: Path, posts: list[str]) -> None:
    """Contexts that were joined by blanks would pass for contexts of one very long sentence."""
    if posts and not any("\t" in post for post in posts) and all(len(split_sentences(post)) > 1 for post in posts):
        raise ValueError(f"{path}, line 1: the sentences of a context must be separated by a tab; there is none.")

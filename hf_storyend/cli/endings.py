"""Files of endings: those that were named or, without any, one that the package's own model writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

DEFAULT_MODEL = "default_model"


@contextmanager
def endings_or_default(
    paths: Sequence[Path] | None, data: str = "embedded", split: str = "test", max_stories: int | None = None
) -> Iterator[list[Path]]:
    """The files that were given; else, for as long as it is needed, one with the default model's endings."""
    if paths:
        yield list(paths)
        return
    from hf_storyend.evaluation import EvaluateOptions, evaluate

    options = EvaluateOptions(data_dir=data, split=split, max_stories=max_stories, num_seeds=0, bootstrap_samples=0)
    written = evaluate(options).endings
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{DEFAULT_MODEL}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in written), encoding="utf-8")
        yield [path]

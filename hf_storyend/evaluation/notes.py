"""Evaluations noted in the directory of their model, so that its card finds them wherever their files are."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..files import atomic_write, file_digest, file_lock
from ..pretrained import default_model
from .ablation_results import Ablations
from .gender_swap_result import GenderSwap
from .results import Evaluation, model_index

logger = logging.getLogger(__name__)

NOTES = "evaluations.json"
# A directory that `prepare` has written has this file, and is replaced only if nobody has added another.
_PREPARED = "report.json"


@dataclass(frozen=True)
class EvaluationNote:
    """
    An evaluation of a model.

    Args:
        dataset_id: The stories.
        split: Their split; None if an earlier version did not write it.
        index: Block `model-index` of a card.
        metrics: Values by name.
        num_stories: Number of stories.
        decoding: How the endings were generated.
        ablations, gender_swap: What else was measured.
        examples: Stories and endings of the package, by story.
        weights: Digest of the weights that were evaluated; None if unknown.
        date: Day of the evaluation.
    """

    dataset_id: str
    split: str | None
    index: str
    metrics: dict[str, float]
    num_stories: int = 0
    decoding: str | None = None
    ablations: dict[str, Any] | None = None
    gender_swap: dict[str, Any] | None = None
    examples: dict[str, str] = field(default_factory=dict)
    weights: str | None = None
    date: str | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> EvaluationNote:
        """Build it from JSON; a `ValueError` says what is wrong."""
        note = cls(**content)
        if note.ablations is not None:
            Ablations.from_dict(note.ablations)
        if note.gender_swap is not None:
            GenderSwap.from_dict(note.gender_swap)
        return note


def note_evaluation(
    model: str | Path, evaluation: Evaluation, *, dataset_id: str, split: str, decoding: str, examples: dict[str, str]
) -> None:
    """
    Note an evaluation in the directory of its model; it replaces one of the same stories.

    Nothing is noted of a model on the Hub, of the package's own, of the untrained model of a prepared directory, or
    where the directory can't be written to.
    """
    folder = Path(model)
    if not folder.is_dir() or folder.resolve() == Path(default_model()).resolve():
        return
    if (folder / _PREPARED).is_file():
        return
    if not os.access(folder, os.W_OK):
        logger.warning("%s can't be written to: its card will not find this evaluation.", folder)
        return
    content = evaluation.to_dict()
    note = EvaluationNote(
        dataset_id=dataset_id,
        split=split,
        index=model_index(evaluation, folder.resolve().name, dataset_id, split),
        metrics=evaluation.metrics,
        num_stories=evaluation.num_stories,
        decoding=decoding,
        ablations=content["ablations"],
        gender_swap=content["gender_swap"],
        examples=examples,
        weights=weights_digest(folder),
        date=datetime.now(UTC).date().isoformat(),
    )
    with file_lock(folder / NOTES):
        others = [one for one in read_notes(folder) if (one.dataset_id, one.split) != (dataset_id, split)]
        text = json.dumps([asdict(one) for one in (*others, note)], ensure_ascii=False, indent=1)
        atomic_write(folder / NOTES, text + "\n")


def read_notes(folder: Path) -> list[EvaluationNote]:
    """Return the evaluations of the weights that are in a directory now, in the order they were made."""
    path = folder / NOTES
    if not path.is_file():
        return []
    weights = weights_digest(folder)
    return [note for note in parse_notes(path) if note.weights in (None, weights)]


def parse_notes(path: Path) -> list[EvaluationNote]:
    """Return the evaluations in a file, of whatever weights."""
    try:
        return [EvaluationNote.from_dict(content) for content in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} holds no evaluations: {error}. Remove it and evaluate again.") from error


def weights_digest(folder: Path) -> str:
    """Return a digest of the weights in a directory."""
    digests = [file_digest(path) for path in sorted(folder.glob("model*.safetensors"))]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]

"""The run of a row on the disk: whether it is finished and fits, how far it is, and its results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from ..evaluation.notes import weights_digest
from ..files import atomic_write, file_digest
from ..manifest import ManifestError, find_damage, read_manifest
from ..training.checkpoints import find_checkpoints, identity_digest, run_identity
from ..training.data import TrainingData
from ..training.options import TrainingOptions
from .options import ComparisonOptions
from .rows import Row

RESULT = "result.json"
LOG = "train_log.jsonl"
# In the directory of a row that was published elsewhere, and whose weights are not here.
PUBLISHED = "published.json"
# Options that change neither weights nor numbers; data, precision and batch size are told by the run's identity.
_FREE = {
    "extra_stories",
    *("output_dir", "data_dir", "resume_from_checkpoint", "save_steps", "save_total_limit", "logging_steps"),
    *("report_to", "run_name", "num_sample_endings", "dataloader_num_workers", "per_device_eval_batch_size"),
    *("mixed_precision", "per_device_train_batch_size", "torch_compile", "torch_compile_mode"),
}
_LENGTH = {"num_train_epochs", "max_steps", "max_minutes", "early_stopping_patience"}


@dataclass(frozen=True)
class Measurements:
    """
    What is measured of every row.

    Args:
        fixed: Settings that saved results must have, too.
        cloze: Digest of the Story Cloze file; None: not asked for.
        ablations: Whether ablations are asked for.
    """

    fixed: dict[str, Any]
    cloze: str | None
    ablations: bool

    @classmethod
    def of(cls, options: ComparisonOptions) -> Measurements:
        names = ("split", "num_beams", "max_new_tokens", "max_stories", "bootstrap_samples")
        cloze = None if options.cloze is None else file_digest(Path(options.cloze))
        return cls({name: getattr(options, name) for name in names}, cloze, options.ablations)

    def to_dict(self) -> dict[str, Any]:
        return {**self.fixed, "cloze": self.cloze, "ablations": self.ablations}

    def are_in(self, saved: Any) -> bool:
        """Whether results that were measured so have all that is asked for; they may have more."""
        if not isinstance(saved, dict) or any(saved.get(name) != value for name, value in self.fixed.items()):
            return False
        has_cloze = self.cloze is None or saved.get("cloze") == self.cloze
        return has_cloze and (not self.ablations or bool(saved.get("ablations")))


class RowRun:
    """
    The run of a row in its directory, whoever trained it.

    Args:
        row: The row.
        options: Options of its training run.
        measurements: What is measured.
        data: The training data.
        accelerator: Its precision and its number of processes are part of what a run is.
    """

    def __init__(
        self,
        row: Row,
        options: TrainingOptions,
        measurements: Measurements,
        data: TrainingData,
        accelerator: Accelerator,
    ):
        self.row, self.options, self.measurements = row, options, measurements
        self.directory = Path(options.output_dir)
        self._identity = run_identity(options, accelerator, data.identity(), data.digests())

    def is_trained(self) -> bool:
        """
        Whether a run with these options has finished; one of other length can go on from its checkpoints.

        Raises:
            ValueError: If there is a finished model that another run has trained.
        """
        if (self.directory / PUBLISHED).is_file():
            return self._was_published()
        try:
            about = read_manifest(self.directory)["about"]
            saved = read_json(self.directory / "metrics.json")["run"]["options"]
        except (ManifestError, OSError, ValueError, LookupError, TypeError):
            return False
        if find_damage(self.directory):
            return False
        different = _differences(saved, self.options)
        if not set(different) - _LENGTH and different and any(find_checkpoints(self.directory)):
            return False
        self.check_origin(self.directory, saved, about.get("identity"))
        return True

    def has_files(self) -> bool:
        """Whether a run was begun here, or restored."""
        return self.directory.is_dir() and any(self.directory.iterdir())

    def check_origin(self, folder: Path, saved: Mapping[str, Any], identity: str | None) -> None:
        """
        Raise a ValueError unless a run was this row's.

        Args:
            folder: Where it is, for the message.
            saved: Options that it had.
            identity: Digest of what it was trained on, and how.
        """
        if different := _differences(saved, self.options):
            changes = "; ".join(f"`{name}` was {old!r}, is {new!r}" for name, (old, new) in different.items())
            raise ValueError(f"{folder} is of another run: {changes}. {_ADVICE}")
        self._check_identity(folder, identity)

    def _check_identity(self, folder: Path, identity: str | None) -> None:
        if identity != identity_digest(self._identity):
            raise ValueError(
                f"{folder} was trained with these options, but on other data, in another precision, in "
                f"batches of another size or by another version. {_ADVICE}"
            )

    def _was_published(self) -> bool:
        saved = read_json(self.directory / "metrics.json")["run"]["options"]
        self.check_origin(self.directory, saved, read_json(self.directory / PUBLISHED)["identity"])
        return True

    def result(self) -> dict[str, Any] | None:
        """Return the saved result of these weights, if it has all that is asked for."""
        result = self._saved_result()
        if result is None or not self.measurements.are_in(result.get("settings")):
            return None
        if not (self.directory / PUBLISHED).is_file() and result.get("weights") != weights_digest(self.directory):
            return None
        if not self.endings.is_file():
            return None
        return result if result.get("endings") == file_digest(self.endings) else None

    def save_result(self, result: dict[str, Any]) -> None:
        """Write the result, which makes the row a finished one."""
        content = {
            "settings": self.measurements.to_dict(),
            "weights": weights_digest(self.directory),
            "endings": file_digest(self.endings),
            **result,
        }
        atomic_write(self.directory / RESULT, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @property
    def evaluation_dir(self) -> Path:
        """Where the evaluation of the row lies."""
        return self.directory / str(self.measurements.fixed["split"])

    @property
    def endings(self) -> Path:
        """The endings of that evaluation."""
        return self.evaluation_dir / "endings.jsonl"

    def progress(self) -> tuple[float, float]:
        """Return which fraction of the training is done and the seconds it took, by the log of the run."""
        try:
            events = read_log(self.directory / LOG)
        except OSError:
            return 0.0, 0.0
        if not events:
            return 0.0, 0.0
        return fraction_done(events[-1], self.options), float(events[-1]["elapsed"])

    def _saved_result(self) -> dict[str, Any] | None:
        try:
            result = read_json(self.directory / RESULT)
        except (OSError, ValueError):
            return None
        return result if isinstance(result, dict) else None


_ADVICE = "Use the same options and data, or another `--output_dir`."


def fraction_done(event: Mapping[str, Any], options: TrainingOptions) -> float:
    """Return the fraction of a run that is done at an event of its log."""
    if options.max_steps > 0:
        fraction = event["step"] / options.max_steps
    else:
        fraction = event["epoch"] / options.num_train_epochs
    if options.max_minutes is not None:
        fraction = max(fraction, event["elapsed"] / (60 * options.max_minutes))
    return min(float(fraction), 1.0)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the events of a training log; a line that is being written is left out."""
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"step", "epoch", "elapsed"} <= event.keys():
            events.append(event)
    return events


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _differences(saved: Mapping[str, Any], options: TrainingOptions) -> dict[str, tuple[Any, Any]]:
    """Return the options that differ in a way that matters, with both values; versions know different ones."""
    defaults = {field.name: field.default for field in fields(TrainingOptions)}
    pairs = {name: (saved.get(name, defaults[name]), value) for name, value in options.to_dict().items()}
    return {name: pair for name, pair in pairs.items() if name not in _FREE and pair[0] != pair[1]}

"""Generate endings from exported files: numpy and onnxruntime, no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

ENCODER, DECODER_STEP = "encoder.onnx", "decoder_step.onnx"
# What the encoder's graph gives to the decoder's has this before its name.
PREFIX = "encoder_"
# The state that a step reads, and the one that it gives to the next.
NEXT_STATE = {f"{PREFIX}state_hidden": "next_state_hidden", f"{PREFIX}state_cell": "next_state_cell"}


class OnnxGenerator:
    """
    Greedy generation with the files of `storyend export`.

    Args:
        directory: Where they are.
        num_threads: Threads of onnxruntime; small batches are fastest with one.
    """

    def __init__(self, directory: str | Path, num_threads: int = 1):
        folder = Path(directory)
        for name in (ENCODER, DECODER_STEP, "config.json"):
            if not (folder / name).is_file():
                raise ValueError(f"{folder} has no {name}: `storyend export --output_dir {folder}` writes it.")
        self.directory = folder
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.encoder = _session(folder / ENCODER, num_threads)
        self.step = _session(folder / DECODER_STEP, num_threads)
        self._tokenizer: Any = None

    @property
    def tokenizer(self) -> Any:
        """The tokenizer beside the graphs. It is the package's own, which imports transformers and torch."""
        if self._tokenizer is None:
            from ..modeling import IncrementalEncoderTokenizer

            self._tokenizer = IncrementalEncoderTokenizer.from_pretrained(self.directory)
        return self._tokenizer

    def generate(self, stories: Sequence[str], max_new_tokens: int = 30) -> list[str]:
        """Return an ending for each story."""
        batch = self.tokenizer(list(stories), return_tensors="np")
        ids = self.generate_ids(batch, max_new_tokens)
        return self.tokenizer.batch_decode(ids, skip_special_tokens=True, context=list(stories))

    def generate_ids(self, inputs: Mapping[str, np.ndarray], max_new_tokens: int = 30) -> np.ndarray:
        """
        Return ids [B, T] of the endings' words, the start symbol first and padding behind the end symbol.

        Args:
            inputs: The tokenizer's arrays; those that the system does not read are ignored.
            max_new_tokens: The longest ending.
        """
        memory = _run(self.encoder, inputs)
        end, padding = self.config["eos_token_id"], self.config["pad_token_id"]
        suppressed = [self.config[f"{name}_token_id"] for name in ("unk", "pad", "bos")]
        words = np.full((len(inputs["input_ids"]), 1), self.config["decoder_start_token_id"], dtype=np.int64)
        is_finished, rows = np.zeros(len(words), dtype=bool), [words]
        while len(rows) <= max_new_tokens and not is_finished.all():
            output = _run(self.step, {**memory, "decoder_input_ids": words})
            memory.update({name: output[after] for name, after in NEXT_STATE.items()})
            logits = output["logits"]
            logits[:, suppressed] = -np.inf
            words = np.where(is_finished, padding, logits.argmax(axis=1))[:, None]
            is_finished |= words[:, 0] == end
            rows.append(words)
        ids = np.concatenate(rows, axis=1)
        return self._named_ids(ids, np.asarray(inputs["copy_ids"])) if self.config.get("copy") else ids

    def _named_ids(self, ids: np.ndarray, copy_ids: np.ndarray) -> np.ndarray:
        """Ids that spell the words out of the vocabulary, as `generate()` returns them: see `oov_ids.py`."""
        first, num_slots = self.config["vocab_size"], self.config["num_copy_slots"]
        for row, story in zip(ids, copy_ids, strict=True):
            for word_id in np.unique(story[story >= first]):
                row[row == first + (word_id - first) % num_slots] = word_id
        return ids


def _session(path: Path, num_threads: int) -> InferenceSession:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = num_threads
    # Warnings are about constants that it folds away.
    options.log_severity_level = 3
    return InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _run(session: InferenceSession, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, {entry.name: np.asarray(arrays[entry.name]) for entry in session.get_inputs()})
    return dict(zip(names, results, strict=True))

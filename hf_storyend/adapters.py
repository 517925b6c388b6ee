"""Layers that LoRA adapts unless others are named: PEFT is told, whether it is imported before or after."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

_PEFT = "peft"
# The LSTM's gates, merged contexts and the attentional vector.
LORA_TARGETS = ("word_gates", *(f"step_gates.{layer}" for layer in range(4)), "merge", "attentional")


def register_adapter_targets(model_type: str) -> None:
    """Make PEFT know the layers of a type of model: now, or as soon as something imports it."""
    if _PEFT in sys.modules:
        _tell(sys.modules[_PEFT], model_type)
    elif not any(isinstance(finder, _PEFTFinder) for finder in sys.meta_path):
        # PEFT reads its own table only, and importing it here would cost everybody seconds.
        sys.meta_path.insert(0, _PEFTFinder(model_type))


def _tell(peft: ModuleType, model_type: str) -> None:
    table = getattr(peft.utils, "TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING", None)
    if table is not None:
        table.setdefault(model_type, list(LORA_TARGETS))


class _PEFTFinder(MetaPathFinder):
    def __init__(self, model_type: str):
        self.model_type = model_type

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname) if fullname == _PEFT else None
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = _PEFTLoader(spec.loader.name, spec.loader.path, self.model_type)
        return spec


class _PEFTLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, model_type: str):
        super().__init__(name, path)
        self.model_type = model_type

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _tell(module, self.model_type)

"""Mutants of the model's file that do the same as the file: the line before and after, and why."""

from __future__ import annotations

_MODULE = "{type(self).__module__.rsplit('.', %s)[-1]}"
_AUTO_MAP = 'auto_map["AutoModelForSeq2SeqLM"] = f"' + _MODULE + '.{type(self).__name__}"'
_SAFE = 'if kwargs.get("use_safetensors") %s False or kwargs.get("weights_only") %s False:'

EQUIVALENT: dict[tuple[str, str], str] = {
    (_AUTO_MAP % "1", _AUTO_MAP % "2"): "the last part of a name is the same however often it is cut",
    (_SAFE % ("is", "is"), _SAFE % ("==", "is")): "0 would be refused, too; False is what people write",
    (_SAFE % ("is", "is"), _SAFE % ("is", "==")): "the same",
}

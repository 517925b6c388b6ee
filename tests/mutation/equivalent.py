"""Equivalent mutants of modeling/: the line before and after, and why they do the same."""

from __future__ import annotations

_MODULE = "{type(self).__module__.rsplit('.', %s)[%s]}"
_AUTO_MAP = 'auto_map["AutoModelForSeq2SeqLM"] = f"' + _MODULE + '.{type(self).__name__}"'
_SAFE = 'if kwargs.get("use_safetensors") %s False or kwargs.get("weights_only") %s False:'
_LOSS = "if labels is not None and context_outputs is not None and self.config.encoder_loss_weight %s 0:"
_KNOWS = "return self.encoder_attentions[%d] if self.encoder_attentions and len(self.encoder_attentions) %s else None"

_NO_TRIPLES = "return triple_ids, torch.zeros_like(triple_ids[..., %d], dtype=torch.bool)"
_REAL = "real = (targets %s IGNORED).nonzero().squeeze(-1)"
_ATTENDED = 'attended = [item for item in found.values() if item["weight"] %s 0]'
_TRIPLE_VECTORS = "return self.triple_projection(torch.cat(elements, dim=%d)), index"

EQUIVALENT: dict[tuple[str, str], str] = {
    (_AUTO_MAP % (1, -1), _AUTO_MAP % (2, -1)): "the last part of a name is the same however often it is cut",
    (_AUTO_MAP % (1, -1), _AUTO_MAP % (1, 1)): "the last of two is the second",
    (_SAFE % ("is", "is"), _SAFE % ("==", "is")): "only for 0, with which safetensors are read all the same",
    (_SAFE % ("is", "is"), _SAFE % ("is", "==")): "the same",
    (_LOSS % ">", _LOSS % "!="): "the configuration refuses weights below 0",
    (_REAL % "!=", _REAL % ">"): "labels are ids, from 0 on, or the number of ignored ones, which is below",
    (_ATTENDED % ">", _ATTENDED % "!="): "attention is 0 or more",
    (_TRIPLE_VECTORS % -1, _TRIPLE_VECTORS % 1): "of two dimensions the last is the second",
    ("_LOG_IMPOSSIBLE = 40.0", "_LOG_IMPOSSIBLE = 39.0"): "as impossible: both are below the precision of a sum",
    (_NO_TRIPLES % 0, _NO_TRIPLES % 1): "head, relation and tail have one shape",
    **{
        (_KNOWS % (number, "> 1"), _KNOWS % (number, changed)): "an encoder returns one attention or three"
        for number in (1, 2)
        for changed in ("> 2", "!= 1", "is not 1")
    },
}
